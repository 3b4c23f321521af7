/* note.c: the events of the traced Lwt, while something records; and what is pending, told again.  SPDX-License-Identifier: ISC
 */
#include "promise/core.h"

/* The promise that runs; the trace does not know it if it was made while nothing recorded. */
static weft_id current_id(void)
{
	return weft__world.current ? weft__world.current : WEFT_SYSTEM_ID;
}

/* ---- Telling again ---- */

#ifndef WEFT_DISABLE
static void tell(struct weft_promise *p)
{
	if (p->id == 0) {
		p->by = WEFT_SYSTEM_ID;
		p->since = 0;
	}
	p->id = weft_pending(p->by, p->id, (enum weft_kind)p->kind, p->site, p->since, p->label);
	if (p->should_resolve)
		weft_should_resolve(p->id);
}

static void tell_await(struct weft_promise *p, struct weft_promise *input)
{
	while (input->state == WEFT__PROXY) /* read only: nothing may change while the recorder calls this */
		input = input->into;
	if (input->state == WEFT_PENDING)
		weft_still_awaits(p->id, weft__id(input));
}

static void tell_all_of(struct weft_promise *p)
{
	tell(p);
	if (p->kind == WEFT_KIND_LOCK && p->holder)
		tell_await(p, p->holder);
	if (p->kind == WEFT_KIND_POOL && p->holders)
		for (const struct weft__link *l = p->holders->next; l != p->holders; l = l->next)
			tell_await(p, WEFT__CONTAINER(l, struct weft__held, link)->holder);
	if (p->cancel == WEFT__CANCEL_ONE)
		tell_await(p, p->input);
	if (p->waits_for_lock)
		tell_await(p, p->lock);
	for (size_t i = 0; p->cancel == WEFT__CANCEL_MANY && i < p->inputs->count; i++)
		tell_await(p, p->inputs->input[i].promise);
}

/* A slot that is free uses up a little of the budget too: looking at it takes time. */
enum { SLOTS_IN_ONE = 32 };

static uint64_t list(void *nothing, uint64_t cursor, unsigned budget)
{
	struct weft__world *world = &weft__world;
	size_t looks = (size_t)budget * SLOTS_IN_ONE;
	if (cursor == 0) {
		world->telling = world->chunks.next;
		world->telling_slot = 0;
	}
	while (world->telling && world->telling != &world->chunks) {
		struct weft__chunk *chunk = WEFT__CONTAINER(world->telling, struct weft__chunk, link);
		while (world->telling_slot < WEFT__CHUNK) {
			if (budget == 0 || looks-- == 0)
				return 1;
			struct weft_promise *p = &chunk->slot[world->telling_slot++];
			if (p->weak && p->refs && p->state == WEFT_PENDING) {
				tell_all_of(p);
				budget--;
			}
		}
		world->telling = chunk->link.next;
		world->telling_slot = 0;
	}
	world->telling = NULL;
	return 0;
}
#endif

void weft__tell_pending(bool on)
{
#ifndef WEFT_DISABLE
	weft_list_pending(on ? list : NULL, NULL);
#endif
}

weft_id weft__record_id(struct weft_promise *p)
{
#ifndef WEFT_DISABLE
	if (p->id == 0 && p->state != WEFT_PENDING)
		return WEFT_SYSTEM_ID;
	if (p->id == 0) {
		weft__before_other();
		tell(p);
	}
#endif
	return p->id;
}

/* ---- Events ----
 *
 * Called while something records.  Who runs by the trace's account is what the recorder keeps: weft_running() without its gate.
 */

static inline weft_id running(void)
{
#ifdef WEFT_DISABLE
	return WEFT_SYSTEM_ID;
#else
	return weft__stream->running;
#endif
}

#ifndef WEFT_DISABLE
static inline weft_id id_of(struct weft_promise *p)
{
	return __builtin_expect(p->id != 0, 1) ? p->id : weft__record_id(p);
}

void weft__record_created(struct weft_promise *p)
{
	p->by = running();
	p->id = weft__world.round ? weft__round_create(p, 0) : weft_create(p->by, (enum weft_kind)p->kind, p->site);
	p->since = weft__stream->last;
}

