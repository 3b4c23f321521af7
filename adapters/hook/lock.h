/* lock.h: records the holders and waiters of locks (private to adapters/).
 *
 * While no thread waits for a lock, nothing is recorded, and the lock's holder is only written to a table by the lock's address,
 * which takes a few ns.  While a thread waits for a lock, the trace contains the lock's holder, so that deadlocks and contention
 * are visible.  Locks whose addresses have the same hash share a table entry.  A lock that loses its table entry is not
 * recorded.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_LOCK_H
#define WEFT_HOOK_LOCK_H

#include "adapters/hook/callers.h"
#include "adapters/hook/thread.h"

enum { WEFT__HOOK_LOCKS = 1024 };

struct weft__hook_lock {
	const void *address;
	weft_id holder_id;       /* promise that took the lock last; 0 if no promise holds it */
	uintptr_t check;         /* XOR of address and holder, which proves that both values belong together */
	weft_id id;              /* promise of the lock; 0 before the first wait */
	weft_id recorded_holder; /* holder of the lock according to the trace; 0: none */
	const void *taken_at;    /* return address of the call by which holder_id took the lock */
	int owner;               /* owner id that the lock itself stores; 0 if the lock stores none */
	uint32_t waiters;        /* recorded waiters */
	unsigned epoch;
} __attribute__((aligned(64)));

extern struct weft__hook_lock weft__hook_locks[WEFT__HOOK_LOCKS];

static inline struct weft__hook_lock *weft__hook_lock_of(const void *address)
{
	return &weft__hook_locks[(uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 54];
}

/* Returns whether the table entry belongs to the lock at `address` in the current recording. */
static inline bool weft__hook_lock_matches(const struct weft__hook_lock *lock, const void *address)
{
	return __atomic_load_n(&lock->address, __ATOMIC_ACQUIRE) == address &&
	       __atomic_load_n(&lock->epoch, __ATOMIC_RELAXED) == weft__hook_epoch;
}

void weft__hook_lock_record_holder(struct weft__hook_lock *lock, weft_id holder_id);
void weft__hook_lock_replace(struct weft__hook_lock *lock, const void *address);

/* Notes that the calling thread has taken the lock; `caller` is the return address of the call.  Recording must be on. */
static inline void weft_hook_lock_acquire(const void *address, int owner, const void *caller)
{
	struct weft__hook_lock *lock = weft__hook_lock_of(address);
	const weft_id holder_id = weft__hook_get_thread()->epoch == weft__hook_epoch ? weft__hook_get_thread()->running : 0;
	if (__builtin_expect(!weft__hook_lock_matches(lock, address), 0)) {
		weft__hook_lock_replace(lock, address);
		if (!weft__hook_lock_matches(lock, address))
			return;
	}
	__atomic_store_n(&lock->holder_id, holder_id, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->owner, owner, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->taken_at, weft__hook_outermost(caller), __ATOMIC_RELAXED);
	__atomic_store_n(&lock->check, (uintptr_t)address ^ (uintptr_t)holder_id, __ATOMIC_RELEASE);
	if (__builtin_expect(__atomic_load_n(&lock->waiters, __ATOMIC_RELAXED) > 0, 0))
		weft__hook_lock_record_holder(lock, holder_id);
}

/* Notes that the calling thread is about to release the lock. */
static inline void weft_hook_lock_release(const void *address)
{
	struct weft__hook_lock *lock = weft__hook_lock_of(address);
	if (__atomic_load_n(&lock->address, __ATOMIC_RELAXED) != address)
		return;
	__atomic_store_n(&lock->holder_id, 0, __ATOMIC_RELAXED);
	if (__builtin_expect(__atomic_load_n(&lock->waiters, __ATOMIC_RELAXED) > 0, 0))
		weft__hook_lock_record_holder(lock, 0);
}

/* Record a wait of the calling thread: call begin_wait before the wait and end_wait after it; `owner` is as in
 * weft_hook_lock_acquire().  If the holder is unknown, begin_wait returns false, and end_wait must not be called. */
bool weft_hook_lock_begin_wait(const void *address, int owner, const void *caller);
void weft_hook_lock_end_wait(const void *address);

#endif
