/* start.c: OS threads from their beginning to their end, and who waits for that.
 *
 * What an OS thread does before it first sleeps, or without ever sleeping, is seen only where it starts.
 * SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/hook/label.h"
#include "adapters/hook/load.h"
#include "adapters/hook/sleep.h"
#include "adapters/hook/thread.h"

#define TAKEN __attribute__((visibility("default")))

/* What is given to the new OS thread. */
struct start {
	void *(*routine)(void *);
	void *data;
	weft_id id, by;
	uint64_t since;
	unsigned epoch;
	char name[16];
};

static struct {
	int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*pthread_join)(pthread_t, void **);
} real;

static struct weft_record_text blocked = WEFT_COUNTER("blocked in pthread_join");

__attribute__((constructor(101))) static void resolve(void)
{
	int saved = errno;
	if (!real.pthread_create)
		*(void **)&real.pthread_create = dlsym(RTLD_NEXT, "pthread_create");
	if (!real.pthread_join)
		*(void **)&real.pthread_join = dlsym(RTLD_NEXT, "pthread_join");
	errno = saved;
}

/* Which OS thread has which promise, for those who join it: in one of some slots next to each other.  One that is never joined
 * stays until its slot is wanted; a slot that another one took over costs an edge of the picture. */
enum { SLOTS = 4096, TRIED = 32 };

static struct slot {
	pthread_t thread;
	weft_id id; /* 0: free */
	unsigned epoch;
} slots[SLOTS + TRIED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct slot *find(pthread_t thread, bool to_fill)
{
	struct slot *first = &slots[((uintptr_t)thread >> 6) * 0x9e3779b97f4a7c15u >> 52], *empty = NULL;
	for (struct slot *at = first; at < first + TRIED; at++) {
		bool is_used = at->id && at->epoch == weft__hook_epoch;
		if (is_used && pthread_equal(at->thread, thread))
			return at;
		if (!is_used && !empty)
			empty = at;
	}
	return to_fill ? empty ? empty : first : NULL;
}

static void remember(pthread_t thread, weft_id id)
{
	if (pthread_mutex_trylock(&lock))
		return;
	*find(thread, true) = (struct slot){thread, id, weft__hook_epoch};
	pthread_mutex_unlock(&lock);
}

static weft_id recall(pthread_t thread)
{
	if (pthread_mutex_trylock(&lock))
		return 0;
	struct slot *slot = find(thread, false);
	weft_id id = slot ? slot->id : 0;
	pthread_mutex_unlock(&lock);
	return id;
}

static void *begin(void *data)
{
	struct start start = *(struct start *)data;
	free(data);
	if (weft_is_on() && start.epoch == weft__hook_epoch)
		weft__hook_thread_begins(start.id, start.by, start.since, start.name);
	return start.routine(start.data);
}

TAKEN int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *data)
{
	if (!real.pthread_create)
		resolve();
	bool is_told = (weft_is_on() || weft__hook_begin()) && !weft__hook_is_instrumented();
	struct start *start = is_told ? malloc(sizeof *start) : NULL;
	if (!start)
		return real.pthread_create(thread, attributes, routine, data);
	weft_id by = weft_hook_thread()->running;
	weft_id id = weft_create_at(by, WEFT_KIND_THREAD, weft_hook_place(__builtin_return_address(0)));
	*start = (struct start){routine, data, id, by, weft__stream->last, weft__hook_epoch, ""};
	if (weft__hook_next_name)
		strncat(start->name, weft__hook_next_name, sizeof start->name - 1);
	weft_hook_stack(id, __builtin_return_address(0));
	int status = real.pthread_create(thread, attributes, begin, start);
	if (status) {
		free(start);
		WEFT_FAIL(by, id, "no OS thread can be started");
		weft_read_later(by, id); /* the caller has the status */
	} else {
		remember(*thread, id); /* it may not have begun yet, and be joined now */
	}
	return status;
}

TAKEN int pthread_join(pthread_t thread, void **result_of)
{
	if (!real.pthread_join)
		resolve();
	if (!weft_is_on() && !weft__hook_begin())
		return real.pthread_join(thread, result_of);
	struct weft_hook_sleep s = {.kind = WEFT_HOOK_SLEEP_THREAD,
	    .function = "pthread_join",
	    .text = &blocked,
	    .epoll = -1,
	    .may_sleep = true,
	    .caller = __builtin_return_address(0)};
	int before = errno;
	weft_id id = recall(thread), by = id ? weft_hook_thread()->running : 0;
	if (id)
		weft_await(by, id);
	weft__hook_nears_sleep(&s);
	weft__hook_falls_asleep(&s);
	errno = before;
	int result = real.pthread_join(thread, result_of), after = errno;
	weft__hook_wakes(&s);
	if (id && !result)
		weft_read_later(by, id);
	errno = after;
	return result;
}
