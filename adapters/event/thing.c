/* thing.c: what is known of events, bufferevents and requests, by their address.  SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/event/adapter.h"

enum { SHARDS = 64, BUCKETS = 256, ENDING = 64 };

static struct shard {
	pthread_mutex_t lock;
	struct weft__ev_thing *buckets[BUCKETS];
} shards[SHARDS] = {[0 ... SHARDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

/* Keys of this OS thread's things that end when its loop sleeps. */
static __thread const void *ending[ENDING];
static __thread unsigned ending_count;

static size_t hash(const void *key)
{
	return (size_t)(((uintptr_t)key >> 3) * 0x9e3779b97f4a7c15u >> 48);
}

static struct shard *shard_of(const void *key)
{
	return &shards[hash(key) % SHARDS];
}

static struct weft__ev_thing **bucket_of(const void *key)
{
	return &shard_of(key)->buckets[hash(key) / SHARDS % BUCKETS];
}

void weft__ev_lock(const void *key)
{
	pthread_mutex_lock(&shard_of(key)->lock);
}

void weft__ev_unlock(const void *key)
{
	pthread_mutex_unlock(&shard_of(key)->lock);
}

struct weft__ev_thing *weft__ev_find(const void *key)
{
	struct weft__ev_thing *thing = *bucket_of(key);
	while (thing && thing->key != key)
		thing = thing->next;
	return thing;
}

struct weft__ev_thing *weft__ev_make(const void *key)
{
	struct weft__ev_thing **bucket = bucket_of(key), *thing = calloc(1, sizeof *thing);
	if (thing) {
		thing->key = key;
		thing->next = *bucket;
		*bucket = thing;
	}
	return thing;
}

void weft__ev_end(struct weft__ev_thing *thing, weft_id by)
{
	struct weft__ev_thing **at = bucket_of(thing->key);
	while (*at != thing)
		at = &(*at)->next;
	*at = thing->next;
	if (thing->connect) {
		weft_fail(by, thing->connect, "given up");
		weft_read_later(by, thing->connect);
	}
	if (thing->id)
		weft_resolve(by, thing->id);
	free(thing);
}

void weft__ev_begin(struct weft__ev_thing *thing, enum weft_kind kind, const void *caller)
{
	const struct weft_hook_thread *here = weft_hook_thread();
	thing->kind = (uint8_t)kind;
	thing->by = here->running;
	thing->home = here;
	thing->site = weft_hook_place(caller);
	thing->id = weft_create_at(here->running, kind, thing->site);
	thing->since = weft__stream->last;
	weft_hook_stack(thing->id, caller);
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

void weft__ev_keep(const struct event_base *base, weft_id loop)
{
	for (size_t i = 0; i < SHARDS; i++) {
		pthread_mutex_lock(&shards[i].lock);
		for (size_t j = 0; j < BUCKETS; j++)
			for (struct weft__ev_thing *t = shards[i].buckets[j]; t; t = t->next)
				if (t->base == base && t->is_added && t->id)
					weft_await(t->kept = loop, t->id);
		pthread_mutex_unlock(&shards[i].lock);
	}
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

/* The things of this OS thread, from a bucket on. */
uint64_t weft__ev_list(void *data, uint64_t cursor, unsigned budget)
{
	for (; cursor < SHARDS * BUCKETS && budget > 0; cursor++) {
		struct shard *shard = &shards[cursor / BUCKETS];
		/* Inside an event that a holder of the lock records. */
		if (!shard->buckets[cursor % BUCKETS] || pthread_mutex_trylock(&shard->lock))
			continue;
		for (struct weft__ev_thing *t = shard->buckets[cursor % BUCKETS]; t; t = t->next)
			if (t->id && t->home == &weft__hook_thread) {
				weft_pending_at(t->by, t->id, (enum weft_kind)t->kind, t->site, t->since, t->label.text);
				if (t->kind == WEFT_KIND_LOOP)
					weft_still_awaits(t->by, t->id);
				if (t->kept)
					weft_still_awaits(t->kept, t->id);
				budget -= budget > 0;
			}
		pthread_mutex_unlock(&shard->lock);
	}
	return cursor < SHARDS * BUCKETS ? cursor : 0;
}

void weft__ev_fork(enum weft_hook_fork when)
{
	for (size_t i = 0; i < SHARDS; i++)
		if (when == WEFT_HOOK_BEFORE_FORK)
			pthread_mutex_lock(&shards[i].lock);
	/* A child's promises are of another trace. */
	for (size_t i = 0; when == WEFT_HOOK_IN_CHILD && i < SHARDS * BUCKETS; i++) {
		struct weft__ev_thing *next = shards[i / BUCKETS].buckets[i % BUCKETS];
		shards[i / BUCKETS].buckets[i % BUCKETS] = NULL;
		for (struct weft__ev_thing *t; (t = next);) {
			next = t->next;
			free(t);
		}
	}
	ending_count = when == WEFT_HOOK_IN_CHILD ? 0 : ending_count;
	for (size_t i = 0; i < SHARDS; i++)
		if (when != WEFT_HOOK_BEFORE_FORK)
			pthread_mutex_unlock(&shards[i].lock);
}
