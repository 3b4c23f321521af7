/* start.c: records the start, end and join of threads.
 *
 * Without these records, the trace would miss the work of a thread before its first sleep, and all work of a thread that never
 * sleeps.  SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "adapters/base/thread_sleep.h"
#include "adapters/hook/address_cache.h"
#include "adapters/hook/callers.h"
#include "adapters/hook/session.h"
#include "adapters/hook/thread.h"

#define EXPORTED __attribute__((visibility("default")))

/* Arguments of a new thread, which frees them.  Either `routine` or `c11_routine` is set. */
struct thread_start {
	void *(*routine)(void *);
	thrd_start_t c11_routine;
	void *data;
	weft_id id, by;
	uint64_t since;
	unsigned epoch;
	char name[WEFT_HOOK_THREAD_NAME];
};

static struct {
	int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*pthread_join)(pthread_t, void **);
	int (*thrd_create)(thrd_t *, thrd_start_t, void *);
	int (*thrd_join)(thrd_t, int *);
} real;

static struct weft_record_text join_text = WEFT_COUNTER("blocked in pthread_join"),
			       c11_join_text = WEFT_COUNTER("blocked in thrd_join");

__attribute__((constructor(101))) static void resolve_calls(void)
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

/* Hash table of the threads' promises, in which a join finds the promise of the thread that ended.  The slot of a thread that is
 * never joined stays used until another thread needs the slot.  If a slot is overwritten, only the link from the join to the
 * thread is lost. */
enum { SLOT_COUNT = 4096, MAX_PROBES = 32 };

