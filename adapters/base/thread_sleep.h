/* thread_sleep.h: calls in which a thread may sleep (private to adapters/).
 *
 * Wrappers of libc functions (adapters/hook/libc_*.c) call these functions while recording is on.  Adapters are asked whether the
 * call is the wait of an event loop.  If it is, or if no callback of the program is on the stack, the thread sleeps.  Otherwise
 * the call blocks the running promise, which is recorded as a pause.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_THREAD_SLEEP_H
#define WEFT_BASE_THREAD_SLEEP_H

#include "adapters/hook/hook.h"

enum weft_hook_sleep_kind {
	WEFT_HOOK_SLEEP_FDS,     /* epoll, poll, select */
	WEFT_HOOK_SLEEP_LOCK,    /* conditions, semaphores */
	WEFT_HOOK_SLEEP_MUTEX,   /* locks that another thread holds, often briefly */
	WEFT_HOOK_SLEEP_IO,      /* blocking read, recv, accept, write, send */
	WEFT_HOOK_SLEEP_SIGNAL,  /* sigwait, ... */
	WEFT_HOOK_SLEEP_THREAD,  /* pthread_join */
	WEFT_HOOK_SLEEP_PROCESS, /* waitpid, ... */
	WEFT_HOOK_SLEEP_TIME     /* nanosleep, ... */
};

enum { WEFT_HOOK_ONE_FD = -1, WEFT_HOOK_SEVERAL_FDS = -2 };

struct weft_hook_sleep {
	enum weft_hook_sleep_kind kind;
	const char *function;          /* literal name: "epoll_wait" */
	struct weft_record_text *text; /* "blocked in epoll_wait", for pauses */
	int epoll;                     /* epoll descriptor; below 0 for other calls: WEFT_HOOK_ONE_FD, WEFT_HOOK_SEVERAL_FDS */
	bool may_sleep;                /* false for a timeout of 0 */
	const void *caller;            /* return address of the call */

	/* An adapter may set both in its `sleeps` callback, for WEFT_HOOK_SLEEP_FDS.  If the wait takes longer than first_ms,
	 * on_long_wait is called once on this thread, and the wait continues with the rest of its timeout.  0: no callback. */
	int first_ms;
	void (*on_long_wait)(const struct weft_hook_sleep *sleep);

	enum { WEFT_HOOK_AWAKE, WEFT_HOOK_ASLEEP, WEFT_HOOK_BLOCKED } state; /* what has been recorded */
	uint64_t since;                                                      /* time of that event */
};

/* Call these in this order while recording is on.  The first returns whether the latest waits all ended at once.  Then first make
 * the call without waiting; if it succeeds, there was no sleep. */
bool weft__hook_before_wait(struct weft_hook_sleep *sleep);
void weft__hook_record_sleep(struct weft_hook_sleep *sleep);
/* Call it instead of the other two if there was no need to wait. */
void weft__hook_record_turn(const struct weft_hook_sleep *sleep);
void weft__hook_record_wake(const struct weft_hook_sleep *sleep);

/* NULL, or called when a call has blocked a promise for long: its name, and when it began. */
extern void (*weft__hook_after_block)(const char *function, uint64_t since);

/* For adapters whose runtime sleeps without libc: call begin before the call, and end after the call if begin returned true.
 * Both may change errno. */
static inline bool weft_hook_begin_sleep(struct weft_hook_sleep *sleep)
{
	if (!weft_is_on())
		return false;
	weft__hook_before_wait(sleep);
	weft__hook_record_sleep(sleep);
	return true;
}

static inline void weft_hook_end_sleep(const struct weft_hook_sleep *sleep)
{
	weft__hook_record_wake(sleep);
}

#endif
