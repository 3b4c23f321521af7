/* sleep.h: calls of libc in which an OS thread may sleep (private to adapters/).
 *
 * The preload library takes them by symbol (sleep.c).  While something records, adapters are asked whether the call is the wait
 * of a loop of theirs.  It is the OS thread's sleep if it is, or if no callback of the program is on the stack; otherwise it
 * holds up who called it, which is a pause.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_SLEEP_H
#define WEFT_HOOK_SLEEP_H

#include "adapters/hook/hook.h"

enum weft_hook_sleep_kind {
	WEFT_HOOK_SLEEP_FDS,     /* epoll, poll, select */
	WEFT_HOOK_SLEEP_LOCK,    /* a condition, a semaphore */
	WEFT_HOOK_SLEEP_MUTEX,   /* a lock that somebody else has, often for a moment only */
	WEFT_HOOK_SLEEP_INPUT,   /* read, recv, accept, of what blocks */
	WEFT_HOOK_SLEEP_SIGNAL,  /* sigwait, ... */
	WEFT_HOOK_SLEEP_THREAD,  /* pthread_join */
	WEFT_HOOK_SLEEP_PROCESS, /* waitpid, ... */
	WEFT_HOOK_SLEEP_TIME     /* nanosleep, ... */
};

struct weft_hook_sleep {
	enum weft_hook_sleep_kind kind;
	const char *function;          /* a literal: "epoll_wait" */
	struct weft_record_text *text; /* "blocked in epoll_wait", for WEFT_PAUSE and its like */
	int epoll;                     /* the descriptor that epoll_* was given; -1 otherwise */
	bool may_sleep;                /* false: the program asked not to wait (a timeout of 0) */
	const void *caller;            /* where it returns to */

	/* An adapter may set both in sleeps() for calls of FDS: if nothing has come after `first_ms`, still() is called once on
	 * the same OS thread, and the call goes on with what is left of its timeout.  0: no such thing. */
	int first_ms;
	void (*still)(const struct weft_hook_sleep *sleep);

	enum { WEFT_HOOK_AWAKE, WEFT_HOOK_ASLEEP, WEFT_HOOK_BLOCKED } state; /* what the trace was told */
	uint64_t since;                                                      /* the event that told it */
};

/* Where the code of calls stands that go on by themselves when somebody has woken them (wire/standby.h). */
#define WEFT_HOOK_WAITS __attribute__((section("weft_waits")))
extern const char weft__hook_waits_begin[] __asm__("__start_weft_waits"), weft__hook_waits_end[] __asm__("__stop_weft_waits");
extern const uint32_t *weft__hook_wake_count; /* NULL: this process does not stand by */

/* For sleep.c, while something records, in this order.  The first says whether the waits before this one all ended at once: then
 * the call is asked first, without waiting, whether this one would, and if so there was no sleep to tell of. */
bool weft__hook_nears_sleep(struct weft_hook_sleep *sleep);
void weft__hook_falls_asleep(struct weft_hook_sleep *sleep);
/* In place of that, where there was no need to wait. */
void weft__hook_turns(const struct weft_hook_sleep *sleep);
void weft__hook_wakes(const struct weft_hook_sleep *sleep);

/* For an adapter that takes a call of its runtime in which that sleeps without libc: before and, if the answer was true, after
 * the call.  Both may change errno. */
static inline bool weft_hook_sleeps(struct weft_hook_sleep *sleep)
{
	if (!weft_is_on())
		return false;
	weft__hook_nears_sleep(sleep);
	weft__hook_falls_asleep(sleep);
	return true;
}

static inline void weft_hook_wakes(const struct weft_hook_sleep *sleep)
{
	weft__hook_wakes(sleep);
}

#endif
