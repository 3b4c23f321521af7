/* things.c: tables of things, in shards that have a lock each.  SPDX-License-Identifier: ISC */
#include "adapters/hook/things.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static __attribute__((noinline)) void wait_for(struct weft_hook_shard *shard)
{
	int kept = errno;
	while (__atomic_exchange_n(&shard->lock, 2, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, &shard->lock, FUTEX_WAIT_PRIVATE, 2, NULL);
	errno = kept;
}

static __attribute__((noinline)) void wake_for(struct weft_hook_shard *shard)
{
	int kept = errno;
	syscall(SYS_futex, &shard->lock, FUTEX_WAKE_PRIVATE, 1);
	errno = kept;
}

/* A lock is free (0), taken (1), or taken and waited for (2).  Calls of pthread_mutex_lock() would go through the wrapper that
 * this library has for programs. */
static void lock(struct weft_hook_shard *shard)
{
	uint32_t is_free = 0;
	if (__builtin_expect(
		!__atomic_compare_exchange_n(&shard->lock, &is_free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED), 0))
		wait_for(shard);
}

static void unlock(struct weft_hook_shard *shard)
{
	if (__builtin_expect(__atomic_exchange_n(&shard->lock, 0, __ATOMIC_RELEASE) == 2, 0))
		wake_for(shard);
}

static void take(struct weft_hook_shard *shard)
{
	held++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	lock(shard);
}

static bool try(struct weft_hook_shard *shard)
{
	uint32_t is_free = 0;
	held++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	bool taken = __atomic_compare_exchange_n(&shard->lock, &is_free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	held -= !taken;
	return taken;
}

static void give_back(struct weft_hook_shard *shard)
{
	unlock(shard);
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

bool weft_hook_things_is_held(void)
{
	return held > 0;
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
	struct weft_hook_shard *shard = shard_of(table, key);
	struct weft_hook_thing **bucket = bucket_of(table, key), *thing = shard->spares;
	if (thing) {
		shard->spares = thing->next;
		shard->spare_count--;
		memset(thing, 0, table->bytes);
	} else {
		thing = calloc(1, table->bytes);
	}
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
	struct weft_hook_shard *shard = shard_of(table, thing->key);
	if (shard->spare_count >= WEFT_HOOK_SPARES) {
		free(thing);
		return;
	}
	thing->next = shard->spares;
	shard->spares = thing;
	shard->spare_count++;
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

void weft_hook_things_begin_older(struct weft_hook_thing *thing, enum weft_kind kind)
{
	thing->kind = (uint8_t)kind;
	thing->by = WEFT_SYSTEM_ID;
	thing->home = weft_hook_thread();
	thing->since = weft__hook_since;
	thing->id = weft_pending_at(thing->by, 0, kind, NULL, thing->since, NULL);
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
				if (t->kept)
					weft_still_awaits(t->kept, t->id);
				if (table->still)
					table->still(t);
				budget -= budget > 0;
			}
		give_back(shard);
	}
	return cursor < ALL ? cursor : 0;
}

void weft_hook_things_forget(struct weft_hook_things *table)
{
	for (size_t i = 0; i < WEFT_HOOK_SHARDS; i++) {
		take(&table->shards[i]);
		for (size_t j = 0; j < WEFT_HOOK_BUCKETS; j++) {
			struct weft_hook_thing *next, *thing = table->shards[i].buckets[j];
			__atomic_store_n(&table->shards[i].buckets[j], NULL, __ATOMIC_RELAXED);
			for (; thing; thing = next) {
				next = thing->next;
				free(thing);
			}
		}
		give_back(&table->shards[i]);
	}
}

/* A child's promises are of another trace.  It frees nothing: the handler that forked may have interrupted malloc(). */
static void forget(struct weft_hook_things *table)
{
	memset(table->shards, 0, sizeof table->shards);
}

void weft_hook_things_fork(struct weft_hook_things *table, enum weft_hook_fork when)
{
	if (when == WEFT_HOOK_IN_CHILD)
		forget(table);
	for (size_t i = 0; when != WEFT_HOOK_IN_CHILD && held == 0 && i < WEFT_HOOK_SHARDS; i++)
		if (when == WEFT_HOOK_BEFORE_FORK)
			lock(&table->shards[i]);
		else
			unlock(&table->shards[i]);
}
