/* things.c: tables of things, in shards that have a lock each.  SPDX-License-Identifier: ISC */
#include "adapters/hook/things.h"

#include <stdlib.h>
#include <string.h>

static size_t hash(const void *key)
{
	return (size_t)(((uintptr_t)key >> 3) * 0x9e3779b97f4a7c15u >> 48);
}

static struct weft_hook_shard *shard_of(struct weft_hook_things *table, const void *key)
{
	return &table->shards[hash(key) % WEFT_HOOK_SHARDS];
}

static struct weft_hook_thing **bucket_of(struct weft_hook_things *table, const void *key)
{
	return &shard_of(table, key)->buckets[hash(key) / WEFT_HOOK_SHARDS % WEFT_HOOK_BUCKETS];
}

/* How many locks of tables this OS thread has.  Where a fork() finds one, a signal handler that forks has interrupted who took
 * it. */
static __thread int held __attribute__((tls_model("initial-exec")));

static void take(struct weft_hook_shard *shard)
{
	held++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	pthread_mutex_lock(&shard->lock);
}

static bool try(struct weft_hook_shard *shard)
{
	held++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	bool taken = pthread_mutex_trylock(&shard->lock) == 0;
	held -= !taken;
	return taken;
}

static void give_back(struct weft_hook_shard *shard)
{
	pthread_mutex_unlock(&shard->lock);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	held--;
}

void weft_hook_things_lock(struct weft_hook_things *table, const void *key)
{
	take(shard_of(table, key));
}

void weft_hook_things_unlock(struct weft_hook_things *table, const void *key)
{
	give_back(shard_of(table, key));
}

void *weft_hook_things_find(struct weft_hook_things *table, const void *key)
{
	struct weft_hook_thing *thing = *bucket_of(table, key);
	while (thing && thing->key != key)
		thing = thing->next;
	return thing;
}

void *weft_hook_things_make(struct weft_hook_things *table, const void *key)
{
	struct weft_hook_thing **bucket = bucket_of(table, key), *thing = calloc(1, table->bytes);
	if (thing) {
		thing->key = key;
		thing->next = *bucket;
		__atomic_store_n(bucket, thing, __ATOMIC_RELAXED);
	}
	return thing;
}

void weft_hook_things_drop(struct weft_hook_things *table, struct weft_hook_thing *thing)
{
	struct weft_hook_thing **at = bucket_of(table, thing->key);
	while (*at && *at != thing)
		at = &(*at)->next;
	if (*at) /* not so in a child that was forked meanwhile, which has forgotten all */
		__atomic_store_n(at, thing->next, __ATOMIC_RELAXED);
	free(thing);
}

void weft_hook_things_each(struct weft_hook_things *table, void (*see)(struct weft_hook_thing *thing, void *data), void *data)
{
	for (size_t i = 0; i < WEFT_HOOK_SHARDS; i++) {
		take(&table->shards[i]);
		for (size_t j = 0; j < WEFT_HOOK_BUCKETS; j++)
			for (struct weft_hook_thing *t = table->shards[i].buckets[j]; t; t = t->next)
				see(t, data);
		give_back(&table->shards[i]);
	}
}

void weft_hook_things_begin(struct weft_hook_thing *thing, enum weft_kind kind, const void *caller)
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

/* From a bucket on. */
uint64_t weft_hook_things_list(struct weft_hook_things *table, uint64_t cursor, unsigned budget)
{
	enum { ALL = WEFT_HOOK_SHARDS * WEFT_HOOK_BUCKETS };
	for (; cursor < ALL && budget > 0; cursor++) {
		struct weft_hook_shard *shard = &table->shards[cursor / WEFT_HOOK_BUCKETS];
		/* Inside an event that a holder of the lock records; what is empty is passed over without the lock. */
		if (!__atomic_load_n(&shard->buckets[cursor % WEFT_HOOK_BUCKETS], __ATOMIC_RELAXED) || !try(shard))
			continue;
		for (struct weft_hook_thing *t = shard->buckets[cursor % WEFT_HOOK_BUCKETS]; t; t = t->next)
			if (t->id && t->home == &weft__hook_thread) {
				weft_pending_at(t->by, t->id, (enum weft_kind)t->kind, t->site, t->since, t->label.text);
				if (t->kind == WEFT_KIND_LOOP)
					weft_still_awaits(t->by, t->id);
				if (t->kept)
					weft_still_awaits(t->kept, t->id);
				budget -= budget > 0;
			}
		give_back(shard);
	}
	return cursor < ALL ? cursor : 0;
}

/* A child's promises are of another trace.  It frees nothing: the handler that forked may have interrupted malloc(). */
static void forget(struct weft_hook_things *table)
{
	for (size_t i = 0; i < WEFT_HOOK_SHARDS; i++) {
		memset(table->shards[i].buckets, 0, sizeof table->shards[i].buckets);
		pthread_mutex_init(&table->shards[i].lock, NULL);
	}
}

void weft_hook_things_fork(struct weft_hook_things *table, enum weft_hook_fork when)
{
	if (when == WEFT_HOOK_IN_CHILD)
		forget(table);
	for (size_t i = 0; when != WEFT_HOOK_IN_CHILD && held == 0 && i < WEFT_HOOK_SHARDS; i++)
		if (when == WEFT_HOOK_BEFORE_FORK)
			pthread_mutex_lock(&table->shards[i].lock);
		else
			pthread_mutex_unlock(&table->shards[i].lock);
}
