/* thing.c: what is known of events, bufferevents and requests, by their address.  SPDX-License-Identifier: ISC */
#include "adapters/event/adapter.h"

enum { ENDING = 64 };

/* Who keeps what is added to which base. */
struct loop {
	const struct event_base *base;
	weft_id id;
};

static void still_connected(const struct weft_hook_thing *known)
{
	weft_hook_still_connected(((const struct weft__ev_thing *)(const void *)known)->fd, known->id);
}

static struct weft_hook_things things = {.bytes = sizeof(struct weft__ev_thing), .still = still_connected};

/* Keys of this OS thread's things that end when its loop sleeps. */
static __thread const void *ending[ENDING];
static __thread unsigned ending_count;

void weft__ev_lock(const void *key)
{
	weft_hook_things_lock(&things, key);
}

void weft__ev_unlock(const void *key)
{
	weft_hook_things_unlock(&things, key);
}

struct weft__ev_thing *weft__ev_find(const void *key)
{
	return weft_hook_things_find(&things, key);
}

struct weft__ev_thing *weft__ev_make(const void *key)
{
	return weft_hook_things_make(&things, key);
}

void weft__ev_end(struct weft__ev_thing *thing, weft_id by)
{
	if (thing->connect) {
		weft_fail(by, thing->connect, "given up");
		weft_read_later(by, thing->connect);
	}
	weft_hook_carries_no_more(thing->fd, thing->id);
	if (thing->id)
		weft_resolve(by, thing->id);
	weft_hook_things_drop(&things, &thing->thing);
}

void weft__ev_begin(struct weft__ev_thing *thing, enum weft_kind kind, const void *caller)
{
	weft_hook_things_begin(&thing->thing, kind, caller);
}

void weft__ev_say(struct weft__ev_thing *thing)
{
	weft_hook_say(&thing->label, thing->id);
}

weft_id weft__ev_id(const void *key)
{
	weft__ev_lock(key);
	const struct weft__ev_thing *thing = weft__ev_find(key);
	weft_id id = thing ? thing->id : 0;
	weft__ev_unlock(key);
	return id;
}

weft_id weft__ev_buffer_id(const void *key)
{
	weft__ev_lock(key);
	const struct weft__ev_thing *thing = weft__ev_find(key);
	weft_id id = thing && thing->is_buffer ? thing->id : 0;
	weft__ev_unlock(key);
	return id;
}

static void keep(struct weft_hook_thing *known, void *loop)
{
	struct weft__ev_thing *thing = (struct weft__ev_thing *)(void *)known;
	const struct loop *kept_by = loop;
	if (thing->base == kept_by->base && thing->is_added && thing->id)
		weft_await(thing->kept = kept_by->id, thing->id);
}

void weft__ev_keep(const struct event_base *base, weft_id loop)
{
	weft_hook_things_each(&things, keep, &(struct loop){base, loop});
}

void weft__ev_ends_later(struct weft__ev_thing *thing)
{
	if (thing->is_ending)
		return;
	/* Outside of a loop, which would end them, no more than one is kept waiting. */
	if (ending_count < (weft__ev_here.depth > 0 ? ENDING : 1)) {
		thing->is_ending = true;
		ending[ending_count++] = thing->key;
	} else {
		weft__ev_end(thing, weft__hook_thread.running);
	}
}

void weft__ev_end_all(void)
{
	while (ending_count > 0) {
		const void *key = ending[--ending_count];
		weft__ev_lock(key);
		struct weft__ev_thing *thing = weft__ev_find(key);
		if (thing && thing->is_ending) {
			thing->is_ending = false;
			if (!thing->is_added)
				weft__ev_end(thing, WEFT_SYSTEM_ID);
		}
		weft__ev_unlock(key);
	}
}

uint64_t weft__ev_list(void *data, uint64_t cursor, unsigned budget)
{
	return weft_hook_things_list(&things, cursor, budget);
}

void weft__ev_forget(void)
{
	weft_hook_things_forget(&things);
}

void weft__ev_fork(enum weft_hook_fork when)
{
	weft_hook_things_fork(&things, when);
	ending_count = when == WEFT_HOOK_IN_CHILD ? 0 : ending_count;
}
