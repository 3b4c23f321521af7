/* thing.c: where things are kept, and how one is found by its handle or request.
 *
 * Every handle has four reserved pointers, every request six, which libuv on Unix leaves alone but for the first of a handle (1.0
 * to 1.51).  The last of them holds the thing's tag: found by one load, without a table, without a lock, in signal handlers too.
 * The memory is the program's, who may copy it, use it again without a word, or never have had us write there: so a tag is
 * believed only if it names a thing in use, of the generation that the tag was made for, whose handle or request lies at just
 * this address.
 *
 * Things stand in chunks that are never given back, so that a stale tag leads to memory of ours.  Each OS thread has some to
 * take; what it has too many of goes to the others.  SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <sys/mman.h>

#include "adapters/uv/adapter.h"

enum { CHUNK = 256, CHUNKS = 4096, BATCH = 128 };

static struct weft__uv_thing *chunks[CHUNKS];
static uint32_t places;     /* given to OS threads so far */
static uint32_t free_first; /* a chain of things for everybody; a place counted from 1, 0: none */
static uint64_t secret = 0xa3c59ac2b7d1e64f;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Places are counted from 1. */
static struct weft__uv_thing *at_place(uint32_t place)
{
	struct weft__uv_thing *chunk = __atomic_load_n(&chunks[(place - 1) / CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? &chunk[(place - 1) % CHUNK] : NULL;
}

static uint32_t place_of(const struct weft__uv_thing *thing)
{
	return thing->place; /* while it is in use */
}

weft__uv_tag weft__uv_tag_of(const struct weft__uv_thing *thing)
{
	return thing ? ((uint64_t)__atomic_load_n(&thing->generation, __ATOMIC_RELAXED) << 32 | place_of(thing)) ^ secret : 0;
}

struct weft__uv_thing *weft__uv_find(weft__uv_tag tag)
{
	uint64_t plain = tag ^ __atomic_load_n(&secret, __ATOMIC_RELAXED);
	uint32_t place = (uint32_t)plain;
	if (place - 1 >= __atomic_load_n(&places, __ATOMIC_ACQUIRE))
		return NULL;
	struct weft__uv_thing *thing = at_place(place);
	return thing && __atomic_load_n(&thing->generation, __ATOMIC_RELAXED) == plain >> 32 &&
		       __atomic_load_n(&thing->key, __ATOMIC_RELAXED)
		   ? thing
		   : NULL;
}

static void **tag_in_handle(const void *handle)
{
	return &((uv_handle_t *)handle)->u.reserved[3];
}

static void **tag_in_request(const void *request)
{
	return &((uv_req_t *)request)->reserved[5];
}

static struct weft__uv_thing *find(void *const *tag, const void *key, bool is_request)
{
	struct weft__uv_thing *thing = weft__uv_find((uint64_t)(uintptr_t)__atomic_load_n(tag, __ATOMIC_RELAXED));
	return thing && thing->key == key && thing->is_request == is_request ? thing : NULL;
}

struct weft__uv_thing *weft__uv_find_handle(const void *handle)
{
	return find(tag_in_handle(handle), handle, false);
}

struct weft__uv_thing *weft__uv_find_request(const void *request)
{
	return find(tag_in_request(request), request, true);
}

static void give_batch(struct weft__uv_here *here, uint32_t count)
{
	pthread_mutex_lock(&lock);
	while (here->free_first && count-- > 0) {
		uint32_t place = here->free_first;
		struct weft__uv_thing *thing = at_place(place);
		here->free_first = thing->place;
		here->free_count--;
		thing->place = free_first;
		free_first = place;
	}
	pthread_mutex_unlock(&lock);
}

void weft__uv_thread_ends(void)
{
	struct weft__uv_here *here = &weft__uv_here;
	if (here->epoch == weft__hook_epoch)
		give_batch(here, UINT32_MAX);
	here->epoch = 0;
}

/* More things for this OS thread. */
static void take_batch(struct weft__uv_here *here)
{
	pthread_mutex_lock(&lock);
	while (free_first && here->free_count < BATCH) {
		uint32_t place = free_first;
		struct weft__uv_thing *thing = at_place(place);
		free_first = thing->place;
		thing->place = here->free_first;
		here->free_first = place;
		here->free_count++;
	}
	if (!here->free_first && places < CHUNK * CHUNKS) {
		struct weft__uv_thing *chunk = chunks[places / CHUNK];
		if (!chunk) {
			chunk = mmap(NULL, CHUNK * sizeof *chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (chunk == MAP_FAILED)
				chunk = NULL;
			__atomic_store_n(&chunks[places / CHUNK], chunk, __ATOMIC_RELEASE);
		}
		for (uint32_t i = CHUNK; chunk && i > 0; i--) {
			chunk[i - 1].place = here->free_first;
			here->free_first = places + i;
		}
		here->free_count += chunk ? CHUNK : 0;
		__atomic_store_n(&places, places + (chunk ? CHUNK : 0), __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
}

static struct weft__uv_thing *make(const void *key)
{
	struct weft__uv_here *here = &weft__uv_here;
	if (!here->free_first)
		take_batch(here);
	if (!here->free_first)
		return NULL;
	uint32_t place = here->free_first, generation;
	struct weft__uv_thing *thing = at_place(place);
	here->free_first = thing->place;
	here->free_count--;
	generation = thing->generation + 1;
	__builtin_memset(thing, 0, offsetof(struct weft__uv_thing, label) + offsetof(struct weft_hook_label, text) + 1);
	thing->place = place;
	thing->home = here;
	__atomic_store_n(&thing->generation, generation, __ATOMIC_RELAXED);
	__atomic_store_n(&thing->key, key ? key : thing, __ATOMIC_RELEASE);
	return thing;
}

struct weft__uv_thing *weft__uv_thing_of_handle(struct weft__uv_copy *copy, const void *handle)
{
	struct weft__uv_thing *thing = make(handle);
	if (thing) {
		thing->copy = copy;
		thing->loop = ((const uv_handle_t *)handle)->loop;
		__atomic_store_n(tag_in_handle(handle), (void *)(uintptr_t)weft__uv_tag_of(thing), __ATOMIC_RELAXED);
	}
	return thing;
}

struct weft__uv_thing *weft__uv_thing_of_request(struct weft__uv_copy *copy, const void *request, uv_loop_t *loop)
{
	struct weft__uv_thing *thing = make(request);
	if (thing) {
		thing->copy = copy;
		thing->loop = loop;
		thing->is_request = true;
		__atomic_store_n(tag_in_request(request), (void *)(uintptr_t)weft__uv_tag_of(thing), __ATOMIC_RELAXED);
	}
	return thing;
}

struct weft__uv_thing *weft__uv_thing_of_datagram(struct weft__uv_thing *socket)
{
	struct weft__uv_thing *thing = make(NULL);
	if (thing) {
		thing->copy = socket->copy;
		thing->loop = socket->loop;
		thing->is_datagram = true;
	}
	return thing;
}

void weft__uv_thing_free(struct weft__uv_thing *thing)
{
	struct weft__uv_here *here = &weft__uv_here;
	uint32_t place = place_of(thing);
	__atomic_store_n(&thing->key, NULL, __ATOMIC_RELAXED);
	thing->place = here->free_first;
	here->free_first = place;
	if (++here->free_count > CHUNK + 2 * BATCH)
		give_batch(here, BATCH);
}

struct weft__uv_thing *weft__uv_next(uint32_t *at)
{
	uint32_t end = __atomic_load_n(&places, __ATOMIC_ACQUIRE);
	while (*at < end) {
		struct weft__uv_thing *thing = at_place(++*at);
		if (thing && __atomic_load_n(&thing->key, __ATOMIC_ACQUIRE))
			return thing;
	}
	return NULL;
}

void weft__uv_things_lock(void)
{
	pthread_mutex_lock(&lock);
}

void weft__uv_things_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* In a child after fork(), or when recording begins anew: the lock is held.  Chunks stay, places are given out from the first
 * on; generations go on counting, and another secret makes no sense of old tags. */
void weft__uv_things_forget(void)
{
	secret = secret * 6364136223846793005u + 1442695040888963407u;
	for (uint32_t i = 0; i < places; i++)
		if (at_place(i + 1))
			__atomic_store_n(&at_place(i + 1)->key, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&places, 0, __ATOMIC_RELEASE);
	free_first = 0;
}
