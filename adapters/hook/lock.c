/* lock.c: records the waiters and holders of locks.  SPDX-License-Identifier: ISC */
#include "adapters/hook/lock.h"

#include <errno.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/callers.h"

struct weft__hook_lock weft__hook_locks[WEFT__HOOK_LOCKS];

/* Assigns the table entry to another lock, unless a thread waits for the entry's present lock. */
void weft__hook_lock_replace(struct weft__hook_lock *lock, const void *address)
{
	if (__atomic_load_n(&lock->epoch, __ATOMIC_RELAXED) == weft__hook_epoch &&
	    __atomic_load_n(&lock->waiters, __ATOMIC_RELAXED) > 0)
		return;
	__atomic_store_n(&lock->check, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->id, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->recorded_holder, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->waiters, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->epoch, weft__hook_epoch, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->address, address, __ATOMIC_RELEASE);
}

/* Records promise `holder_id` as the only holder of the lock; 0: no holder. */
void weft__hook_lock_record_holder(struct weft__hook_lock *lock, weft_id holder_id)
{
	const weft_id id = __atomic_load_n(&lock->id, __ATOMIC_ACQUIRE);
	const weft_id before = id ? __atomic_exchange_n(&lock->recorded_holder, holder_id, __ATOMIC_ACQ_REL) : holder_id;
	if (before == holder_id)
		return;
	if (before)
		weft_release(before, id);
	if (holder_id) {
		weft_place(holder_id, weft_hook_site(__atomic_load_n(&lock->taken_at, __ATOMIC_RELAXED)));
		weft_hold(holder_id, id);
	}
}

static weft_id current_promise(void)
{
	return weft__hook_get_thread()->epoch == weft__hook_epoch ? weft__hook_get_thread()->running : 0;
}

/* Returns the lock's holder if the holder is certain; else 0. */
static weft_id get_certain_holder(const struct weft__hook_lock *lock, const void *address, int owner)
{
	const uintptr_t check = __atomic_load_n(&lock->check, __ATOMIC_ACQUIRE);
	const weft_id holder_id = __atomic_load_n(&lock->holder_id, __ATOMIC_RELAXED);
	const bool is_owner = __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == owner;
	return is_owner && check == ((uintptr_t)address ^ (uintptr_t)holder_id) ? holder_id : 0;
}

static weft_id get_or_create_promise(struct weft__hook_lock *lock, const void *caller)
{
	weft_id id = __atomic_load_n(&lock->id, __ATOMIC_ACQUIRE), none = 0;
	if (id)
		return id;
	struct weft_record_place *place = weft_hook_site(weft__hook_outermost(caller));
	id = place ? weft_create_at(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, place) : weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, NULL);
	return __atomic_compare_exchange_n(&lock->id, &none, id, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ? id : none;
}

/* Returns the number of waiting threads, including this one; 0 if the entry was assigned to another lock, or a fork or a new
 * recording has reset the entry. */
static uint32_t remove_waiter(struct weft__hook_lock *lock, const void *address)
{
	uint32_t waiters = __atomic_load_n(&lock->waiters, __ATOMIC_RELAXED);
	while (waiters > 0 && __atomic_load_n(&lock->address, __ATOMIC_RELAXED) == address &&
	       !__atomic_compare_exchange_n(&lock->waiters, &waiters, waiters - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return __atomic_load_n(&lock->address, __ATOMIC_RELAXED) == address ? waiters : 0;
}

bool weft_hook_lock_begin_wait(const void *address, int owner, const void *caller)
{
	struct weft__hook_lock *lock = weft__hook_lock_of(address);
	const weft_id me = current_promise();
	const int saved = errno;
	const bool is_internal = weft__hook_get_thread()->callbacks == 0 && weft_hook_is_internal(weft__hook_outermost(caller));
	if (!me || is_internal || !weft__hook_lock_matches(lock, address))
		return false;
	__atomic_add_fetch(&lock->waiters, 1, __ATOMIC_SEQ_CST);
	const weft_id holder = get_certain_holder(lock, address, owner);
	const weft_id id = holder ? get_or_create_promise(lock, caller) : 0;
	if (!id) {
		remove_waiter(lock, address);
		return false;
	}
	weft_place(me, weft_hook_site(weft__hook_outermost(caller)));
	weft_await(me, id);
	weft__hook_lock_record_holder(lock, holder);
	errno = saved;
	return true;
}

/* While other threads wait, each new holder of the lock is recorded; the last waiter records no holder. */
void weft_hook_lock_end_wait(const void *address)
{
	struct weft__hook_lock *lock = weft__hook_lock_of(address);
	const weft_id me = current_promise(), id = __atomic_load_n(&lock->id, __ATOMIC_ACQUIRE);
	const uint32_t waiters = remove_waiter(lock, address);
	if (waiters == 0 || !me || !id || !weft_is_on())
		return;
	const int saved = errno;
	weft_awaits_no_more(me, id);
	weft__hook_lock_record_holder(lock, waiters > 1 ? me : 0);
	errno = saved;
}
