/* condition.h: records waits that another thread must end, for conditions, barriers and semaphores (private to adapters/).
 *
 * The trace contains each waiter of a condition, and each signal that wakes a waiter.  The trace contains only the first signal
 * without a waiter after each wait, so that lost wake-ups are visible; other signals without a waiter cost a few ns.  Waits with
 * a timeout are not recorded, because such waits can end without a signal.
 *
 * A semaphore by which the runtime of a language makes a lock is a lock or a condition, at a line in that language.
 *
 * Another semaphore is a pool or a condition.  A semaphore is a pool as long as only threads that hold a token post; waiters of
 * the pool then wait for its holders.  A pool becomes a condition when a thread without a token posts.
 *
 * Conditions whose addresses have the same hash share an entry, and semaphores share a few.  An object that loses its entry is no
 * longer recorded.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_CONDITION_H
#define WEFT_HOOK_CONDITION_H

#include "adapters/hook/thread.h"

enum { WEFT__HOOK_CONDITIONS = 1024, WEFT__HOOK_SEMAPHORE_SETS = 128, WEFT__HOOK_SEMAPHORES_OF_SET = 8, WEFT__HOOK_HOLDERS = 16 };

struct weft__hook_condition {
	const void *address;
	weft_id id;            /* promise of the condition; 0 before the first wait */
	weft_id signalled_by;  /* promise that signalled the condition last while `id` was 0; 0: none */
	uint64_t signalled_at; /* weft_now() of that signal */
	uint32_t waiters;      /* recorded waiters */
	bool has_lost_signal;  /* whether a signal without a waiter was recorded and no wait has begun since */
	unsigned epoch;
} __attribute__((aligned(64)));

extern struct weft__hook_condition weft__hook_conditions[WEFT__HOOK_CONDITIONS];

static inline struct weft__hook_condition *weft__hook_condition_of(const void *address)
{
	return &weft__hook_conditions[(uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 54];
}

/* Returns whether the table entry belongs to the condition at `address` in the current recording. */
static inline bool weft__hook_condition_matches(const struct weft__hook_condition *condition, const void *address)
{
	return __atomic_load_n(&condition->address, __ATOMIC_RELAXED) == address &&
	       __atomic_load_n(&condition->epoch, __ATOMIC_RELAXED) == weft__hook_epoch;
}

/* Record a wait of the calling thread: call begin_wait before the wait and end_wait after it.  `what` is a label or NULL.
 * begin_wait returns the promise that the thread awaits; if it returns 0, nothing is recorded and end_wait must not be
 * called. */
weft_id weft_hook_condition_begin_wait(const void *address, const char *what, const void *caller);
void weft_hook_condition_end_wait(const void *address, weft_id id);

/* Notes a signal of the running promise to a condition for which no thread has waited. */
static inline void weft__hook_condition_note_early_signal(struct weft__hook_condition *condition)
{
	if (weft__hook_get_thread()->epoch != weft__hook_epoch || !weft__hook_get_thread()->running)
		return;
	__atomic_store_n(&condition->signalled_at, weft_now(), __ATOMIC_RELAXED);
	__atomic_store_n(&condition->signalled_by, weft__hook_get_thread()->running, __ATOMIC_RELEASE);
}

void weft__hook_condition_signal_slow(
    struct weft__hook_condition *condition, const void *address, bool to_all, const void *caller);

/* Records a signal to one waiter or to all waiters of a condition; call it before the signal.  Recording must be on. */
static inline void weft_hook_condition_signal(const void *address, bool to_all, const void *caller)
{
	struct weft__hook_condition *condition = weft__hook_condition_of(address);
	if (weft__hook_condition_matches(condition, address)) {
		if (!__atomic_load_n(&condition->id, __ATOMIC_ACQUIRE)) {
			weft__hook_condition_note_early_signal(condition);
			return;
		}
		if (__atomic_load_n(&condition->has_lost_signal, __ATOMIC_RELAXED) &&
		    __atomic_load_n(&condition->waiters, __ATOMIC_RELAXED) == 0)
			return;
	}
	weft__hook_condition_signal_slow(condition, address, to_all, caller);
}

/* Record a semaphore's waits, as for conditions.  Call acquire when the calling thread has got a token, with or without a wait,
 * and post before it posts. */
weft_id weft_hook_semaphore_begin_wait(const void *address, const void *caller);
void weft_hook_semaphore_end_wait(const void *address, weft_id id);
void weft_hook_semaphore_acquire(const void *address);
/* Notes an attempt without a wait that has failed; call it after the attempt.  A language's runtime makes such an attempt before
 * it waits, and only then its adapter can say for which line. */
void weft_hook_semaphore_note_attempt(const void *address);
/* Forgets what was known of another semaphore at this address; call it when the semaphore is initialised. */
void weft_hook_semaphore_forget(const void *address);
void weft_hook_semaphore_post(const void *address);

#endif
