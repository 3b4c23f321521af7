/* object_table.c: hash tables of objects, divided into shards that each have a lock.  SPDX-License-Identifier: ISC */
#include "adapters/hook/object_table.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/session.h"

static size_t hash_key(const void *key)
{
	return (size_t)(((uintptr_t)key >> 3) * 0x9e3779b97f4a7c15u >> 48);
}

static struct weft_hook_shard *shard_of(struct weft_hook_object_table *table, const void *key)
{
	return &table->shards[hash_key(key) % WEFT_HOOK_SHARDS];
}

static struct weft_hook_object **bucket_of(struct weft_hook_object_table *table, const void *key)
{
	return &shard_of(table, key)->buckets[hash_key(key) / WEFT_HOOK_SHARDS % WEFT_HOOK_BUCKETS];
}

/* Number of locks that this thread holds.  If fork() finds that this thread holds a lock, the fork comes from a signal handler
 * that has interrupted the owner. */
static __thread int held_locks __attribute__((tls_model("initial-exec")));

static __attribute__((noinline)) void wait_for_lock(struct weft_hook_shard *shard)
{
	int saved_errno = errno;
	while (__atomic_exchange_n(&shard->lock, 2, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, &shard->lock, FUTEX_WAIT_PRIVATE, 2, NULL);
	errno = saved_errno;
}

static __attribute__((noinline)) void wake_waiter(struct weft_hook_shard *shard)
{
	int saved_errno = errno;
	syscall(SYS_futex, &shard->lock, FUTEX_WAKE_PRIVATE, 1);
	errno = saved_errno;
}

/* The lock's word is 0 (free), 1 (taken) or 2 (taken, with waiters). pthread_mutex_lock() is not used, because it would run this
 * library's wrapper. */
static void acquire_lock(struct weft_hook_shard *shard)
{
	uint32_t is_free = 0;
	if (__builtin_expect(
		!__atomic_compare_exchange_n(&shard->lock, &is_free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED), 0))
		wait_for_lock(shard);
}

static void release_lock(struct weft_hook_shard *shard)
{
	if (__builtin_expect(__atomic_exchange_n(&shard->lock, 0, __ATOMIC_RELEASE) == 2, 0))
		wake_waiter(shard);
}

static void lock_shard(struct weft_hook_shard *shard)
{
	held_locks++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	acquire_lock(shard);
}

static bool try_lock_shard(struct weft_hook_shard *shard)
{
	uint32_t is_free = 0;
	held_locks++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	bool taken = __atomic_compare_exchange_n(&shard->lock, &is_free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	held_locks -= !taken;
	return taken;
}

static void unlock_shard(struct weft_hook_shard *shard)
{
	release_lock(shard);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	held_locks--;
}

void weft_hook_object_table_lock(struct weft_hook_object_table *table, const void *key)
{
	lock_shard(shard_of(table, key));
}

void weft_hook_object_table_unlock(struct weft_hook_object_table *table, const void *key)
{
	unlock_shard(shard_of(table, key));
}

bool weft_hook_object_table_is_locked(void)
{
	return held_locks > 0;
}

void *weft_hook_object_find(struct weft_hook_object_table *table, const void *key)
{
	struct weft_hook_object *object = *bucket_of(table, key);
	while (object && object->key != key)
		object = object->next;
	return object;
}

void *weft_hook_object_create(struct weft_hook_object_table *table, const void *key)
{
	struct weft_hook_shard *shard = shard_of(table, key);
	struct weft_hook_object **bucket = bucket_of(table, key), *object = shard->spares;
	if (object) {
		shard->spares = object->next;
		shard->spare_count--;
		memset(object, 0, table->bytes);
	} else {
		object = calloc(1, table->bytes);
	}
	if (object) {
		object->key = key;
		object->next = *bucket;
		__atomic_store_n(bucket, object, __ATOMIC_RELAXED);
	}
	return object;
}

void weft_hook_object_remove(struct weft_hook_object_table *table, struct weft_hook_object *object)
{
	struct weft_hook_object **at = bucket_of(table, object->key);
	while (*at && *at != object)
		at = &(*at)->next;
	if (*at) /* a fork while the lock was held may have cleared the table in the child */
		__atomic_store_n(at, object->next, __ATOMIC_RELAXED);
	struct weft_hook_shard *shard = shard_of(table, object->key);
	if (shard->spare_count >= WEFT_HOOK_SPARES) {
		free(object);
		return;
	}
	object->next = shard->spares;
	shard->spares = object;
	shard->spare_count++;
}

void weft_hook_object_table_each(
    struct weft_hook_object_table *table, void (*visit)(struct weft_hook_object *object, void *data), void *data)
{
	for (size_t i = 0; i < WEFT_HOOK_SHARDS; i++) {
		lock_shard(&table->shards[i]);
		for (size_t j = 0; j < WEFT_HOOK_BUCKETS; j++)
			for (struct weft_hook_object *t = table->shards[i].buckets[j]; t; t = t->next)
				visit(t, data);
		unlock_shard(&table->shards[i]);
	}
}

void weft_hook_object_begin(struct weft_hook_object *object, enum weft_kind kind, const void *caller)
{
	const struct weft_hook_thread *here = weft_hook_thread();
	object->kind = (uint8_t)kind;
	object->by = here->running;
	object->owner_thread = here;
	object->site = weft_hook_site(caller);
	object->id = weft_create_at(here->running, kind, object->site);
	object->since = weft__stream->last;
	weft_hook_stack(object->id, caller);
}

void weft_hook_object_begin_older(struct weft_hook_object *object, enum weft_kind kind)
{
	object->kind = (uint8_t)kind;
	object->by = WEFT_SYSTEM_ID;
	object->owner_thread = weft_hook_thread();
	object->since = weft__hook_standby_since;
	object->id = weft_pending_at(object->by, 0, kind, NULL, object->since, NULL);
}

/* The cursor is the number of a bucket. */
uint64_t weft_hook_object_table_list(struct weft_hook_object_table *table, uint64_t cursor, unsigned budget)
{
	enum { ALL_BUCKETS = WEFT_HOOK_SHARDS * WEFT_HOOK_BUCKETS };
	for (; cursor < ALL_BUCKETS && budget > 0; cursor++) {
		struct weft_hook_shard *shard = &table->shards[cursor / WEFT_HOOK_BUCKETS];
		/* This function may run inside of an event that the lock's owner records, so it never waits for the lock.  Empty
		 * buckets need no lock. */
		if (!__atomic_load_n(&shard->buckets[cursor % WEFT_HOOK_BUCKETS], __ATOMIC_RELAXED) || !try_lock_shard(shard))
			continue;
		for (struct weft_hook_object *t = shard->buckets[cursor % WEFT_HOOK_BUCKETS]; t; t = t->next)
			if (t->id && t->owner_thread == weft__hook_get_thread()) {
				weft_pending_at(t->by, t->id, (enum weft_kind)t->kind, t->site, t->since, t->label.text);
				if (t->awaited_by)
					weft_still_awaits(t->awaited_by, t->id);
				if (table->list_more)
					table->list_more(t);
				budget -= budget > 0;
			}
		unlock_shard(shard);
	}
	return cursor < ALL_BUCKETS ? cursor : 0;
}

void weft_hook_object_table_clear(struct weft_hook_object_table *table)
{
	for (size_t i = 0; i < WEFT_HOOK_SHARDS; i++) {
		lock_shard(&table->shards[i]);
		for (size_t j = 0; j < WEFT_HOOK_BUCKETS; j++) {
			struct weft_hook_object *next, *object = table->shards[i].buckets[j];
			__atomic_store_n(&table->shards[i].buckets[j], NULL, __ATOMIC_RELAXED);
			for (; object; object = next) {
				next = object->next;
				free(object);
			}
		}
		unlock_shard(&table->shards[i]);
	}
}

/* Clears the table in the child of a fork, because the promises belong to the parent's trace.  The function frees no memory,
 * because the signal handler that forked may have interrupted malloc(). */
static void clear_table(struct weft_hook_object_table *table)
{
	memset(table->shards, 0, sizeof table->shards);
}

void weft_hook_object_table_fork(struct weft_hook_object_table *table, enum weft_hook_fork when)
{
	if (when == WEFT_HOOK_IN_CHILD)
		clear_table(table);
	for (size_t i = 0; when != WEFT_HOOK_IN_CHILD && held_locks == 0 && i < WEFT_HOOK_SHARDS; i++)
		if (when == WEFT_HOOK_BEFORE_FORK)
			acquire_lock(&table->shards[i]);
		else
			release_lock(&table->shards[i]);
}
