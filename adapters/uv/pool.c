/* pool.c: finds the request on which a thread of libuv's pool works, from the arguments of the thread's call of libc.
 *
 * A request for a host name contains the variable for the result, whose address is such an argument.  A file is opened with a
 * copy of the request's path; of the requests with such a path, the oldest is chosen, because the pool also starts the oldest
 * one.  SPDX-License-Identifier: ISC */
#include <stddef.h>

#include "adapters/uv/callback.h"
#include "adapters/uv/object.h"

enum { MOST_OPENING = 64 };

/* Requests that open a file and have not begun. */
static struct opening {
	weft_id id; /* 0: unused */
	uint64_t path;
	unsigned epoch;
} opening[MOST_OPENING];

static uint64_t hash_path(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	return hash;
}

static weft_id get_id(const struct opening *o)
{
	return __atomic_load_n(&o->id, __ATOMIC_ACQUIRE);
}

void weft__uv_pool_will_open(weft_id id, const char *path)
{
	for (struct opening *o = opening; o < opening + MOST_OPENING; o++) {
		weft_id none = 0;
		if (get_id(o) && o->epoch == weft__hook_epoch)
			continue;
		none = get_id(o);
		/* An id of -1 reserves the entry, because its other fields must be set before other threads find its id. */
		if (none == -1 || !__atomic_compare_exchange_n(&o->id, &none, -1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue;
		o->path = hash_path(path);
		o->epoch = weft__hook_epoch;
		__atomic_store_n(&o->id, id, __ATOMIC_RELEASE);
		return;
	}
}

void weft__uv_pool_forget(weft_id id)
{
	for (struct opening *o = opening; o < opening + MOST_OPENING; o++) {
		weft_id expected = id;
		if (get_id(o) == id &&
		    __atomic_compare_exchange_n(&o->id, &expected, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return;
	}
}

static struct opening *find_oldest(uint64_t hash, weft_id *id)
{
	struct opening *oldest = NULL;
	for (struct opening *o = opening; o < opening + MOST_OPENING; o++) {
		const weft_id at = get_id(o);
		if (at <= 0 || o->path != hash || o->epoch != weft__hook_epoch || (oldest && at > *id))
			continue;
		oldest = o;
		*id = at;
	}
	return oldest;
}

/* Threads that open the same path at the same time may find the same request.  Then one thread gets the request, and the others
 * search again. */
static weft_id take_opening(const char *path)
{
	const uint64_t hash = hash_path(path);
	for (int attempts = 0; attempts < MOST_OPENING; attempts++) {
		weft_id id = 0;
		struct opening *oldest = find_oldest(hash, &id);
		if (!oldest)
			return 0;
		if (__atomic_compare_exchange_n(&oldest->id, &id, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return id;
	}
	return 0;
}

/* Returns the request that contains the variable for a name's addresses. */
static weft_id find_name_request(const void *result)
{
	const uv_getaddrinfo_t *request =
	    (const uv_getaddrinfo_t *)(const void *)((const char *)result - offsetof(uv_getaddrinfo_t, addrinfo));
	if (!weft_hook_is_readable(request, sizeof *request))
		return 0;
	const struct weft__uv_object *object = weft__uv_find_request(request);
	return object && object->kind == WEFT_KIND_GETADDRINFO ? object->id : 0;
}

/* A thread that runs a loop is no thread of the pool. */
weft_id weft__uv_pool_call(const void *caller, const char *path, const void *result)
{
	const bool in_loop = weft__uv_get_here()->epoch == weft__hook_epoch && weft__uv_get_here()->depth > 0;
	if (in_loop || !weft__uv_is_own(caller))
		return 0;
	return path ? take_opening(path) : find_name_request(result);
}
