/* loader.h: reads a trace in a separate OS thread, so that no window is blocked.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_LOADER_H
#define WEFT_GTK_LOADER_H

#include <glib.h>

#include "viewer/viewer.h"

/* Releases a viewer.  The last release destroys it, in another OS thread if it is large, because this takes long.  May be called
 * in any OS thread.  Accepts NULL. */
void loader_release(struct weft_viewer *viewer);

/* Keeps a viewer alive besides its owner, until a loader_release(). */
void loader_hold(struct weft_viewer *viewer);

/* Returns the path of the trace that a chosen file belongs to.  A file chooser returns files; if the file is in the directory of
 * a trace, the path is that directory.  The caller frees it. */
char *loader_trace_of(const char *path);

/* Returns the name of a trace for titles: the last part of its first path, as UTF-8, and the number of further paths.  The
 * caller frees it. */
char *loader_name_of(const char *const *paths);

/* Returns the fingerprint of the traces at `paths` (trace/follow.h), and whether one of them is being recorded. */
uint64_t loader_take_fingerprint(const char *const *paths, bool *is_recorded);

struct loader;

/* Creates the state that successive loaders of a followed trace share.  Each loader reads what is new (model/followers.h) and
 * shows the newest events.  Returns NULL without memory. */
struct loader_follow *loader_follow_begin(void);
void loader_follow_end(struct loader_follow *follow); /* a running loader keeps it alive; accepts NULL */

/* Called once, in the main loop, unless the loader was stopped: with a viewer that the callee owns, or with NULL and an error. */
typedef void loader_done(void *ctx, struct weft_viewer *viewer, const struct weft_error *err);

/* Starts to read `paths`: "-" is standard input, a session is all its traces.  Several traces are merged; those that cannot be
 * opened are left out.  Addresses in machine code get the names found within 0.3 s; if `is_patient`, because an older version is
 * shown meanwhile, all names.  If `follow` is not NULL, only what is new there is read. */
struct loader *loader_start(
    const char *const *paths, struct loader_follow *follow, bool is_patient, loader_done *done, void *ctx);

/* Returns the number of events read so far. */
uint64_t loader_events(const struct loader *loader);

/* The results of loader_take_fingerprint() when reading started.  Must be called after reading has ended. */
uint64_t loader_fingerprint(const struct loader *loader);
bool loader_is_recorded(const struct loader *loader);

/* Returns whether only the newest events are shown.  Must be called after reading has ended. */
bool loader_is_partial(const struct loader *loader);

/* Returns whether the search for names took too long.  Must be called after reading has ended. */
bool loader_is_missing_names(const struct loader *loader);

/* Stops reading, and frees the loader when its OS thread has ended.  Must also be called after it is done.  Accepts NULL. */
void loader_stop(struct loader *loader);

#endif
