/* condition.c: conditions, barriers and semaphores that OS threads wait for.  SPDX-License-Identifier: ISC */
#include "adapters/hook/condition.h"

#include <errno.h>
#include <string.h>

#include "adapters/hook/load.h"

struct weft__hook_condition weft__hook_conditions[WEFT__HOOK_CONDITIONS];

static weft_id current(void)
{
	return weft__hook_thread.epoch == weft__hook_epoch ? weft__hook_thread.running : 0;
}

/* Whether it is the runtime's own affair: its idle OS threads say nothing of the program. */
static bool is_of_runtime(const void *caller)
{
	return weft__hook_is_recorder(caller) || (weft__hook_thread.callbacks == 0 && weft__hook_is_runtime(caller));
}

/* by: who has signalled it before, at that time; 0: nobody. */
static weft_id create(weft_id *of, enum weft_kind kind, const char *what, const void *caller, weft_id by, uint64_t when)
{
	weft_id id = __atomic_load_n(of, __ATOMIC_ACQUIRE), none = 0;
	if (id)
		return id;
	struct weft_record_place *place = weft_hook_place(caller);
	if (by && place)
		id = weft_pending_at(by, 0, kind, place, when, "");
	else
		id = place ? weft_create_at(WEFT_SYSTEM_ID, kind, place) : weft_create(WEFT_SYSTEM_ID, kind, NULL);
	if (what)
		weft_label(id, what);
	return __atomic_compare_exchange_n(of, &none, id, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ? id : none;
}

/* ---- Conditions ---- */

/* The place becomes this one's; false: it is another's, of which something was told. */
static bool is_own(struct weft__hook_condition *condition, const void *address, bool is_wait)
{
	if (weft__hook_condition_is(condition, address))
		return true;
	if (__atomic_load_n(&condition->epoch, __ATOMIC_RELAXED) == weft__hook_epoch &&
	    __atomic_load_n(&condition->id, __ATOMIC_RELAXED) &&
	    (!is_wait || __atomic_load_n(&condition->waiters, __ATOMIC_RELAXED) > 0))
		return false;
	__atomic_store_n(&condition->id, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&condition->missed_by, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&condition->waiters, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&condition->is_unheard, false, __ATOMIC_RELAXED);
	__atomic_store_n(&condition->epoch, weft__hook_epoch, __ATOMIC_RELAXED);
	__atomic_store_n(&condition->address, address, __ATOMIC_RELEASE);
	return true;
}

weft_id weft_hook_condition_waits(const void *address, const char *what, const void *caller)
{
	struct weft__hook_condition *condition = weft__hook_condition_of(address);
	const int saved = errno;
	const weft_id me = current();
	if (!me || is_of_runtime(caller) || !is_own(condition, address, true))
		return 0;
	__atomic_add_fetch(&condition->waiters, 1, __ATOMIC_SEQ_CST);
	const weft_id id = create(&condition->id, WEFT_KIND_CONDITION, what, caller,
	    __atomic_load_n(&condition->missed_by, __ATOMIC_ACQUIRE), __atomic_load_n(&condition->missed_when, __ATOMIC_RELAXED));
	weft_await(me, id);
	__atomic_store_n(&condition->is_unheard, false, __ATOMIC_RELAXED);
	errno = saved;
	return id;
}

/* Where a fork or a new recording came in between, nobody is counted any longer. */
void weft_hook_condition_waited(const void *address, weft_id id)
{
	struct weft__hook_condition *condition = weft__hook_condition_of(address);
	const weft_id me = current();
	uint32_t waiters = __atomic_load_n(&condition->waiters, __ATOMIC_RELAXED);
	while (
	    waiters > 0 && weft__hook_condition_is(condition, address) &&
	    !__atomic_compare_exchange_n(&condition->waiters, &waiters, waiters - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	if (!me || !weft_is_on())
		return;
	const int saved = errno;
	weft_awaits_no_more(me, id);
	errno = saved;
}

void weft__hook_condition_signalled(struct weft__hook_condition *condition, const void *address, bool to_all, const void *caller)
{
	enum { MOST = 64 };
	const int saved = errno;
	const weft_id me = current();
	if (!me || is_of_runtime(caller) || !is_own(condition, address, false))
		return;
	const uint32_t waiters = __atomic_load_n(&condition->waiters, __ATOMIC_RELAXED);
	const weft_id id = __atomic_load_n(&condition->id, __ATOMIC_ACQUIRE);
	if (!id) {
		__atomic_store_n(&condition->missed_when, weft_now(), __ATOMIC_RELAXED);
		__atomic_store_n(&condition->missed_by, me, __ATOMIC_RELEASE);
		return;
	}
	if (waiters == 0)
		__atomic_store_n(&condition->is_unheard, true, __ATOMIC_RELAXED);
	weft_signal_only(me, id);
	for (uint32_t i = 1; to_all && i < waiters && i < MOST; i++)
		weft_signal_only(me, id);
	errno = saved;
}

/* ---- Semaphores ---- */

struct holder {
	weft_id who;
	uint32_t count;
};

static struct semaphore {
	const void *address;
	weft_id id;
	uint32_t waiters;
	unsigned epoch;
	bool is_busy;    /* an OS thread changes it */
	bool is_message; /* its tokens are not given back by those who have them, or it is not known who has them */
	struct holder holders[WEFT__HOOK_HOLDERS];
} semaphores[WEFT__HOOK_SEMAPHORES];

/* Nobody waits for another one here: who cannot change it at once leaves it as one of whose holders nothing is known. */
static struct semaphore *begin(const void *address)
{
	enum { TRIES = 200 };
	struct semaphore *s = &semaphores[(uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 56];
	for (int i = 0; __atomic_exchange_n(&s->is_busy, true, __ATOMIC_ACQUIRE); i++)
		if (i == TRIES) {
			__atomic_store_n(&s->is_message, true, __ATOMIC_RELAXED);
			return NULL;
		}
	const bool is_old = s->epoch != weft__hook_epoch;
	if (s->address == address && !is_old)
		return s;
	if (is_old || s->waiters == 0) {
		s->id = 0;
		s->waiters = 0;
		__atomic_store_n(&s->is_message, false, __ATOMIC_RELAXED);
		memset(s->holders, 0, sizeof s->holders);
		s->epoch = weft__hook_epoch;
		s->address = address;
		return s;
	}
	__atomic_store_n(&s->is_busy, false, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_message(const struct semaphore *s)
{
	return __atomic_load_n(&s->is_message, __ATOMIC_RELAXED);
}

static void end(struct semaphore *s)
{
	__atomic_store_n(&s->is_busy, false, __ATOMIC_RELEASE);
}

static struct holder *find_holder(struct semaphore *s, weft_id who)
{
	for (struct holder *h = s->holders; h < s->holders + WEFT__HOOK_HOLDERS; h++)
		if (h->who == who)
			return h;
	return NULL;
}

static bool others_hold(const struct semaphore *s, weft_id me)
{
	for (const struct holder *h = s->holders; h < s->holders + WEFT__HOOK_HOLDERS; h++)
		if (h->who && h->who != me)
			return true;
	return false;
}

/* While somebody waits, the trace knows who has one. */
static void tell_holders(const struct semaphore *s, bool holds)
{
	for (const struct holder *h = s->holders; h < s->holders + WEFT__HOOK_HOLDERS; h++)
		if (h->who && holds)
			weft_hold(h->who, s->id);
		else if (h->who)
			weft_release(h->who, s->id);
}

/* From now on it is a condition. */
static void becomes_message(struct semaphore *s)
{
	if (is_message(s))
		return;
	if (s->waiters > 0)
		tell_holders(s, false);
	memset(s->holders, 0, sizeof s->holders);
	__atomic_store_n(&s->is_message, true, __ATOMIC_RELAXED);
	s->id = 0;
}

weft_id weft_hook_semaphore_waits(const void *address, const void *caller)
{
	const int saved = errno;
	const weft_id me = current();
	struct semaphore *s = me && !is_of_runtime(caller) ? begin(address) : NULL;
	if (!s)
		return 0;
	const bool is_pool = !is_message(s) && (others_hold(s, me) || s->waiters > 0);
	if (!is_pool)
		becomes_message(s);
	const weft_id id = create(&s->id, is_pool ? WEFT_KIND_POOL : WEFT_KIND_CONDITION, "semaphore", caller, 0, 0);
	weft_await(me, id);
	if (s->waiters++ == 0 && is_pool)
		tell_holders(s, true);
	end(s);
	errno = saved;
	return id;
}

void weft_hook_semaphore_waited(const void *address, weft_id id)
{
	const int saved = errno;
	const weft_id me = current();
	struct semaphore *s = me && weft_is_on() ? begin(address) : NULL;
	if (!s)
		return;
	weft_awaits_no_more(me, id);
	if (s->waiters > 0 && --s->waiters == 0 && !is_message(s))
		tell_holders(s, false);
	end(s);
	errno = saved;
}

void weft_hook_semaphore_taken(const void *address)
{
	const int saved = errno;
	const weft_id me = current();
	struct semaphore *s = me ? begin(address) : NULL;
	if (!s)
		return;
	struct holder *h = is_message(s) ? NULL : find_holder(s, me);
	if (h) {
		h->count++;
	} else if (!is_message(s) && (h = find_holder(s, 0))) {
		*h = (struct holder){me, 1};
		if (s->waiters > 0)
			weft_hold(me, s->id);
	} else {
		becomes_message(s);
	}
	end(s);
	errno = saved;
}

void weft_hook_semaphore_posts(const void *address)
{
	const int saved = errno;
	const weft_id me = current();
	struct semaphore *s = me ? begin(address) : NULL;
	if (!s)
		return;
	const weft_id awaited = s->id;
	struct holder *h = is_message(s) ? NULL : find_holder(s, me);
	if (h && --h->count == 0) {
		h->who = 0;
		if (s->waiters > 0)
			weft_release(me, s->id);
	} else if (!h) {
		becomes_message(s);
	}
	if (s->waiters > 0 && awaited)
		weft_signal_only(me, awaited);
	end(s);
	errno = saved;
}
