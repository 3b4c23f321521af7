/* object.c: finds the adapter's objects by handle or request.
 *
 * Every handle of libuv has four reserved pointers, and every request six. libuv on Unix does not use them, except the first one
 * of a handle (1.0 to 1.51).  The last reserved pointer contains the object's tag, so one load finds the object, without a table
 * or a lock, also in signal handlers.  The memory belongs to the program, which may copy or reuse it, and the tag may never have
 * been written.  So a tag is valid only if it names a used object of the tag's generation whose handle or request has exactly
 * this address.
 *
 * Objects are in chunks that are never freed, so that a stale tag still points to valid memory.  Each thread has a list of free
 * objects, and returns some of them if it has too many.  Threads that use few objects share a chunk.
 *
 * A process may have thousands of threads that each run a loop, so no thread visits the objects of all threads: a thread notes
 * the chunks of its objects, and each chunk notes the loops of its requests.  SPDX-License-Identifier: ISC */
#include "adapters/uv/object.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "adapters/hook/signals.h"

enum { CHUNK_OBJECTS = WEFT__UV_CHUNK, MAX_CHUNKS = WEFT__UV_CHUNKS, BATCH_OBJECTS = 128, FIRST_BATCH_OBJECTS = 16 };

static uint32_t free_first;                   /* index of the first object in the shared free list, counted from 1; 0: none */
static uint64_t chunk_loops[WEFT__UV_CHUNKS]; /* bits of hashed loops whose requests the chunk has contained */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void return_free_batch(struct weft__uv_here *here, uint32_t count)
{
	sigset_t signals;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	while (here->free_first && count-- > 0) {
		uint32_t index = here->free_first;
		struct weft__uv_object *object = weft__uv_object_at(index);
		here->free_first = object->index;
		here->free_count--;
		object->index = free_first;
		free_first = index;
	}
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
}

void weft__uv_thread_end(void)
{
	struct weft__uv_here *here = weft__uv_get_here();
	if (here->epoch == weft__hook_epoch)
		return_free_batch(here, UINT32_MAX);
	here->epoch = 0;
}

