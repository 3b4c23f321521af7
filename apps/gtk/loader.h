/* loader.h: reads a trace in an OS thread of its own, so that no window waits for it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_LOADER_H
#define WEFT_GTK_LOADER_H

#include <glib.h>

#include "viewer/viewer.h"

/* Releases a viewer; when nobody holds it any more it is destroyed, in another OS thread if it is large and this would take long.
 * May be called in any OS thread.  Accepts NULL. */
void loader_release(struct weft_viewer *viewer);

/* Keeps a viewer alive for somebody besides its owner, until a loader_release(). */
void loader_hold(struct weft_viewer *viewer);

/* The path of the trace that a chosen file belongs to.  A file chooser chooses files; if the file is in the directory of a trace,
 * the path is that directory.  To be freed. */
char *loader_trace_of(const char *path);

/* What titles call a trace: the last part of its first path, as UTF-8, and how many more there are.  To be freed. */
char *loader_name_of(const char *const *paths);

/* The fingerprint of what `paths` name (trace/follow.h), and whether one of that is being recorded. */
uint64_t loader_look(const char *const *paths, bool *is_recorded);

struct loader;

/* What is followed by one loader after the other: each takes what came since (model/followers.h), and shows the newest events.
 * NULL: there is no memory. */
struct loader_follow *loader_follow_begin(void);
void loader_follow_end(struct loader_follow *follow); /* a loader that is at work keeps it; accepts NULL */

/* Called once, in the main loop, unless the loader was stopped before: with a viewer that is now the callee's, or with NULL and
 * an error. */
typedef void loader_done(void *ctx, struct weft_viewer *viewer, const struct weft_error *err);

/* Begins to read what `paths` name, "-" for standard input and a session for all its traces; several are one trace, and those
 * that cannot be opened are left out. Places in machine code get the names that are found within 0.3 s; all of them if
 * `is_patient`, since something is shown meanwhile.  Unless `follow` is NULL, what is read is what is new there.
 */
struct loader *loader_start(
    const char *const *paths, struct loader_follow *follow, bool is_patient, loader_done *done, void *ctx);

/* Returns how many events were read so far. */
uint64_t loader_events(const struct loader *loader);

/* To be called once reading is done: what loader_look() said when reading began. */
uint64_t loader_fingerprint(const struct loader *loader);
bool loader_is_recorded(const struct loader *loader);

/* Likewise: whether the newest events are shown alone. */
bool loader_is_partial(const struct loader *loader);

/* Likewise: whether looking for names took too long. */
bool loader_lacks_names(const struct loader *loader);

/* Stops reading, and frees the loader as soon as its OS thread has ended.  Also to be called once it is done.  Accepts NULL. */
void loader_stop(struct loader *loader);

#endif
