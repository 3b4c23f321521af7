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

#include "adapters/hook/load.h"
#include "adapters/uv/adapter.h"

enum { CHUNK = WEFT__UV_CHUNK, CHUNKS = WEFT__UV_CHUNKS, BATCH = 128 };

struct weft__uv_thing *weft__uv_chunks[CHUNKS];
uint32_t weft__uv_places;
uint64_t weft__uv_secret = 0xa3c59ac2b7d1e64f;

static uint32_t free_first; /* a chain of things for everybody; a place counted from 1, 0: none */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void give_batch(struct weft__uv_here *here, uint32_t count)
{
	sigset_t signals;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	while (here->free_first && count-- > 0) {
		uint32_t place = here->free_first;
		struct weft__uv_thing *thing = weft__uv_at_place(place);
		here->free_first = thing->place;
		here->free_count--;
		thing->place = free_first;
		free_first = place;
	}
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
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
	sigset_t signals;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	while (free_first && here->free_count < BATCH) {
		uint32_t place = free_first;
		struct weft__uv_thing *thing = weft__uv_at_place(place);
		free_first = thing->place;
		thing->place = here->free_first;
		here->free_first = place;
		here->free_count++;
	}
	if (!here->free_first && weft__uv_places < CHUNK * CHUNKS) {
		struct weft__uv_thing *chunk = weft__uv_chunks[weft__uv_places / CHUNK];
		if (!chunk) {
			chunk = mmap(NULL, CHUNK * sizeof *chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (chunk == MAP_FAILED)
				chunk = NULL;
			__atomic_store_n(&weft__uv_chunks[weft__uv_places / CHUNK], chunk, __ATOMIC_RELEASE);
		}
		for (uint32_t i = CHUNK; chunk && i > 0; i--) {
			chunk[i - 1].place = here->free_first;
			here->free_first = weft__uv_places + i;
		}
		here->free_count += chunk ? CHUNK : 0;
		__atomic_store_n(&weft__uv_places, weft__uv_places + (chunk ? CHUNK : 0), __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
}

static struct weft__uv_thing *make(const void *key)
{
	struct weft__uv_here *here = &weft__uv_here;
	if (!here->free_first)
		take_batch(here);
	if (!here->free_first)
		return NULL;
	uint32_t place = here->free_first, generation;
	struct weft__uv_thing *thing = weft__uv_at_place(place);
	here->free_first = thing->place;
	here->free_count--;
	generation = thing->generation + 1;
	/* One by one: what compilers make of a memset of this size takes longer than all else here. */
	thing->copy = NULL;
	thing->loop = NULL;
	thing->home = here;
	thing->place = place;
	thing->id = thing->input = thing->kept = thing->by = 0;
	thing->since = thing->input_since = 0;
	thing->owner = 0;
	thing->site = thing->read_site = NULL;
	thing->what = 0;
	thing->children = 0;
	thing->calls = (struct weft_hook_calls){0};
	thing->fd = -1;
	thing->connects = thing->is_untouched = false;
	thing->kind = 0;
	thing->label.length = 0;
	thing->label.text[0] = 0;
	thing->is_request = thing->is_datagram = thing->has_datagrams = thing->is_overdue = false;
	thing->reads = thing->is_stopped = thing->is_closing = thing->in_pool = false;
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
		__atomic_store_n(weft__uv_tag_in_handle(handle), (void *)(uintptr_t)weft__uv_tag_of(thing), __ATOMIC_RELAXED);
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
		__atomic_store_n(weft__uv_tag_in_request(request), (void *)(uintptr_t)weft__uv_tag_of(thing), __ATOMIC_RELAXED);
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
	uint32_t place = thing->place;
	__atomic_store_n(&thing->key, NULL, __ATOMIC_RELAXED);
	thing->place = here->free_first;
	here->free_first = place;
	if (++here->free_count > CHUNK + 2 * BATCH)
		give_batch(here, BATCH);
}

struct weft__uv_thing *weft__uv_next(uint32_t *at)
{
	uint32_t end = __atomic_load_n(&weft__uv_places, __ATOMIC_ACQUIRE);
	while (*at < end) {
		struct weft__uv_thing *thing = weft__uv_at_place(++*at);
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

/* In a child after fork(), or when recording begins anew: the lock is held.  Chunks stay, places are given out from the first on;
 * generations go on counting, and another secret makes no sense of old tags. */
void weft__uv_things_forget(void)
{
	weft__uv_secret = weft__uv_secret * 6364136223846793005u + 1442695040888963407u;
	for (uint32_t i = 0; i < weft__uv_places; i++)
		if (weft__uv_at_place(i + 1))
			__atomic_store_n(&weft__uv_at_place(i + 1)->key, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&weft__uv_places, 0, __ATOMIC_RELEASE);
	free_first = 0;
}
