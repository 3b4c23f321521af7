/* run.h: how promises begin and end, and which loops run on a thread (private to adapters/glib).  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_GLIB_RUN_H
#define WEFT_ADAPTERS_GLIB_RUN_H

#include "adapters/glib/common.h"
#include "adapters/hook/session.h"

void weft__glib_attach_thread(void);

/* Returns whether recording is on, and starts it if that is wanted. */
static inline bool weft__glib_should_record(void)
{
	if (!weft_hook_begin())
		return false;
	weft_hook_thread();
	if (__builtin_expect(weft__glib_here.epoch != weft__hook_epoch, 0))
		weft__glib_attach_thread();
	return true;
}

/* Creates the object's promise, by the running promise.  `owner`: the call that a part belongs to.  `waiter` awaits it; 0: none.
 */
void weft__glib_create(
    struct weft__glib_object *tracked, enum weft_kind kind, const void *site, bool is_part, weft_id owner, weft_id waiter);
/* Records a promise that is older than the recording.  `waiter` awaits it; 0: none. */
void weft__glib_create_older(struct weft__glib_object *tracked, enum weft_kind kind, weft_id waiter);
/* Ends the object's promise, by the running promise.  error: NULL if it succeeded. */
void weft__glib_end(struct weft__glib_object *tracked, const char *error);
void weft__glib_end_by(weft_id by, struct weft__glib_object *tracked, const char *error);
/* Sets the object's first label.  Does nothing for NULL or "", or if it has one. */
void weft__glib_label(struct weft__glib_object *tracked, const char *text);

void weft__glib_thread_end(void);

/* Creates the promise of the loop of `run`, which then runs.  `is_older`: the loop is older than the recording. */
void weft__glib_begin_run(struct weft__glib_run *run, bool is_older);

#endif
