/* loader.h: reads a trace in an OS thread of its own, so that no window waits for it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_LOADER_H
#define WEFT_GTK_LOADER_H

#include <glib.h>

#include "viewer/viewer.h"

/* Lets go of a viewer, which is destroyed when nobody holds it any more, elsewhere: that of a large trace takes long.  In any OS
 * thread.  Accepts NULL. */
void loader_release(struct weft_viewer *viewer);

/* Whoever else looks at the model of a viewer holds it meanwhile, and then releases it. */
void loader_hold(struct weft_viewer *viewer);

/* The trace that a chosen file stands for: choosers choose files, and a trace may be a folder, for which any file in it stands.
 * To be freed. */
char *loader_trace_of(const char *path);

/* What a path is called in a title: its last part, as it can be shown.  To be freed. */
char *loader_name_of(const char *path);

struct loader;

/* Called in the main loop, once, unless the loader was stopped before: with a viewer that is now the callee's, or with NULL and
 * why. */
typedef void loader_done(void *ctx, struct weft_viewer *viewer, const struct weft_error *err);

/* Begins to read what `path` names, "-" for standard input. */
struct loader *loader_start(const char *path, loader_done *done, void *ctx);

/* How many events were read so far. */
uint64_t loader_events(const struct loader *loader);

/* Once it is done: what the trace looked like from outside when reading began (trace/follow.h), and whether it was being recorded
 * then. */
uint64_t loader_fingerprint(const struct loader *loader);
bool loader_is_recorded(const struct loader *loader);

/* Forgets the loader, which must not be used any more; it ends as soon as it can.  Also to be called once it is done.  Accepts
 * NULL. */
void loader_stop(struct loader *loader);

#endif
