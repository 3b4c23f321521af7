/* condition.h: what an OS thread waits for until another one acts: conditions, barriers, semaphores (private to adapters/).
 *
 * Who waits is told, and who wakes him.  A signal that nobody waits for costs a few ns; the trace has the first one after each
 * wait, so that it tells of a wake-up that came too early, and one for each who is woken.  What has a time limit is not told: it
 * needs nobody.
 *
 * A semaphore lends its tokens, or carries messages.  While each who posted had one, it is a pool, and who waits waits for those
 * that have one; since somebody posted who had none, it is a condition.
 *
 * Those whose addresses share a place push each other out, and nothing is told of one that is pushed out.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_CONDITION_H
#define WEFT_HOOK_CONDITION_H

#include "adapters/hook/thread.h"

enum { WEFT__HOOK_CONDITIONS = 1024, WEFT__HOOK_SEMAPHORES = 256, WEFT__HOOK_HOLDERS = 16 };

struct weft__hook_condition {
	const void *address;
	weft_id id;           /* its promise; 0: nobody has waited */
	weft_id missed_by;    /* without one: who signalled it last, and when; 0: nobody did */
	uint64_t missed_when; /* weft_now() */
	uint32_t waiters;     /* of whom the trace was told */
	bool is_unheard;      /* it was told that a signal met nobody, and nobody has waited since */
	unsigned epoch;
} __attribute__((aligned(64)));

extern struct weft__hook_condition weft__hook_conditions[WEFT__HOOK_CONDITIONS];

static inline struct weft__hook_condition *weft__hook_condition_of(const void *address)
{
	return &weft__hook_conditions[(uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 54];
}

/* Whether it is that one, of this recording. */
static inline bool weft__hook_condition_is(const struct weft__hook_condition *condition, const void *address)
{
	return __atomic_load_n(&condition->address, __ATOMIC_RELAXED) == address &&
	       __atomic_load_n(&condition->epoch, __ATOMIC_RELAXED) == weft__hook_epoch;
}

/* Around a wait of the calling OS thread; `what` is a label, or NULL.  Returns what it waits for; 0: nothing is told, also when
 * it is over. */
weft_id weft_hook_condition_waits(const void *address, const char *what, const void *caller);
void weft_hook_condition_waited(const void *address, weft_id id);

void weft__hook_condition_signalled(struct weft__hook_condition *condition, const void *address, bool to_all, const void *caller);

/* It is about to be signalled, to one or to all.  Recording is on. */
static inline void weft_hook_condition_signals(const void *address, bool to_all, const void *caller)
{
	struct weft__hook_condition *condition = weft__hook_condition_of(address);
	if (weft__hook_condition_is(condition, address) && __atomic_load_n(&condition->is_unheard, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&condition->waiters, __ATOMIC_RELAXED) == 0)
		return;
	weft__hook_condition_signalled(condition, address, to_all, caller);
}

/* The same of a semaphore; and that the calling OS thread got one, without waiting or after that, or is about to post. */
weft_id weft_hook_semaphore_waits(const void *address, const void *caller);
void weft_hook_semaphore_waited(const void *address, weft_id id);
void weft_hook_semaphore_taken(const void *address);
void weft_hook_semaphore_posts(const void *address);

#endif
