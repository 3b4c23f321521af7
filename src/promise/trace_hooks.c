/* trace_hooks.c: records the same events as the traced Lwt, and lists pending promises.  SPDX-License-Identifier: ISC
 */
#include "promise/core.h"

/* Returns the id of the running promise; WEFT_SYSTEM_ID if the promise was made while nothing recorded. */
static weft_id current_id(void)
{
	return weft__thread_state.current ? weft__thread_state.current : WEFT_SYSTEM_ID;
}

/* ---- Listing pending promises ---- */

#ifndef WEFT_DISABLE
static void record_pending(struct weft_promise *p)
{
	if (p->id == 0) {
		p->by = WEFT_SYSTEM_ID;
		p->since = 0;
	}
	p->id = weft_pending(p->by, p->id, (enum weft_kind)p->kind, p->site, p->since, p->label);
	if (p->should_resolve)
		weft_should_resolve(p->id);
}

static void record_still_awaits(struct weft_promise *p, struct weft_promise *input)
{
	/* The promises are only read, because nothing may change while the recorder calls this function. */
	while (input->state == WEFT__PROXY)
		input = input->into;
	if (input->state == WEFT_PENDING)
		weft_still_awaits(p->id, weft__id(input));
}

static void record_pending_and_awaits(struct weft_promise *p)
{
	record_pending(p);
	if (p->kind == WEFT_KIND_LOCK && p->holder)
		record_still_awaits(p, p->holder);
	if (p->kind == WEFT_KIND_POOL && p->holders)
		for (const struct weft__link *l = p->holders->next; l != p->holders; l = l->next)
			record_still_awaits(p, WEFT__CONTAINER(l, struct weft__holding, link)->holder);
	if (p->cancel == WEFT__CANCEL_ONE)
		record_still_awaits(p, p->input);
	if (p->waits_for_lock)
		record_still_awaits(p, p->lock);
	for (size_t i = 0; p->cancel == WEFT__CANCEL_MANY && i < p->inputs->count; i++)
		record_still_awaits(p, p->inputs->input[i].promise);
}

/* Number of free slots that count as one promise in the budget, because visiting them takes time. */
enum { SLOTS_PER_PROMISE = 32 };

static uint64_t list_pending_promises(void *nothing, uint64_t cursor, unsigned budget)
{
	struct weft__thread_state *world = &weft__thread_state;
	size_t slots_left = (size_t)budget * SLOTS_PER_PROMISE;
	if (cursor == 0) {
		world->list_chunk = world->chunks.next;
		world->list_slot = 0;
	}
	while (world->list_chunk && world->list_chunk != &world->chunks) {
		struct weft__chunk *chunk = WEFT__CONTAINER(world->list_chunk, struct weft__chunk, link);
		while (world->list_slot < WEFT__CHUNK) {
			if (budget == 0 || slots_left-- == 0)
				return 1;
			struct weft_promise *p = &chunk->slot[world->list_slot++];
			if (p->weak && p->refs && p->state == WEFT_PENDING) {
				record_pending_and_awaits(p);
				budget--;
			}
		}
		world->list_chunk = chunk->link.next;
		world->list_slot = 0;
	}
	world->list_chunk = NULL;
	return 0;
}
#endif

void weft__set_pending_listing(bool on)
{
#ifndef WEFT_DISABLE
	weft_list_pending(on ? list_pending_promises : NULL, NULL);
#endif
}

weft_id weft__record_id(struct weft_promise *p)
{
#ifndef WEFT_DISABLE
	if (p->id == 0 && p->state != WEFT_PENDING)
		return WEFT_SYSTEM_ID;
	if (p->id == 0) {
		weft__round_flush_if_any();
		record_pending(p);
	}
#endif
	return p->id;
}

/* ---- Events ----
 *
 * Called while something records.  The recorder keeps the running promise: running_id() returns the same as weft_running(), but
 * without its check.
 */

static inline weft_id running_id(void)
{
#ifdef WEFT_DISABLE
	return WEFT_SYSTEM_ID;
#else
	return weft__stream->running;
#endif
}

#ifndef WEFT_DISABLE
static inline weft_id ensure_id(struct weft_promise *p)
{
	return __builtin_expect(p->id != 0, 1) ? p->id : weft__record_id(p);
}

void weft__record_created(struct weft_promise *p)
{
	p->by = running_id();
	p->id = weft__thread_state.round ? weft__round_create(p, 0) : weft_create(p->by, (enum weft_kind)p->kind, p->site);
	p->since = weft__stream->last;
}