static struct slot {
	pthread_t thread;
	weft_id id; /* 0: free slot */
	unsigned epoch;
} slots[SLOT_COUNT + MAX_PROBES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct slot *find_slot(pthread_t thread, bool to_fill)
{
	struct slot *first = &slots[((uintptr_t)thread >> 6) * 0x9e3779b97f4a7c15u >> 52], *empty = NULL;
	for (struct slot *at = first; at < first + MAX_PROBES; at++) {
		bool is_used = at->id && at->epoch == weft__hook_epoch;
		if (is_used && pthread_equal(at->thread, thread))
			return at;
		if (!is_used && !empty)
			empty = at;
	}
	return to_fill ? empty ? empty : first : NULL;
}

static void remember_thread(pthread_t thread, weft_id id)
{
	if (pthread_mutex_trylock(&lock))
		return;
	*find_slot(thread, true) = (struct slot){thread, id, weft__hook_epoch};
	pthread_mutex_unlock(&lock);
}

static weft_id get_thread_promise(pthread_t thread)
{
	if (pthread_mutex_trylock(&lock))
		return 0;
	struct slot *slot = find_slot(thread, false);
	weft_id id = slot ? slot->id : 0;
	pthread_mutex_unlock(&lock);
	return id;
}

static struct thread_start begin_thread(void *data)
{
	struct thread_start thread_start = *(struct thread_start *)data;
	free(data);
	if (weft_is_on() && thread_start.epoch == weft__hook_epoch)
		weft__hook_thread_begin(thread_start.id, thread_start.by, thread_start.since, thread_start.name);
	return thread_start;
}

static void *begin_posix_thread(void *data)
{
	struct thread_start thread_start = begin_thread(data);
	return thread_start.routine(thread_start.data);
}

static int begin_c11_thread(void *data)
{
	struct thread_start thread_start = begin_thread(data);
	return thread_start.c11_routine(thread_start.data);
}

/* Returns the arguments of the new thread; NULL if the new thread is not recorded. */
static struct thread_start *prepare_start(const void *caller)
{
	bool is_recorded = weft__hook_gate && weft_hook_begin() && !weft__hook_is_instrumented;
	struct thread_start *thread_start = is_recorded ? calloc(1, sizeof *thread_start) : NULL;
	if (!thread_start)
		return NULL;
	thread_start->by = weft_hook_thread()->running;
	struct weft_record_place *place;
	thread_start->id = weft_hook_create(thread_start->by, WEFT_KIND_THREAD, caller, &place);
	thread_start->since = weft__stream->last;
	thread_start->epoch = weft__hook_epoch;
	if (weft__hook_next_thread_name)
		strncat(thread_start->name, weft__hook_next_thread_name, sizeof thread_start->name - 1);
	else if (weft__hook_language.copy_thread_name)
		weft__hook_language.copy_thread_name(thread_start->name, sizeof thread_start->name);
	weft_hook_stack(thread_start->id, caller);
	return thread_start;
}

/* Records the outcome of the call that starts a thread.  The struct thread_start of the call must not be used any more. */
static void finish_start(weft_id id, const pthread_t *thread, int status)
{
	weft_id by = weft__hook_get_thread()->running;
	if (status) {
		WEFT_FAIL(by, id, "no OS thread can be started");
		weft_read_later(by, id); /* the caller of pthread_create() gets the error */
	} else {
		remember_thread(*thread, id); /* another thread may join the new thread before it has started */
	}
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *data)
{
	if (!real.pthread_create)
		resolve_calls();
	struct thread_start *thread_start = prepare_start(__builtin_return_address(0));
	if (!thread_start)
		return real.pthread_create(thread, attributes, routine, data);
	weft_id id = thread_start->id;
	thread_start->routine = routine;
	thread_start->data = data;
	int status = real.pthread_create(thread, attributes, begin_posix_thread, thread_start);
	if (status)
		free(thread_start);
	finish_start(id, thread, status);
	return status;
}

EXPORTED int thrd_create(thrd_t *thread, thrd_start_t routine, void *data)
{
	if (!real.thrd_create)
		resolve_calls();
	struct thread_start *thread_start = prepare_start(__builtin_return_address(0));
	if (!thread_start)
		return real.thrd_create(thread, routine, data);
	weft_id id = thread_start->id;
	thread_start->c11_routine = routine;
	thread_start->data = data;
	int status = real.thrd_create(thread, begin_c11_thread, thread_start);
	if (status != thrd_success)
		free(thread_start);
	finish_start(id, thread, status != thrd_success);
	return status;
}

/* Defines a wrapper of a join function; CALL is the original call. */
#define RECORD_JOIN(NAME, TEXT, CALL)                                                                                            \
	if (!real.NAME)                                                                                                          \
		resolve_calls();                                                                                                 \
	if (!weft__hook_gate || !weft_hook_begin())                                                                              \
		return CALL;                                                                                                     \
	struct weft_hook_sleep s = {.kind = WEFT_HOOK_SLEEP_THREAD,                                                              \
	    .function = #NAME,                                                                                                   \
	    .text = &(TEXT),                                                                                                     \
	    .epoll = -1,                                                                                                         \
	    .may_sleep = true,                                                                                                   \
	    .caller = __builtin_return_address(0)};                                                                              \
	int before = errno;                                                                                                      \
	weft_id id = get_thread_promise(thread), by = id ? weft_hook_thread()->running : 0;                                      \
	if (id)                                                                                                                  \
		weft_await(by, id);                                                                                              \
	weft__hook_before_wait(&s);                                                                                              \
	weft__hook_record_sleep(&s);                                                                                             \
	errno = before;                                                                                                          \
	int result = CALL, after = errno;                                                                                        \
	weft__hook_record_wake(&s);                                                                                              \
	if (id && !result)                                                                                                       \
		weft_read_later(by, id);                                                                                         \
	errno = after;                                                                                                           \
	return result

EXPORTED int pthread_join(pthread_t thread, void **result_of)
{
	RECORD_JOIN(pthread_join, join_text, real.pthread_join(thread, result_of));
}

EXPORTED int thrd_join(thrd_t thread, int *result_of)
{
	RECORD_JOIN(thrd_join, c11_join_text, real.thrd_join(thread, result_of));
}
