/* thread_sleep.h: calls in which a thread may sleep (private to adapters/).
 *
 * Wrappers of libc's waiting functions (adapters/hook/libc_*.c) call the functions of this header while recording is on.  These
 * functions ask the adapters whether a call is the wait of an event loop.  If the call is the wait of an event loop, or if no
 * callback of the program is on the stack, the thread sleeps.  Otherwise the call blocks the running promise, and a pause is
 * recorded.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_THREAD_SLEEP_H
#define WEFT_BASE_THREAD_SLEEP_H

#include "adapters/hook/hook.h"

enum weft_hook_sleep_kind {
	WEFT_HOOK_SLEEP_FDS,     /* epoll, poll, select */
	WEFT_HOOK_SLEEP_LOCK,    /* conditions, semaphores */
	WEFT_HOOK_SLEEP_MUTEX,   /* waits for locks that another thread holds, often briefly */
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
	struct weft_record_text *text; /* name of the recorded pause, as "blocked in epoll_wait" */
	/* Descriptor of the epoll instance; for other calls WEFT_HOOK_ONE_FD or WEFT_HOOK_SEVERAL_FDS. */
	int epoll;
	bool may_sleep;     /* whether the call may sleep; false for a timeout of 0 */
	const void *caller; /* return address of the waiting call */

	/* An adapter's `sleeps` callback may set first_ms and on_long_wait for a sleep of kind WEFT_HOOK_SLEEP_FDS.  If the wait
	 * takes longer than first_ms, on_long_wait is called once on the waiting thread, and the wait continues with the rest of
	 * its timeout.  If first_ms is 0, there is no callback. */
	int first_ms;
	void (*on_long_wait)(const struct weft_hook_sleep *sleep);

	enum { WEFT_HOOK_AWAKE, WEFT_HOOK_ASLEEP, WEFT_HOOK_BLOCKED } state; /* what has been recorded */
	uint64_t since;                                                      /* time of that event */
};

/* While recording is on, a wrapper of a waiting call calls before_wait, record_sleep and record_wake in this order.  before_wait
 * returns whether the latest waits all ended at once.  If it returns true, the wrapper first makes the call with a timeout of 0;
 * if that call succeeds, there was no sleep. */
bool weft__hook_before_wait(struct weft_hook_sleep *sleep);
void weft__hook_record_sleep(struct weft_hook_sleep *sleep);
/* Records a call that did not need to wait; it replaces record_sleep and record_wake. */
void weft__hook_record_turn(const struct weft_hook_sleep *sleep);
void weft__hook_record_wake(const struct weft_hook_sleep *sleep);

/* Begins a sleep for an adapter whose runtime sleeps without libc.  If this function returns true, call weft_hook_end_sleep()
 * after the runtime's wait.  Both may change errno. */
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
