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
#include <threads.h>

#include "adapters/hook/label.h"
#include "adapters/hook/load.h"
#include "adapters/hook/sleep.h"
#include "adapters/hook/thread.h"

#define TAKEN __attribute__((visibility("default")))

/* What is given to the new OS thread: one of both routines. */
struct start {
	void *(*routine)(void *);
	thrd_start_t c11_routine;
	void *data;
	weft_id id, by;
	uint64_t since;
	unsigned epoch;
	char name[16];
};

static struct {
	int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*pthread_join)(pthread_t, void **);
	int (*thrd_create)(thrd_t *, thrd_start_t, void *);
	int (*thrd_join)(thrd_t, int *);
} real;

static struct weft_record_text blocked = WEFT_COUNTER("blocked in pthread_join"),
			       c11_blocked = WEFT_COUNTER("blocked in thrd_join");

__attribute__((constructor(101))) static void resolve(void)
{
	int saved = errno;
	if (!real.pthread_create)
		*(void **)&real.pthread_create = dlsym(RTLD_NEXT, "pthread_create");
	if (!real.pthread_join)
		*(void **)&real.pthread_join = dlsym(RTLD_NEXT, "pthread_join");
	if (!real.thrd_create)
		*(void **)&real.thrd_create = dlsym(RTLD_NEXT, "thrd_create");
	if (!real.thrd_join)
		*(void **)&real.thrd_join = dlsym(RTLD_NEXT, "thrd_join");
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

static struct start begin(void *data)
{
	struct start start = *(struct start *)data;
	free(data);
	if (weft_is_on() && start.epoch == weft__hook_epoch)
		weft__hook_thread_begins(start.id, start.by, start.since, start.name);
	return start;
}

static void *begin_posix(void *data)
{
	struct start start = begin(data);
	return start.routine(start.data);
}

static int begin_c11(void *data)
{
	struct start start = begin(data);
	return start.c11_routine(start.data);
}

/* NULL: nothing is told of it. */
static struct start *prepare(const void *caller)
{
	bool is_told = weft__hook_gate && weft_hook_begin() && !weft__hook_is_instrumented();
	struct start *start = is_told ? calloc(1, sizeof *start) : NULL;
	if (!start)
		return NULL;
	start->by = weft_hook_thread()->running;
	start->id = weft_create_at(start->by, WEFT_KIND_THREAD, weft_hook_place(caller));
	start->since = weft__stream->last;
	start->epoch = weft__hook_epoch;
	if (weft__hook_next_name)
		strncat(start->name, weft__hook_next_name, sizeof start->name - 1);
	weft_hook_stack(start->id, caller);
	return start;
}

/* `start` is the new OS thread's, or freed, by now. */
static void started(weft_id id, const pthread_t *thread, int status)
{
	weft_id by = weft__hook_thread.running;
	if (status) {
		WEFT_FAIL(by, id, "no OS thread can be started");
		weft_read_later(by, id); /* the caller has the status */
	} else {
		remember(*thread, id); /* it may not have begun yet, and be joined now */
	}
}

TAKEN int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *data)
{
	if (!real.pthread_create)
		resolve();
	struct start *start = prepare(__builtin_return_address(0));
	if (!start)
		return real.pthread_create(thread, attributes, routine, data);
	weft_id id = start->id;
	start->routine = routine;
	start->data = data;
	int status = real.pthread_create(thread, attributes, begin_posix, start);
	if (status)
		free(start);
	started(id, thread, status);
	return status;
}

TAKEN int thrd_create(thrd_t *thread, thrd_start_t routine, void *data)
{
	if (!real.thrd_create)
		resolve();
	struct start *start = prepare(__builtin_return_address(0));
	if (!start)
		return real.thrd_create(thread, routine, data);
	weft_id id = start->id;
	start->c11_routine = routine;
	start->data = data;
	int status = real.thrd_create(thread, begin_c11, start);
	if (status != thrd_success)
		free(start);
	started(id, thread, status != thrd_success);
	return status;
}

/* A join with what is told around it; CALL is it. */
#define JOIN(NAME, TEXT, CALL)                                                                                                   \
	if (!real.NAME)                                                                                                          \
		resolve();                                                                                                       \
	if (!weft__hook_gate || !weft_hook_begin())                                                                              \
		return CALL;                                                                                                     \
	struct weft_hook_sleep s = {.kind = WEFT_HOOK_SLEEP_THREAD,                                                              \
	    .function = #NAME,                                                                                                   \
	    .text = &(TEXT),                                                                                                     \
	    .epoll = -1,                                                                                                         \
	    .may_sleep = true,                                                                                                   \
	    .caller = __builtin_return_address(0)};                                                                              \
	int before = errno;                                                                                                      \
	weft_id id = recall(thread), by = id ? weft_hook_thread()->running : 0;                                                  \
	if (id)                                                                                                                  \
		weft_await(by, id);                                                                                              \
	weft__hook_nears_sleep(&s);                                                                                              \
	weft__hook_falls_asleep(&s);                                                                                             \
	errno = before;                                                                                                          \
	int result = CALL, after = errno;                                                                                        \
	weft__hook_wakes(&s);                                                                                                    \
	if (id && !result)                                                                                                       \
		weft_read_later(by, id);                                                                                         \
	errno = after;                                                                                                           \
	return result

TAKEN int pthread_join(pthread_t thread, void **result_of)
{
	JOIN(pthread_join, blocked, real.pthread_join(thread, result_of));
}

TAKEN int thrd_join(thrd_t thread, int *result_of)
{
	JOIN(thrd_join, c11_blocked, real.thrd_join(thread, result_of));
}
