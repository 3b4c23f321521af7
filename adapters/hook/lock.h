/* lock.h: who has a lock that an OS thread waits for (private to adapters/).
 *
 * While nobody waits for a lock, nothing is told of it: who took it is written to a table, by its address, for a few ns.  Where
 * one has to wait, the trace is told who has it, until the wait is over: so it tells of deadlocks, and of what was waited for.
 * Locks whose addresses share a place in the table push each other out; of one that is pushed out nothing is told.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_LOCK_H
#define WEFT_HOOK_LOCK_H

#include "adapters/hook/thread.h"

enum { WEFT__HOOK_LOCKS = 1024 };

struct weft__hook_lock {
	const void *address;
	weft_id who;      /* took it last; 0: nobody has it */
	uintptr_t check;  /* of both: they belong together */
	weft_id id;       /* its promise; 0: nobody has waited for it */
	weft_id told;     /* who has it, as the trace says; 0: nobody */
	int owner;        /* the OS thread that took it, where the lock itself says so, too; else 0 */
	uint32_t waiters; /* of whom the trace was told */
	unsigned epoch;
} __attribute__((aligned(64)));

extern struct weft__hook_lock weft__hook_locks[WEFT__HOOK_LOCKS];

static inline struct weft__hook_lock *weft__hook_lock_of(const void *address)
{
	return &weft__hook_locks[(uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 54];
}

/* Whether the place is that lock's, in this recording. */
static inline bool weft__hook_lock_is(const struct weft__hook_lock *lock, const void *address)
{
	return __atomic_load_n(&lock->address, __ATOMIC_ACQUIRE) == address &&
	       __atomic_load_n(&lock->epoch, __ATOMIC_RELAXED) == weft__hook_epoch;
}

void weft__hook_lock_changes(struct weft__hook_lock *lock, weft_id who);
void weft__hook_lock_pushed(struct weft__hook_lock *lock, const void *address);

/* The calling OS thread has the lock.  Recording is on. */
static inline void weft_hook_lock_taken(const void *address, int owner)
{
	struct weft__hook_lock *lock = weft__hook_lock_of(address);
	const weft_id who = weft__hook_thread.epoch == weft__hook_epoch ? weft__hook_thread.running : 0;
	if (__builtin_expect(!weft__hook_lock_is(lock, address), 0)) {
		weft__hook_lock_pushed(lock, address);
		if (!weft__hook_lock_is(lock, address))
			return;
	}
	__atomic_store_n(&lock->who, who, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->owner, owner, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->check, (uintptr_t)address ^ (uintptr_t)who, __ATOMIC_RELEASE);
	if (__builtin_expect(__atomic_load_n(&lock->waiters, __ATOMIC_RELAXED) > 0, 0))
		weft__hook_lock_changes(lock, who);
}

/* It is about to give it back. */
static inline void weft_hook_lock_given(const void *address)
{
	struct weft__hook_lock *lock = weft__hook_lock_of(address);
	if (__atomic_load_n(&lock->address, __ATOMIC_RELAXED) != address)
		return;
	__atomic_store_n(&lock->who, 0, __ATOMIC_RELAXED);
	if (__builtin_expect(__atomic_load_n(&lock->waiters, __ATOMIC_RELAXED) > 0, 0))
		weft__hook_lock_changes(lock, 0);
}

/* Around a wait of the calling OS thread for a lock, which somebody else has; `owner` as above.  False: nobody knows who has it,
 * and there is nothing to tell when it is over. */
bool weft_hook_lock_waits(const void *address, int owner, const void *caller);
void weft_hook_lock_waited(const void *address);

#endif
