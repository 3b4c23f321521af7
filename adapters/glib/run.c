/* run.c: when a loop of GLib sleeps, and how promises begin and end.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/glib/adapter.h"
#include "adapters/hook/sleep.h"

__thread struct weft__glib_here weft__glib_here __attribute__((tls_model("initial-exec")));

/* ---- The OS thread ---- */

static void tell(struct weft__glib_thing *thing)
{
	if (thing->is_part)
		weft_belongs(thing->id, thing->owner);
	weft_pending_at(thing->by, thing->id, (enum weft_kind)thing->kind, thing->site, thing->since, thing->label.text);
	if (thing->awaited_by)
		weft_still_awaits(thing->awaited_by, thing->id);
	weft_hook_still_connected(thing->fd, thing->id);
	const struct weft__glib_thing *child = weft__glib_thing_of(thing->child);
	if (child && child->id && !child->is_ended)
		weft_still_awaits(thing->id, child->id);
}

/* For weft_hook_list(): the things of this OS thread from place `cursor` on. */
static uint64_t list(void *data, uint64_t cursor, unsigned budget)
{
	uint32_t at = (uint32_t)cursor;
	struct weft__glib_thing *thing;
	for (unsigned looked = 0; looked < 8 * budget && (thing = weft__glib_thing_next(&at)); looked++)
		if (thing->home == data && thing->id && !thing->is_ended) {
			tell(thing);
			if (--budget == 0)
				return at;
		}
	return weft__glib_thing_next(&(uint32_t){at}) ? at : 0;
}

void weft__glib_meet(void)
{
	struct weft__glib_here *here = &weft__glib_here;
	struct weft__glib_here fresh = {.epoch = weft__hook_epoch, .in_loop = here->in_loop, .depth = here->depth};
	memcpy(fresh.runs, here->runs, here->depth * sizeof *here->runs);
	*here = fresh;
	weft__glib_adopt_loops();
	weft_hook_list(list, here);
}

void weft__glib_thread_ends(void)
{
	memset(&weft__glib_here, 0, sizeof weft__glib_here);
}

/* What is attached has a name by now, or gets none. */
bool weft__glib_sleeps(struct weft_hook_sleep *sleep)
{
	enum { STILL_MS = 100 }; /* a busy loop never gets there */
	struct weft__glib_here *here = &weft__glib_here;
	if (here->epoch != weft__hook_epoch && here->depth > 0) {
		weft_hook_thread();
		weft__glib_meet();
	}
	if (here->epoch != weft__hook_epoch)
		return false;
	if (here->in_loop && here->depth > 0 && sleep->kind == WEFT_HOOK_SLEEP_FDS)
		weft__glib_tell_older();
	if (here->unlabelled_count > 0)
		weft__glib_name_sources();
	if (here->accepted)
		weft__glib_name_accepted();
	if (!here->in_loop || sleep->kind != WEFT_HOOK_SLEEP_FDS)
		return false;
	if (weft__glib_is_turn()) {
		sleep->first_ms = STILL_MS;
		sleep->still = weft__glib_still;
	}
	return true;
}

/* ---- Promises ---- */

void weft__glib_create(
    struct weft__glib_thing *thing, enum weft_kind kind, const void *site, bool is_part, weft_id owner, weft_id waiter)
{
	weft_id by = weft__glib_who();
	bool is_awaited = waiter && waiter != WEFT_SYSTEM_ID;
	thing->by = by;
	thing->kind = (uint8_t)kind;
	thing->site = weft_hook_place(site);
	thing->is_part = is_part;
	thing->owner = owner;
	thing->awaited_by = waiter;
	if (!is_part && is_awaited)
		thing->id = weft__create_awaited(by, kind, thing->site, waiter, NULL, 0);
	else if (is_part)
		thing->id = weft_create_part(by, kind, thing->site, owner);
	else if (thing->site)
		thing->id = weft_create_at(by, kind, thing->site);
	else
		thing->id = weft_create(by, kind, NULL);
	thing->since = weft_is_on() ? weft__stream->last : 0;
	if (is_part && is_awaited)
		weft_await(waiter, thing->id);
	if (!is_part)
		weft_hook_stack(thing->id, site);
}

void weft__glib_create_older(struct weft__glib_thing *thing, enum weft_kind kind, weft_id waiter)
{
	thing->by = waiter ? waiter : WEFT_SYSTEM_ID;
	thing->kind = (uint8_t)kind;
	thing->awaited_by = waiter;
	thing->since = weft__hook_since;
	thing->id = weft_pending_at(thing->by, 0, kind, NULL, thing->since, NULL);
	if (waiter)
		weft_still_awaits(waiter, thing->id);
}

void weft__glib_end_by(weft_id by, struct weft__glib_thing *thing, const char *error)
{
	if (thing->is_ended || !thing->id)
		return;
	thing->is_ended = true;
	weft_hook_carries_no_more(thing->fd, thing->id);
	if (error)
		weft_fail(by, thing->id, error);
	else
		weft_resolve(by, thing->id);
}

void weft__glib_end(struct weft__glib_thing *thing, const char *error)
{
	weft_id by = weft__glib_who();
	weft__glib_end_by(by == thing->id ? WEFT_SYSTEM_ID : by, thing, error); /* in its own OS thread */
}

void weft__glib_label(struct weft__glib_thing *thing, const char *text)
{
	if (thing->is_labelled || !text || !*text)
		return;
	thing->is_labelled = true;
	thing->label = (struct weft_hook_label){0};
	weft_hook_put(&thing->label, text);
	weft_hook_say(&thing->label, thing->id);
}