void weft__record_created_labelled(struct weft_promise *p, const char *label, size_t bytes)
{
	weft__round_flush_if_any();
	p->by = running_id();
	p->id = weft__create_labelled(p->by, (enum weft_kind)p->kind, p->site, label, bytes);
	p->since = weft__stream->last;
}

struct weft_promise *weft__record_created_awaiting(struct weft_promise *p, struct weft_promise *input)
{
	p->by = running_id();
	weft_id id = ensure_id(input);
	p->id = weft__thread_state.round ? weft__round_create(p, id)
					 : weft__create_awaiting(p->by, (enum weft_kind)p->kind, p->site, id);
	p->since = weft__stream->last;
	return p;
}
#else
static weft_id ensure_id(struct weft_promise *p)
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

static void record_read_by(weft_id by, weft_id input)
{
	input = input ? input : WEFT_SYSTEM_ID;
	if (!weft__is_deferred(WEFT_OP_READ, by, input))
		weft_read(by, input);
}

void weft__record_enter(struct weft_promise *waiting, const struct weft_promise *ended)
{
	/* The input may be older than the recording, and then gets its id here. */
	weft_id id = ensure_id(weft__repr(waiting)), input = waiting->waiter.input_id ? waiting->waiter.input_id : ended->id;
	weft__thread_state.current = id;
	if (__builtin_expect(input != id, 1))
		record_read_by(id, input);
	else
		weft__record_read(input);
}

void weft__record_switch(void)
{
	weft_id current = current_id();
	if (running_id() != current && !weft__is_deferred(WEFT_OP_RUN, current, 0))
		weft_run(current);
}

void weft__record_read(weft_id input)
{
	weft_id current = current_id();
	if (input != current)
		record_read_by(current, input);
#ifndef WEFT_DISABLE
	else if (running_id() != current && weft__stream->generation)
		weft__stream->running = current; /* the running promise changes without an event; the next creation records it */
#endif
}

void weft__record_signal(weft_id from)
{
	weft_id sender = from ? from : WEFT_SYSTEM_ID, current = current_id();
	if (!weft__is_deferred(WEFT_OP_SIGNAL, sender, current))
		weft_signal(sender, current);
}

void weft__record_hold(struct weft_promise *holder, struct weft_promise *lock)
{
	weft_id by = ensure_id(weft__repr(holder)), lock_id = ensure_id(lock);
	if (!weft__is_deferred(WEFT_OP_HOLD, by, lock_id))
		weft_hold(by, lock_id);
}

void weft__record_release(struct weft_promise *holder, struct weft_promise *lock)
{
	weft_id by = ensure_id(weft__repr(holder)), lock_id = ensure_id(lock);
	if (!weft__is_deferred(WEFT_OP_RELEASE, by, lock_id))
		weft_release(by, lock_id);
}

void weft__record_end(struct weft_promise *p, const struct weft_failure *failure)
{
#ifndef WEFT_DISABLE
	if (p->id == 0) {
		weft__round_flush_if_any();
		record_pending(p); /* the promise was pending until now, and is recorded before its end */
	}
#endif
	if (failure) {
		weft__round_flush_if_any();
		weft_fail(running_id(), p->id, failure->message);
	} else if (!weft__is_deferred(WEFT_OP_RESOLVE, running_id(), p->id)) {
		weft_resolve(running_id(), p->id);
	}
}

void weft__record_become(struct weft_promise *p, struct weft_promise *into)
{
	weft_id from = ensure_id(p), to = ensure_id(into);
	if (from != to && from != WEFT_SYSTEM_ID && !weft__is_deferred(WEFT_OP_BECOME, from, to))
		weft_become(from, to);
}

void weft__record_await(struct weft_promise *p, struct weft_promise *input)
{
	weft_id waiter = ensure_id(p), awaited = ensure_id(input);
	if (!weft__is_deferred(WEFT_OP_AWAIT, waiter, awaited))
		weft_await(waiter, awaited);
}

void weft__record_label(struct weft_promise *p)
{
#ifndef WEFT_DISABLE
	weft__round_flush_if_any();
	weft_label(ensure_id(p), p->label);
#endif
}

void weft__record_counter(struct weft_counter *counter)
{
	weft__round_flush_if_any();
	weft_counter_set(running_id(), &counter->name, counter->value);
}
