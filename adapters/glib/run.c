/* run.c: records how promises begin and end, and which loops run on a thread.  SPDX-License-Identifier: ISC */
#include "adapters/glib/run.h"

#include <string.h>

#include "adapters/glib/object.h"
#include "adapters/hook/address_cache.h"
#include "adapters/hook/session.h"

/* ---- Promises ---- */

void weft__glib_create(
    struct weft__glib_object *tracked, enum weft_kind kind, const void *site, bool is_part, weft_id owner, weft_id waiter)
{
	weft_id by = weft__glib_current_promise();
	bool is_awaited = waiter && waiter != WEFT_SYSTEM_ID;
	tracked->by = by;
	tracked->kind = (uint8_t)kind;
	tracked->site = weft_hook_site(site);
	tracked->is_part = is_part;
	tracked->owner = owner;
	tracked->awaited_by = waiter;
	if (!is_part && is_awaited)
		tracked->id = weft__create_awaited(by, kind, tracked->site, waiter, NULL, 0);
	else if (is_part)
		tracked->id = weft_create_part(by, kind, tracked->site, owner);
	else if (tracked->site)
		tracked->id = weft_create_at(by, kind, tracked->site);
	else
		tracked->id = weft_create(by, kind, NULL);
	tracked->since = weft_is_on() ? weft__stream->last : 0;
	if (is_part && is_awaited)
		weft_await(waiter, tracked->id);
	if (!is_part)
		weft_hook_stack(tracked->id, site);
}

void weft__glib_create_older(struct weft__glib_object *tracked, enum weft_kind kind, weft_id waiter)
{
	tracked->by = waiter ? waiter : WEFT_SYSTEM_ID;
	tracked->kind = (uint8_t)kind;
	tracked->awaited_by = waiter;
	tracked->since = weft__hook_standby_since;
	tracked->id = weft_pending_at(tracked->by, 0, kind, NULL, tracked->since, NULL);
	if (waiter)
		weft_still_awaits(waiter, tracked->id);
}

void weft__glib_end_by(weft_id by, struct weft__glib_object *tracked, const char *error)
{
	if (tracked->is_ended || !tracked->id)
		return;
	tracked->is_ended = true;
	weft_hook_fd_detach(tracked->fd, tracked->id);
	if (error)
		weft_fail(by, tracked->id, error);
	else
		weft_resolve(by, tracked->id);
}

void weft__glib_end(struct weft__glib_object *tracked, const char *error)
{
	weft_id by = weft__glib_current_promise();
	/* An end in the task's own thread is recorded as the system's. */
	weft__glib_end_by(by == tracked->id ? WEFT_SYSTEM_ID : by, tracked, error);
}

void weft__glib_label(struct weft__glib_object *tracked, const char *text)
{
	if (tracked->is_labelled || !text || !*text)
		return;
	tracked->is_labelled = true;
	tracked->label = (struct weft_hook_label){0};
	weft_hook_append(&tracked->label, text);
	weft_hook_record_label(&tracked->label, tracked->id);
}

/* ---- Running loops ---- */

void weft__glib_begin_run(struct weft__glib_run *run, bool is_older)
{
	struct weft__glib_here *here = weft__glib_get_here();
	struct weft__glib_object *tracked = run->object ? weft__glib_object_add(WEFT__GLIB_LOOP, run->object) : NULL;
	run->outer = weft__glib_current_promise();
	run->loop = here->loop;
	run->turns = 0;
	run->is_in_loop = here->is_in_loop;
	if (tracked && is_older)
		weft__glib_create_older(tracked, WEFT_KIND_LOOP, run->outer);
	else if (tracked)
		weft__glib_create(tracked, WEFT_KIND_LOOP, run->caller, weft__glib_is_own(run->caller), run->outer, run->outer);
	if (!tracked)
		return;
	weft__glib_label(tracked, run->label);
	weft__hook_get_thread()->running = here->loop = tracked->id;
	if (!is_older)
		weft_hook_record_running(tracked->id);
}

static void adopt_loops(void)
{
	struct weft__glib_here *here = weft__glib_get_here();
	const bool is_in_loop = here->is_in_loop;
	for (unsigned i = 0; i < here->depth; i++) {
		const bool before = here->runs[i].is_in_loop;
		weft__glib_begin_run(&here->runs[i], true);
		here->runs[i].is_in_loop = before;
	}
	here->is_in_loop = is_in_loop;
}

/* ---- Threads ---- */

static void list_object(struct weft__glib_object *tracked)
{
	if (tracked->is_part)
		weft_belongs(tracked->id, tracked->owner);
	weft_pending_at(
	    tracked->by, tracked->id, (enum weft_kind)tracked->kind, tracked->site, tracked->since, tracked->label.text);
	if (tracked->awaited_by)
		weft_still_awaits(tracked->awaited_by, tracked->id);
	weft_hook_fd_still_connected(tracked->fd, tracked->id);
	const struct weft__glib_object *child = weft__glib_object_of(tracked->child);
	if (child && child->id && !child->is_ended)
		weft_still_awaits(tracked->id, child->id);
}

/* Records the current thread's objects again, from index `cursor`; for weft_hook_register_list(). */
static uint64_t list_objects(void *data, uint64_t cursor, unsigned budget)
{
	uint32_t at = (uint32_t)cursor;
	struct weft__glib_object *tracked;
	for (unsigned looked = 0; looked < 8 * budget && (tracked = weft__glib_object_next(&at)); looked++)
		if (tracked->owner_thread == data && tracked->id && !tracked->is_ended) {
			list_object(tracked);
			if (--budget == 0)
				return at;
		}
	return weft__glib_object_next(&(uint32_t){at}) ? at : 0;
}

void weft__glib_attach_thread(void)
{
	struct weft__glib_here *here = weft__glib_get_here();
	struct weft__glib_here fresh = {.epoch = weft__hook_epoch, .is_in_loop = here->is_in_loop, .depth = here->depth};
	memcpy(fresh.runs, here->runs, here->depth * sizeof *here->runs);
	*here = fresh;
	adopt_loops();
	weft_hook_register_list(list_objects, here);
}

void weft__glib_thread_end(void)
{
	memset(weft__glib_get_here(), 0, sizeof *weft__glib_get_here());
}
