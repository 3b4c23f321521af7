/* sleep.h: calls of libc in which an OS thread may sleep (private to adapters/).
 *
 * The preload library takes them by symbol; sleep.c lists them.  While something records, each adapter is asked in turn until one
 * answers that it takes care of the call.  Where none does, nothing is recorded of it: a call that blocks the code of a promise
 * is part of that code.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_SLEEP_H
#define WEFT_HOOK_SLEEP_H

#include "adapters/hook/hook.h"

enum weft_hook_sleep_kind {
	WEFT_HOOK_SLEEP_FDS,     /* epoll, poll, select */
	WEFT_HOOK_SLEEP_LOCK,    /* a condition, a semaphore */
	WEFT_HOOK_SLEEP_SIGNAL,  /* sigwait, ... */
	WEFT_HOOK_SLEEP_THREAD,  /* pthread_join */
	WEFT_HOOK_SLEEP_PROCESS, /* waitpid, ... */
	WEFT_HOOK_SLEEP_TIME     /* nanosleep, ... */
};

struct weft_hook_sleep {
	enum weft_hook_sleep_kind kind;
	const char *function;                /* a literal: "epoll_wait" */
	struct weft_record_text *text;       /* "blocked in epoll_wait", for WEFT_PAUSE and its like */
	int epoll;                           /* the descriptor that epoll_* was given; -1 otherwise */
	bool may_sleep;                      /* false: the program asked not to wait (a timeout of 0) */
	const void *caller;                  /* where it returns to */
	const struct weft_hook_adapter *who; /* for sleep.c: the adapter that takes care of it */

	/* An adapter may set both in sleeps() for calls of FDS: if nothing has come after `first_ms`, still() is called once on
	 * the same OS thread, and the call goes on with what is left of its timeout.  0: no such thing. */
	int first_ms;
	void (*still)(const struct weft_hook_sleep *sleep);

	uintptr_t data; /* of the adapter's, from sleeps() to wakes() */
};

/* For an adapter that takes a call of its runtime in which that sleeps without libc: before and, if the answer was true, after
 * the call.  The first may change errno. */
bool weft_hook_sleeps(struct weft_hook_sleep *sleep);
void weft_hook_wakes(const struct weft_hook_sleep *sleep);

#endif
