/* thing.c: where things are kept, and how one is found by its object.
 *
 * GLib's structs have no room for us.  A hash table is cut in stripes, each with a lock of its own, which is held for a few
 * instructions; who does not get it soon does without, and an event is lost: a signal handler may have interrupted its owner.
 * Things stand in chunks that are never given back, so that a stale tag leads to memory of ours; a stripe keeps its own free
 * ones. SPDX-License-Identifier: ISC */
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "adapters/glib/adapter.h"

enum { STRIPES = 1024, CHAINS = 14, SPINS = 20000 };

struct stripe {
	uint32_t lock, free_first, chains[CHAINS];
};

struct weft__glib_thing *weft__glib_chunks[WEFT__GLIB_CHUNKS];
uint32_t weft__glib_places;
static struct stripe stripes[STRIPES] __attribute__((aligned(64)));

static bool lock(struct stripe *s)
{
	for (unsigned i = 0; __atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE); i++) {
		if (i == SPINS)
			return false;
		if (i % 64 == 63)
			sched_yield();
	}
	return true;
}

static void unlock(struct stripe *s)
{
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

static struct stripe *stripe_of(enum weft__glib_type type, const void *key, uint32_t **chain)
{
	uint64_t hash = ((uint64_t)(uintptr_t)key + type) * 0x9e3779b97f4a7c15u;
	struct stripe *s = &stripes[hash >> 54];
	*chain = &s->chains[(hash >> 40 & 0x3fff) % CHAINS];
	return s;
}

/* Under the lock of its stripe. */
static struct weft__glib_thing *find(const uint32_t *chain, enum weft__glib_type type, const void *key)
{
	for (uint32_t place = *chain; place;) {
		struct weft__glib_thing *thing = weft__glib_thing_at(place);
		if (thing->key == key && thing->type == type)
			return thing;
		place = thing->next;
	}
	return NULL;
}

static void unlink_from(uint32_t *chain, struct weft__glib_thing *thing)
{
	while (*chain && *chain != thing->place)
		chain = &weft__glib_thing_at(*chain)->next;
	if (*chain)
		*chain = thing->next;
}

static struct weft__glib_thing *take(struct stripe *s)
{
	uint32_t place = s->free_first;
	if (place) {
		struct weft__glib_thing *thing = weft__glib_thing_at(place);
		s->free_first = thing->next;
		return thing;
	}
	place = __atomic_load_n(&weft__glib_places, __ATOMIC_RELAXED);
	do {
		if (place == WEFT__GLIB_CHUNK * WEFT__GLIB_CHUNKS)
			return NULL;
		struct weft__glib_thing **at = &weft__glib_chunks[place / WEFT__GLIB_CHUNK],
					*chunk = __atomic_load_n(at, __ATOMIC_ACQUIRE), *none = NULL;
		if (chunk)
			continue;
		chunk = mmap(NULL, WEFT__GLIB_CHUNK * sizeof *chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (chunk == MAP_FAILED)
			return NULL;
		if (!__atomic_compare_exchange_n(at, &none, chunk, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			munmap(chunk, WEFT__GLIB_CHUNK * sizeof *chunk);
	} while (!__atomic_compare_exchange_n(&weft__glib_places, &place, place + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	struct weft__glib_thing *thing = weft__glib_thing_at(place + 1);
	thing->place = place + 1;
	return thing;
}

static void put_back(struct stripe *s, uint32_t *chain, struct weft__glib_thing *thing)
{
	unlink_from(chain, thing);
	__atomic_store_n(&thing->key, NULL, __ATOMIC_RELAXED);
	thing->next = s->free_first;
	s->free_first = thing->place;
}

struct weft__glib_thing *weft__glib_thing_add(enum weft__glib_type type, const void *key)
{
	uint32_t *chain;
	struct stripe *s = stripe_of(type, key, &chain);
	if (!lock(s))
		return NULL;
	struct weft__glib_thing *old = find(chain, type, key);
	if (old && old->cancellable) { /* whose list has a lock of its own */
		unlock(s);
		weft__glib_cancel_remove(old);
		if (!lock(s))
			return NULL;
		old = find(chain, type, key);
	}
	if (old)
		put_back(s, chain, old);
	struct weft__glib_thing *thing = take(s);
	if (thing) {
		uint32_t place = thing->place, generation = thing->generation + 1;
		memset(thing, 0, offsetof(struct weft__glib_thing, label) + 2);
		thing->place = place;
		__atomic_store_n(&thing->type, (uint8_t)type, __ATOMIC_RELAXED);
		thing->home = &weft__glib_here;
		thing->next = *chain;
		__atomic_store_n(&thing->generation, generation, __ATOMIC_RELAXED);
		__atomic_store_n(&thing->key, key, __ATOMIC_RELEASE);
		*chain = place;
		*weft__glib_recent(key) = thing;
	}
	unlock(s);
	return thing;
}

struct weft__glib_thing *weft__glib_thing_search(enum weft__glib_type type, const void *key)
{
	uint32_t *chain;
	if (!key)
		return NULL;
	struct stripe *s = stripe_of(type, key, &chain);
	if (!__atomic_load_n(chain, __ATOMIC_RELAXED) || !lock(s))
		return NULL;
	struct weft__glib_thing *thing = find(chain, type, key);
	unlock(s);
	if (thing)
		*weft__glib_recent(key) = thing;
	return thing;
}

void weft__glib_thing_remove(struct weft__glib_thing *thing)
{
	uint32_t *chain;
	if (thing->cancellable)
		weft__glib_cancel_remove(thing);
	struct stripe *s = stripe_of(thing->type, thing->key, &chain);
	if (!lock(s))
		return;
	put_back(s, chain, thing);
	unlock(s);
}

struct weft__glib_thing *weft__glib_thing_next(uint32_t *at)
{
	uint32_t end = __atomic_load_n(&weft__glib_places, __ATOMIC_ACQUIRE);
	while (*at < end) {
		struct weft__glib_thing *thing = weft__glib_thing_at(++*at);
		if (thing && __atomic_load_n(&thing->key, __ATOMIC_ACQUIRE))
			return thing;
	}
	return NULL;
}

/* In a child after fork(), where no other OS thread is; or when recording begins anew.  Generations go on counting. */
void weft__glib_things_forget(void)
{
	for (uint32_t i = 1; i <= weft__glib_places; i++) {
		struct weft__glib_thing *thing = weft__glib_thing_at(i);
		if (thing)
			__atomic_store_n(&thing->key, NULL, __ATOMIC_RELAXED);
	}
	memset(stripes, 0, sizeof stripes);
	__atomic_store_n(&weft__glib_places, 0, __ATOMIC_RELEASE);
}
