/* run.h: records how promises begin and end, and which loops run on a thread (private to adapters/glib).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_GLIB_RUN_H
#define WEFT_ADAPTERS_GLIB_RUN_H

#include "adapters/glib/common.h"
#include "adapters/hook/session.h"

void weft__glib_attach_thread(void);

/* Returns whether recording is on, and starts the recording if the user wants one. */
static inline bool weft__glib_should_record(void)
{
	if (!weft_hook_begin())
		return false;
	weft_hook_thread();
	if (__builtin_expect(weft__glib_get_here()->epoch != weft__hook_epoch, 0))
		weft__glib_attach_thread();
	return true;
}

/* Creates the object's promise in the name of the running promise.  `owner` is the promise of the call that a part (an internal
 * promise) belongs to.  The promise `waiter` awaits the new promise; 0: no waiter.
 */
void weft__glib_create(
    struct weft__glib_object *tracked, enum weft_kind kind, const void *site, bool is_part, weft_id owner, weft_id waiter);
/* Records the promise of an object that is older than the recording.  The promise `waiter` awaits it; 0: no waiter. */
void weft__glib_create_older(struct weft__glib_object *tracked, enum weft_kind kind, weft_id waiter);
/* Ends the object's promise in the name of the running promise.  `error` is NULL if the promise succeeded. */
void weft__glib_end(struct weft__glib_object *tracked, const char *error);
void weft__glib_end_by(weft_id by, struct weft__glib_object *tracked, const char *error);
/* Sets the object's first label.  Does nothing if the text is NULL or "", or if the object has a label. */
void weft__glib_label(struct weft__glib_object *tracked, const char *text);

void weft__glib_thread_end(void);

/* Creates the promise of the loop of `run`, and makes it the running loop.  `is_older`: whether the loop is older than the
 * recording. */
void weft__glib_begin_run(struct weft__glib_run *run, bool is_older);

#endif
