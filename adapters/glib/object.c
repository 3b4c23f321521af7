/* object.c: objects by address.
 *
 * GLib's structs have no space for a tag, so a hash table finds the object of an address.  The hash table is divided into
 * stripes; the lock of a stripe is held for a few instructions.  A thread that does not get the lock soon gives up and loses an
 * event, because the owner of the lock may be interrupted by a signal handler on this very thread.  Objects are in chunks that
 * are never freed, so that a stale tag still points to valid memory.  Each stripe has its own list of free objects.
 * SPDX-License-Identifier: ISC */
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "adapters/glib/object.h"

enum { STRIPE_COUNT = 1024, CHAINS_PER_STRIPE = 14, MAX_SPINS = 20000 };

struct stripe {
	uint32_t lock, free_first, chains[CHAINS_PER_STRIPE];
};

static struct stripe stripes[STRIPE_COUNT] __attribute__((aligned(64)));

static bool lock_stripe(struct stripe *s)
{
	for (unsigned i = 0; __atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE); i++) {
		if (i == MAX_SPINS)
			return false;
		if (i % 64 == 63)
			sched_yield();
	}
	return true;
}

static void unlock_stripe(struct stripe *s)
{
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

static struct stripe *find_stripe(enum weft__glib_type type, const void *key, uint32_t **chain)
{
	uint64_t hash = ((uint64_t)(uintptr_t)key + type) * 0x9e3779b97f4a7c15u;
	struct stripe *s = &stripes[hash >> 54];
	*chain = &s->chains[(hash >> 40 & 0x3fff) % CHAINS_PER_STRIPE];
	return s;
}

/* Call it with the stripe's lock held. */
static struct weft__glib_object *find_in_chain(const uint32_t *chain, enum weft__glib_type type, const void *key)
{
	for (uint32_t index = *chain; index;) {
		struct weft__glib_object *tracked = weft__glib_object_at(index);
		if (tracked->key == key && tracked->type == type)
			return tracked;
		index = tracked->next;
	}
	return NULL;
}

static void unlink_from(uint32_t *chain, struct weft__glib_object *tracked)
{
	while (*chain && *chain != tracked->index)
		chain = &weft__glib_object_at(*chain)->next;
	if (*chain)
		*chain = tracked->next;
}

static struct weft__glib_object *allocate_tracked(struct stripe *s)
{
	uint32_t index = s->free_first;
	if (index) {
		struct weft__glib_object *tracked = weft__glib_object_at(index);
		s->free_first = tracked->next;
		return tracked;
	}
	index = __atomic_load_n(&weft__glib_object_count, __ATOMIC_RELAXED);
	do {
		if (index == WEFT__GLIB_CHUNK * WEFT__GLIB_CHUNKS)
			return NULL;
		struct weft__glib_object **at = &weft__glib_chunks[index / WEFT__GLIB_CHUNK],
					 *chunk = __atomic_load_n(at, __ATOMIC_ACQUIRE), *none = NULL;
		if (chunk)
			continue;
		chunk = mmap(NULL, WEFT__GLIB_CHUNK * sizeof *chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (chunk == MAP_FAILED)
			return NULL;
		if (!__atomic_compare_exchange_n(at, &none, chunk, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			munmap(chunk, WEFT__GLIB_CHUNK * sizeof *chunk);
	} while (
	    !__atomic_compare_exchange_n(&weft__glib_object_count, &index, index + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	struct weft__glib_object *tracked = weft__glib_object_at(index + 1);
	tracked->index = index + 1;
	return tracked;
}

static void free_tracked(struct stripe *s, uint32_t *chain, struct weft__glib_object *tracked)
{
	unlink_from(chain, tracked);
	__atomic_store_n(&tracked->key, NULL, __ATOMIC_RELAXED);
	tracked->next = s->free_first;
	s->free_first = tracked->index;
}

struct weft__glib_object *weft__glib_object_add(enum weft__glib_type type, const void *key)
{
	uint32_t *chain;
	struct stripe *s = find_stripe(type, key, &chain);
	if (!lock_stripe(s))
		return NULL;
	struct weft__glib_object *old = find_in_chain(chain, type, key);
	if (old && old->cancellable) { /* the chain of a GCancellable has its own lock */
		unlock_stripe(s);
		weft__glib_cancel_remove(old);
		if (!lock_stripe(s))
			return NULL;
		old = find_in_chain(chain, type, key);
	}
	if (old)
		free_tracked(s, chain, old);
	struct weft__glib_object *tracked = allocate_tracked(s);
	if (tracked) {
		uint32_t index = tracked->index, generation = tracked->generation + 1;
		memset(tracked, 0, offsetof(struct weft__glib_object, label) + 2);
		tracked->index = index;
		__atomic_store_n(&tracked->type, (uint8_t)type, __ATOMIC_RELAXED);
		tracked->owner_thread = weft__glib_get_here();
		tracked->next = *chain;
		__atomic_store_n(&tracked->generation, generation, __ATOMIC_RELAXED);
		__atomic_store_n(&tracked->key, key, __ATOMIC_RELEASE);
		*chain = index;
		*weft__glib_recent(key) = tracked;
	}
	unlock_stripe(s);
	return tracked;
}

struct weft__glib_object *weft__glib_object_search(enum weft__glib_type type, const void *key)
{
	uint32_t *chain;
	if (!key)
		return NULL;
	struct stripe *s = find_stripe(type, key, &chain);
	if (!__atomic_load_n(chain, __ATOMIC_RELAXED) || !lock_stripe(s))
		return NULL;
	struct weft__glib_object *tracked = find_in_chain(chain, type, key);
	unlock_stripe(s);
	if (tracked)
		*weft__glib_recent(key) = tracked;
	return tracked;
}

void weft__glib_object_remove(struct weft__glib_object *tracked)
{
	uint32_t *chain;
	if (tracked->cancellable)
		weft__glib_cancel_remove(tracked);
	struct stripe *s = find_stripe(tracked->type, tracked->key, &chain);
	if (!lock_stripe(s))
		return;
	free_tracked(s, chain, tracked);
	unlock_stripe(s);
}

struct weft__glib_object *weft__glib_object_next(uint32_t *at)
{
	uint32_t end = __atomic_load_n(&weft__glib_object_count, __ATOMIC_ACQUIRE);
	while (*at < end) {
		struct weft__glib_object *tracked = weft__glib_object_at(++*at);
		if (tracked && __atomic_load_n(&tracked->key, __ATOMIC_ACQUIRE))
			return tracked;
	}
	return NULL;
}

/* Removes all objects; runs in a child after fork(), which has one thread, or when another recording starts.  Generations keep
 * counting. */
void weft__glib_objects_clear(void)
{
	for (uint32_t i = 1; i <= weft__glib_object_count; i++) {
		struct weft__glib_object *tracked = weft__glib_object_at(i);
		if (tracked)
			__atomic_store_n(&tracked->key, NULL, __ATOMIC_RELAXED);
	}
	memset(stripes, 0, sizeof stripes);
	__atomic_store_n(&weft__glib_object_count, 0, __ATOMIC_RELEASE);
}