void weft__record_created_labelled(struct weft_promise *p, const char *label, size_t bytes)
{
	weft__before_other();
	p->by = running();
	p->id = weft__create_labelled(p->by, (enum weft_kind)p->kind, p->site, label, bytes);
	p->since = weft__stream->last;
}

struct weft_promise *weft__record_created_awaiting(struct weft_promise *p, struct weft_promise *input)
{
	p->by = running();
	weft_id id = id_of(input);
	p->id =
	    weft__world.round ? weft__round_create(p, id) : weft__create_awaiting(p->by, (enum weft_kind)p->kind, p->site, id);
	p->since = weft__stream->last;
	return p;
}
#else
static weft_id id_of(struct weft_promise *p)
{
	return p->id;
}

void weft__record_created(struct weft_promise *p)
{
}

void weft__record_created_labelled(struct weft_promise *p, const char *label, size_t bytes)
{
}

struct weft_promise *weft__record_created_awaiting(struct weft_promise *p, struct weft_promise *input)
{
	return p;
}
#endif

static void read(weft_id by, weft_id input)
{
	input = input ? input : WEFT_SYSTEM_ID;
	if (!weft__keeps_back(WEFT_OP_READ, by, input))
		weft_read(by, input);
}

void weft__record_enter(struct weft_promise *waiting, const struct weft_promise *ended)
{
	/* The input may be older than the recording, and is given its id here. */
	weft_id id = id_of(weft__repr(waiting)), input = waiting->waiter.input_id ? waiting->waiter.input_id : ended->id;
	weft__world.current = id;
	if (__builtin_expect(input != id, 1))
		read(id, input);
	else
		weft__record_read(input);
}

void weft__record_switch(void)
{
	weft_id current = current_id();
	if (running() != current && !weft__keeps_back(WEFT_OP_RUN, current, 0))
		weft_run(current);
}

void weft__record_read(weft_id input)
{
	weft_id current = current_id();
	if (input != current)
		read(current, input);
#ifndef WEFT_DISABLE
	else if (running() != current && weft__stream->generation)
		weft__stream->running = current; /* without an event: promises that are made now are created by it */
#endif
}

void weft__record_signal(weft_id from)
{
	weft_id sender = from ? from : WEFT_SYSTEM_ID, current = current_id();
	if (!weft__keeps_back(WEFT_OP_SIGNAL, sender, current))
		weft_signal(sender, current);
}

void weft__record_hold(struct weft_promise *holder, struct weft_promise *lock)
{
	weft_id by = id_of(weft__repr(holder)), what = id_of(lock);
	if (!weft__keeps_back(WEFT_OP_HOLD, by, what))
		weft_hold(by, what);
}

void weft__record_release(struct weft_promise *holder, struct weft_promise *lock)
{
	weft_id by = id_of(weft__repr(holder)), what = id_of(lock);
	if (!weft__keeps_back(WEFT_OP_RELEASE, by, what))
		weft_release(by, what);
}

void weft__record_end(struct weft_promise *p, const struct weft_failure *failure)
{
#ifndef WEFT_DISABLE
	if (p->id == 0) {
		weft__before_other();
		tell(p); /* the promise was pending until now */
	}
#endif
	if (failure) {
		weft__before_other();
		weft_fail(running(), p->id, failure->message);
	} else if (!weft__keeps_back(WEFT_OP_RESOLVE, running(), p->id)) {
		weft_resolve(running(), p->id);
	}
}

void weft__record_become(struct weft_promise *p, struct weft_promise *into)
{
	weft_id from = id_of(p), to = id_of(into);
	if (from != to && from != WEFT_SYSTEM_ID && !weft__keeps_back(WEFT_OP_BECOME, from, to))
		weft_become(from, to);
}

void weft__record_await(struct weft_promise *p, struct weft_promise *input)
{
	weft_id waiter = id_of(p), awaited = id_of(input);
	if (!weft__keeps_back(WEFT_OP_AWAIT, waiter, awaited))
		weft_await(waiter, awaited);
}

void weft__record_label(struct weft_promise *p)
{
#ifndef WEFT_DISABLE
	weft__before_other();
	weft_label(id_of(p), p->label);
#endif
}

void weft__record_counter(struct weft_counter *counter)
{
	weft__before_other();
	weft_counter_set(running(), &counter->name, counter->value);
}
