/* loader.h: reads a trace in a separate OS thread, so that no window is blocked meanwhile.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_LOADER_H
#define WEFT_GTK_LOADER_H

#include <glib.h>

#include "viewer/viewer.h"

/* Releases a viewer.  The last release destroys the viewer; a large viewer is destroyed in another OS thread, because that takes
 * long.  Any OS thread may call this function.  Accepts NULL. */
void loader_release(struct weft_viewer *viewer);

/* Keeps a viewer alive in addition to its owner, until loader_release() is called. */
void loader_hold(struct weft_viewer *viewer);

/* Returns the path of the trace to which a chosen file belongs.  A file chooser returns files; if the file is in the directory
 * of a trace, the function returns the path of that directory.  The caller frees it. */
char *loader_trace_of(const char *path);

/* Returns the name of a trace for titles: the last component of its first path as UTF-8, and the number of further paths.  The
 * caller frees it. */
char *loader_name_of(const char *const *paths);

/* Returns the fingerprint of the traces at `paths` (trace/follow.h), and whether one of the traces is being recorded. */
uint64_t loader_take_fingerprint(const char *const *paths, bool *is_recorded);

struct loader;

/* Creates the state that successive loaders of a followed trace share.  Each loader reads the new events (model/followers.h) and
 * shows the newest events.  Returns NULL without memory. */
struct loader_follow *loader_follow_begin(void);
void loader_follow_end(struct loader_follow *follow); /* frees the state, which a running loader keeps alive; accepts NULL */

/* Callback that runs once, in the main loop, unless the loader was stopped: with a viewer that the callee owns, or with NULL and
 * an error. */
typedef void loader_done(void *ctx, struct weft_viewer *viewer, const struct weft_error *err);

/* Starts to read `paths`, in which "-" is standard input, and a session stands for all its traces.  Several traces are merged;
 * traces that cannot be opened are left out.  Machine-code addresses get the names that are found within 0.3 s or, if
 * `is_patient`, all names, because an older version is shown meanwhile.  If `follow` is not NULL, only new events are read. */
struct loader *loader_start(
    const char *const *paths, struct loader_follow *follow, bool is_patient, loader_done *done, void *ctx);

/* Returns the number of events that were read so far. */
uint64_t loader_events(const struct loader *loader);

/* Return the results of loader_take_fingerprint() at the time when reading started.  Call these functions only after reading has
 * ended. */
uint64_t loader_fingerprint(const struct loader *loader);
bool loader_is_recorded(const struct loader *loader);

/* Returns whether only the newest events are shown.  Call this function only after reading has ended. */
bool loader_is_partial(const struct loader *loader);

/* Returns whether the search for names took too long, so that names are missing.  Call this function only after reading has
 * ended. */
bool loader_is_missing_names(const struct loader *loader);

/* Stops reading, and frees the loader when its OS thread has ended.  This function must also be called after the loader is done.
 * Accepts NULL. */
void loader_stop(struct loader *loader);

#endif