/* Adds the objects of a new chunk to the shared free list. */
static void make_chunk(void)
{
	const uint32_t count = weft__uv_object_count;
	struct weft__uv_object *chunk = weft__uv_chunks[count / CHUNK_OBJECTS];
	if (!chunk) {
		chunk = mmap(NULL, CHUNK_OBJECTS * sizeof *chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (chunk == MAP_FAILED)
			return;
		__atomic_store_n(&weft__uv_chunks[count / CHUNK_OBJECTS], chunk, __ATOMIC_RELEASE);
	}
	for (uint32_t i = CHUNK_OBJECTS; i > 0; i--) {
		chunk[i - 1].index = free_first;
		free_first = count + i;
	}
	__atomic_store_n(&weft__uv_object_count, count + CHUNK_OBJECTS, __ATOMIC_RELEASE);
}

/* Gets free objects for this thread, at first only a few, because most threads need few objects. */
static void refill_free_list(struct weft__uv_here *here)
{
	sigset_t signals;
	const uint32_t wanted = here->has_refilled ? BATCH_OBJECTS : FIRST_BATCH_OBJECTS;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	if (!free_first && weft__uv_object_count < CHUNK_OBJECTS * MAX_CHUNKS)
		make_chunk();
	while (free_first && here->free_count < wanted) {
		uint32_t index = free_first;
		struct weft__uv_object *object = weft__uv_object_at(index);
		free_first = object->index;
		object->index = here->free_first;
		here->free_first = index;
		here->free_count++;
	}
	here->has_refilled = true;
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
}

static struct weft__uv_object *create_object(const void *key)
{
	struct weft__uv_here *here = weft__uv_get_here();
	if (!here->free_first)
		refill_free_list(here);
	if (!here->free_first)
		return NULL;
	uint32_t index = here->free_first, generation;
	struct weft__uv_object *object = weft__uv_object_at(index);
	here->free_first = object->index;
	here->free_count--;
	generation = object->generation + 1;
	/* The fields are stored one by one, because compilers turn a memset() of this size into slow code. */
	object->copy = NULL;
	object->loop = NULL;
	object->index = index;
	weft__uv_own(object);
	object->id = object->input = object->awaited_by = object->by = 0;
	object->since = object->input_since = 0;
	object->owner = 0;
	object->site = object->read_site = NULL;
	object->line = NULL;
	object->part_of = 0;
	object->what = 0;
	object->children = 0;
	object->calls = (struct weft_hook_calls){0};
	object->fd = -1;
	object->connects = object->is_untouched = false;
	object->is_accepted = object->asks = object->is_encrypted = false;
	object->asker = 0;
	object->asker_actor = 0;
	object->asker_request = 0;
	object->kind = 0;
	object->label.length = 0;
	object->label.text[0] = 0;
	object->is_request = object->is_datagram = object->has_datagrams = object->is_expected = false;
	object->opens_file = object->reads = object->is_stopped = object->is_closing = object->in_pool = false;
	__atomic_store_n(&object->generation, generation, __ATOMIC_RELAXED);
	__atomic_store_n(&object->key, key ? key : object, __ATOMIC_RELEASE);
	return object;
}

struct weft__uv_object *weft__uv_object_of_handle(struct weft__uv_copy *copy, const void *handle)
{
	struct weft__uv_object *object = create_object(handle);
	if (object) {
		object->copy = copy;
		object->loop = ((const uv_handle_t *)handle)->loop;
		__atomic_store_n(weft__uv_tag_in_handle(handle), (void *)(uintptr_t)weft__uv_tag_of(object), __ATOMIC_RELAXED);
	}
	return object;
}

/* Returns the bit that represents a loop in `chunk_loops`. */
static uint64_t hash_loop(const uv_loop_t *loop)
{
	return (uint64_t)1 << ((uint64_t)(uintptr_t)loop * 0x9e3779b97f4a7c15u >> 58);
}

struct weft__uv_object *weft__uv_object_of_request(struct weft__uv_copy *copy, const void *request, uv_loop_t *loop)
{
	struct weft__uv_object *object = create_object(request);
	if (object) {
		object->copy = copy;
		object->loop = loop;
		object->is_request = true;
		uint64_t *loops = &chunk_loops[(object->index - 1) / CHUNK_OBJECTS], bit = hash_loop(loop);
		if (!(__atomic_load_n(loops, __ATOMIC_RELAXED) & bit))
			__atomic_fetch_or(loops, bit, __ATOMIC_RELAXED);
		__atomic_store_n(weft__uv_tag_in_request(request), (void *)(uintptr_t)weft__uv_tag_of(object), __ATOMIC_RELAXED);
	}
	return object;
}

struct weft__uv_object *weft__uv_object_of_datagram(struct weft__uv_object *socket)
{
	struct weft__uv_object *object = create_object(NULL);
	if (object) {
		object->copy = socket->copy;
		object->loop = socket->loop;
		object->is_datagram = true;
	}
	return object;
}

void weft__uv_object_free(struct weft__uv_object *object)
{
	struct weft__uv_here *here = weft__uv_get_here();
	uint32_t index = object->index;
	__atomic_store_n(&object->key, NULL, __ATOMIC_RELAXED);
	object->index = here->free_first;
	here->free_first = index;
	if (++here->free_count > CHUNK_OBJECTS + 2 * BATCH_OBJECTS)
		return_free_batch(here, BATCH_OBJECTS);
}

/* Returns the next used object after index *at in the chunks that `words` selects or, without `words`, that `loop` selects. */
static struct weft__uv_object *find_next(const uint64_t *words, uint64_t loop, uint32_t *at)
{
	const uint32_t end = __atomic_load_n(&weft__uv_object_count, __ATOMIC_ACQUIRE);
	while (*at < end) {
		const uint32_t chunk = *at / CHUNK_OBJECTS;
		const bool is_selected = words ? __atomic_load_n(&words[chunk / 64], __ATOMIC_RELAXED) >> chunk % 64 & 1
					       : (__atomic_load_n(&chunk_loops[chunk], __ATOMIC_RELAXED) & loop) != 0;
		if (!is_selected) {
			*at = (chunk + 1) * CHUNK_OBJECTS;
			continue;
		}
		struct weft__uv_object *object = weft__uv_object_at(++*at);
		if (object && __atomic_load_n(&object->key, __ATOMIC_ACQUIRE))
			return object;
	}
	return NULL;
}

struct weft__uv_object *weft__uv_own_next(uint32_t *at)
{
	struct weft__uv_here *here = weft__uv_get_here();
	struct weft__uv_object *object;
	while ((object = find_next(here->chunks, 0, at)) && object->owner_thread != here)
		;
	return object;
}

struct weft__uv_object *weft__uv_request_next(const uv_loop_t *loop, uint32_t *at)
{
	struct weft__uv_object *object;
	while ((object = find_next(NULL, hash_loop(loop), at)) && !(object->is_request && object->loop == loop))
		;
	return object;
}

void weft__uv_objects_lock(void)
{
	pthread_mutex_lock(&lock);
}

void weft__uv_objects_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* Frees all objects; runs in a child after fork(), or when another recording starts, with the lock held.  The chunks stay, and
 * are reused from the first one on; generations keep counting, and the new secret makes old tags invalid. */
void weft__uv_objects_clear(void)
{
	weft__uv_secret = weft__uv_secret * 6364136223846793005u + 1442695040888963407u;
	for (uint32_t i = 0; i < weft__uv_object_count; i++)
		if (weft__uv_object_at(i + 1))
			__atomic_store_n(&weft__uv_object_at(i + 1)->key, NULL, __ATOMIC_RELAXED);
	memset(chunk_loops, 0, weft__uv_object_count / CHUNK_OBJECTS * sizeof *chunk_loops);
	__atomic_store_n(&weft__uv_object_count, 0, __ATOMIC_RELEASE);
	free_first = 0;
}

void weft__uv_datagram_release(weft__uv_tag tag)
{
	struct weft__uv_object *object = tag ? weft__uv_find(tag) : NULL;
	if (!object || !object->is_datagram || --object->children > 0)
		return;
	if (weft_is_on())
		weft_resolve(object->id, object->id);
	weft__uv_object_free(object);
}
