/* lock.c: locks that OS threads wait for.  SPDX-License-Identifier: ISC */
#include "adapters/hook/lock.h"

#include <errno.h>

struct weft__hook_lock weft__hook_locks[WEFT__HOOK_LOCKS];

/* The place is another lock's from now on, unless somebody waits for the one that it was. */
void weft__hook_lock_pushed(struct weft__hook_lock *lock, const void *address)
{
	if (__atomic_load_n(&lock->epoch, __ATOMIC_RELAXED) == weft__hook_epoch &&
	    __atomic_load_n(&lock->waiters, __ATOMIC_RELAXED) > 0)
		return;
	__atomic_store_n(&lock->check, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->id, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->told, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->waiters, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->epoch, weft__hook_epoch, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->address, address, __ATOMIC_RELEASE);
}

/* The trace says that `who` has it, and nobody else; 0: nobody. */
void weft__hook_lock_changes(struct weft__hook_lock *lock, weft_id who)
{
	const weft_id id = __atomic_load_n(&lock->id, __ATOMIC_ACQUIRE);
	const weft_id before = id ? __atomic_exchange_n(&lock->told, who, __ATOMIC_ACQ_REL) : who;
	if (before == who)
		return;
	if (before)
		weft_release(before, id);
	if (who)
		weft_hold(who, id);
}

static weft_id waiting(void)
{
	return weft__hook_thread.epoch == weft__hook_epoch ? weft__hook_thread.running : 0;
}

/* Who has it, as far as it is known for certain; 0: nobody knows. */
static weft_id holder_of(const struct weft__hook_lock *lock, const void *address, int owner)
{
	const uintptr_t check = __atomic_load_n(&lock->check, __ATOMIC_ACQUIRE);
	const weft_id who = __atomic_load_n(&lock->who, __ATOMIC_RELAXED);
	const bool is_owner = __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == owner;
	return is_owner && check == ((uintptr_t)address ^ (uintptr_t)who) ? who : 0;
}

static weft_id promise_of(struct weft__hook_lock *lock, const void *caller)
{
	weft_id id = __atomic_load_n(&lock->id, __ATOMIC_ACQUIRE), none = 0;
	if (id)
		return id;
	struct weft_record_place *place = weft_hook_place(caller);
	id = place ? weft_create_at(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, place) : weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, NULL);
	return __atomic_compare_exchange_n(&lock->id, &none, id, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ? id : none;
}

/* How many waited, this one among them; 0: the place was another lock's in between, or a fork or a new recording came, and nobody
 * is counted any longer. */
static uint32_t one_less(struct weft__hook_lock *lock, const void *address)
{
	uint32_t waiters = __atomic_load_n(&lock->waiters, __ATOMIC_RELAXED);
	while (waiters > 0 && __atomic_load_n(&lock->address, __ATOMIC_RELAXED) == address &&
	       !__atomic_compare_exchange_n(&lock->waiters, &waiters, waiters - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return __atomic_load_n(&lock->address, __ATOMIC_RELAXED) == address ? waiters : 0;
}

bool weft_hook_lock_waits(const void *address, int owner, const void *caller)
{
	struct weft__hook_lock *lock = weft__hook_lock_of(address);
	const weft_id me = waiting();
	const int saved = errno;
	if (!me || !weft__hook_lock_is(lock, address))
		return false;
	__atomic_add_fetch(&lock->waiters, 1, __ATOMIC_SEQ_CST);
	const weft_id holder = holder_of(lock, address, owner);
	const weft_id id = holder ? promise_of(lock, caller) : 0;
	if (!id) {
		one_less(lock, address);
		return false;
	}
	weft_await(me, id);
	weft__hook_lock_changes(lock, holder);
	errno = saved;
	return true;
}

/* What is told while others wait: each that takes it.  The last one that waited says no more. */
void weft_hook_lock_waited(const void *address)
{
	struct weft__hook_lock *lock = weft__hook_lock_of(address);
	const weft_id me = waiting(), id = __atomic_load_n(&lock->id, __ATOMIC_ACQUIRE);
	const uint32_t waiters = one_less(lock, address);
	if (waiters == 0 || !me || !id || !weft_is_on())
		return;
	const int saved = errno;
	weft_awaits_no_more(me, id);
	weft__hook_lock_changes(lock, waiters > 1 ? me : 0);
	errno = saved;
}
