/* condition.c: records waits for conditions, barriers and semaphores.  SPDX-License-Identifier: ISC */
#include "adapters/hook/condition.h"

#include <errno.h>
#include <string.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/callers.h"

struct weft__hook_condition weft__hook_conditions[WEFT__HOOK_CONDITIONS];

static weft_id current_promise(void)
{
	return weft__hook_get_thread()->epoch == weft__hook_epoch ? weft__hook_get_thread()->running : 0;
}

/* Returns whether the wait or signal is internal to a runtime or to the recorder.  Internal waits of a runtime's idle threads
 * are ignored, because they say nothing about the program. */
static bool is_runtime_internal(const void *caller)
{
	return weft__hook_is_recorder(caller) ||
	       (weft__hook_get_thread()->callbacks == 0 && (weft__hook_is_runtime(caller) || weft_hook_is_internal(caller)));
}

/* Returns the promise in *of; if there is no promise, creates it first.  If `by` is not 0, promise `by` signalled the object at
 * time `when`, before the object had a promise. */
static weft_id get_or_create(weft_id *of, enum weft_kind kind, const char *what, const void *caller, weft_id by, uint64_t when)
{
	weft_id id = __atomic_load_n(of, __ATOMIC_ACQUIRE), none = 0;
	if (id)
		return id;
	struct weft_record_place *place = weft_hook_site(caller);
	if (by && place)
		id = weft_pending_at(by, 0, kind, place, when, "");
	else
		id = place ? weft_create_at(WEFT_SYSTEM_ID, kind, place) : weft_create(WEFT_SYSTEM_ID, kind, NULL);
	if (what)
		weft_label(id, what);
	return __atomic_compare_exchange_n(of, &none, id, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ? id : none;
}

/* ---- Conditions ---- */

/* Assigns the table entry to the object at `address`.  Returns false if the entry belongs to another object that still has
 * recorded state. */
static bool claim_entry(struct weft__hook_condition *condition, const void *address, bool is_wait)
{
	if (weft__hook_condition_matches(condition, address))
		return true;
	if (__atomic_load_n(&condition->epoch, __ATOMIC_RELAXED) == weft__hook_epoch &&
	    __atomic_load_n(&condition->id, __ATOMIC_RELAXED) &&
	    (!is_wait || __atomic_load_n(&condition->waiters, __ATOMIC_RELAXED) > 0))
		return false;
	__atomic_store_n(&condition->id, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&condition->signalled_by, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&condition->waiters, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&condition->has_lost_signal, false, __ATOMIC_RELAXED);
	__atomic_store_n(&condition->epoch, weft__hook_epoch, __ATOMIC_RELAXED);
	__atomic_store_n(&condition->address, address, __ATOMIC_RELEASE);
	return true;
}

weft_id weft_hook_condition_begin_wait(const void *address, const char *what, const void *caller)
{
	struct weft__hook_condition *condition = weft__hook_condition_of(address);
	const int saved = errno;
	const weft_id me = current_promise();
	caller = weft__hook_outermost(caller);
	if (!me || is_runtime_internal(caller) || !claim_entry(condition, address, true))
		return 0;
	__atomic_add_fetch(&condition->waiters, 1, __ATOMIC_SEQ_CST);
	const weft_id id = get_or_create(&condition->id, WEFT_KIND_CONDITION, what, caller,
	    __atomic_load_n(&condition->signalled_by, __ATOMIC_ACQUIRE),
	    __atomic_load_n(&condition->signalled_at, __ATOMIC_RELAXED));
	weft_place(me, weft_hook_site(caller));
	weft_await(me, id);
	__atomic_store_n(&condition->has_lost_signal, false, __ATOMIC_RELAXED);
	errno = saved;
	return id;
}

/* Does not decrement the count of waiters if a fork or a new recording has reset the entry. */
void weft_hook_condition_end_wait(const void *address, weft_id id)
{
	struct weft__hook_condition *condition = weft__hook_condition_of(address);
	const weft_id me = current_promise();
	uint32_t waiters = __atomic_load_n(&condition->waiters, __ATOMIC_RELAXED);
	while (
	    waiters > 0 && weft__hook_condition_matches(condition, address) &&
	    !__atomic_compare_exchange_n(&condition->waiters, &waiters, waiters - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	if (!me || !weft_is_on())
		return;
	const int saved = errno;
	weft_awaits_no_more(me, id);
	errno = saved;
}

void weft__hook_condition_signal_slow(
    struct weft__hook_condition *condition, const void *address, bool to_all, const void *caller)
{
	enum { MAX_SIGNALS = 64 };
	const int saved = errno;
	const weft_id me = current_promise();
	if (!me || is_runtime_internal(weft__hook_outermost(caller)) || !claim_entry(condition, address, false))
		return;
	const uint32_t waiters = __atomic_load_n(&condition->waiters, __ATOMIC_RELAXED);
	const weft_id id = __atomic_load_n(&condition->id, __ATOMIC_ACQUIRE);
	if (!id) {
		weft__hook_condition_note_early_signal(condition);
		return;
	}
	if (waiters == 0)
		__atomic_store_n(&condition->has_lost_signal, true, __ATOMIC_RELAXED);
	weft_signal_only(me, id);
	for (uint32_t i = 1; to_all && i < waiters && i < MAX_SIGNALS; i++)
		weft_signal_only(me, id);
	errno = saved;
}

/* ---- Semaphores ---- */

struct holder {
	weft_id promise;
	uint32_t count;
};

struct semaphore {
	const void *address;
	weft_id id;
	uint32_t waiters;
	unsigned epoch;
	bool is_of_call; /* `id` is the condition of one call in a language */
	bool is_message; /* another thread than the holder posts tokens, or the holders are unknown: the semaphore is recorded as
			    a condition */
	struct holder holders[WEFT__HOOK_HOLDERS];
};

/* Semaphores whose addresses have the same hash. */
static struct semaphore_set {
	bool is_busy; /* spin lock */
	struct semaphore semaphores[WEFT__HOOK_SEMAPHORES_OF_SET];
} sets[WEFT__HOOK_SEMAPHORE_SETS];

static struct semaphore_set *find_set(const void *address)
{
	return &sets[((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 32) % WEFT__HOOK_SEMAPHORE_SETS];
}

static void reset_semaphore(struct semaphore *s, const void *address)
{
	s->id = 0;
	s->waiters = 0;
	s->is_of_call = false;
	__atomic_store_n(&s->is_message, false, __ATOMIC_RELAXED);
	memset(s->holders, 0, sizeof s->holders);
	s->epoch = weft__hook_epoch;
	__atomic_store_n(&s->address, address, __ATOMIC_RELAXED);
}

static bool is_known(const struct semaphore *s, const void *address)
{
	return s->address == address && s->epoch == weft__hook_epoch;
}

static bool has_holder(const struct semaphore *s)
{
	for (const struct holder *h = s->holders; h < s->holders + WEFT__HOOK_HOLDERS; h++)
		if (h->promise)
			return true;
	return false;
}

/* Returns how much is lost if another semaphore takes the entry. */
static int get_loss(const struct semaphore *s)
{
	return s->epoch != weft__hook_epoch || !s->address ? 0 : s->waiters > 0 ? 3 : has_holder(s) ? 2 : 1;
}

/* Returns the entry of the semaphore, a new one if there is none; NULL: others wait for all semaphores of the set. */
static struct semaphore *find_or_replace(struct semaphore_set *set, const void *address)
{
	struct semaphore *end = set->semaphores + WEFT__HOOK_SEMAPHORES_OF_SET, *best = set->semaphores;
	for (struct semaphore *s = set->semaphores; s < end; s++) {
		if (is_known(s, address))
			return s;
		if (get_loss(s) < get_loss(best))
			best = s;
	}
	if (get_loss(best) == 3)
		return NULL;
	reset_semaphore(best, address);
	return best;
}

static void unlock_set(struct semaphore_set *set)
{
	__atomic_store_n(&set->is_busy, false, __ATOMIC_RELEASE);
}

/* Locks the set of a semaphore.  Gives up after some spins, because a signal handler may have interrupted the owner; then the
 * holders become unknown. */
static struct semaphore *lock_semaphore(const void *address)
{
	enum { MAX_SPINS = 200 };
	struct semaphore_set *set = find_set(address);
	for (int i = 0; __atomic_exchange_n(&set->is_busy, true, __ATOMIC_ACQUIRE); i++)
		if (i == MAX_SPINS) {
			for (struct semaphore *s = set->semaphores; s < set->semaphores + WEFT__HOOK_SEMAPHORES_OF_SET; s++)
				if (__atomic_load_n(&s->address, __ATOMIC_RELAXED) == address)
					__atomic_store_n(&s->is_message, true, __ATOMIC_RELAXED);
			return NULL;
		}
	struct semaphore *s = find_or_replace(set, address);
	if (!s)
		unlock_set(set);
	return s;
}

static void unlock_semaphore(const struct semaphore *s)
{
	unlock_set(find_set(s->address));
}

static bool is_message(const struct semaphore *s)
{
	return __atomic_load_n(&s->is_message, __ATOMIC_RELAXED);
}

static struct holder *find_holder(struct semaphore *s, weft_id promise)
{
	for (struct holder *h = s->holders; h < s->holders + WEFT__HOOK_HOLDERS; h++)
		if (h->promise == promise)
			return h;
	return NULL;
}

static bool is_held_by_others(const struct semaphore *s, weft_id me)
{
	for (const struct holder *h = s->holders; h < s->holders + WEFT__HOOK_HOLDERS; h++)
		if (h->promise && h->promise != me)
			return true;
	return false;
}

/* Records the holders of a semaphore if `holds`, or else the releases of these holders.  The trace contains the holders only
 * while a promise waits for the semaphore. */
static void record_holders(const struct semaphore *s, bool holds)
{
	for (const struct holder *h = s->holders; h < s->holders + WEFT__HOOK_HOLDERS; h++)
		if (h->promise && holds)
			weft_hold(h->promise, s->id);
		else if (h->promise)
			weft_release(h->promise, s->id);
}

/* Records the semaphore as a condition from now on. */
static void convert_to_condition(struct semaphore *s)
{
	if (is_message(s))
		return;
	if (s->waiters > 0)
		record_holders(s, false);
	memset(s->holders, 0, sizeof s->holders);
	__atomic_store_n(&s->is_message, true, __ATOMIC_RELAXED);
	s->id = 0;
}

/* Last attempt of this thread to take a semaphore that failed, and the call in a language that made the attempt. */
static __thread struct {
	const void *semaphore;
	const struct weft_hook_language_call *call;
	weft_id input;
} attempt __attribute__((tls_model("initial-exec")));

void weft_hook_semaphore_note_attempt(const void *address)
{
	if (!weft__hook_language.find_call || !current_promise())
		return;
	const int saved = errno;
	attempt.call = weft_hook_find_call(&attempt.input);
	attempt.semaphore = address;
	errno = saved;
}

/* Returns the call in a language that is about to wait for the semaphore; NULL: none. */
static const struct weft_hook_language_call *take_call(const void *address, weft_id *input)
{
	const struct weft_hook_language_call *call = attempt.semaphore == address ? attempt.call : NULL;
	*input = call ? attempt.input : 0;
	attempt.semaphore = NULL;
	return call;
}

/* Creates the promise for which a call in a language waits: another call's result, a lock with a holder, or an action of another
 * thread. */
static weft_id create_for_call(
    struct semaphore *s, weft_id me, const struct weft_hook_language_call *call, weft_id input, bool has_holder)
{
	if (!input && !s->id) {
		s->id = weft_create(WEFT_SYSTEM_ID, has_holder ? WEFT_KIND_LOCK : WEFT_KIND_CONDITION, call->site);
		s->is_of_call = !has_holder;
		if (call->function)
			weft_label(s->id, call->function);
	}
	weft_call_site(me, call->site, call->function ? call->function : "acquire");
	return input ? input : s->id;
}

weft_id weft_hook_semaphore_begin_wait(const void *address, const void *caller)
{
	const int saved = errno;
	const weft_id me = current_promise();
	weft_id input, id;
	const struct weft_hook_language_call *call = take_call(address, &input);
	caller = weft__hook_outermost(caller);
	struct semaphore *s = me && (call || !is_runtime_internal(caller)) ? lock_semaphore(address) : NULL;
	if (!s)
		return 0;
	const bool is_pool = !is_message(s) && (is_held_by_others(s, me) || s->waiters > 0);
	if (!is_pool)
		convert_to_condition(s);
	if (call) {
		id = create_for_call(s, me, call, input, is_pool);
	} else {
		id = get_or_create(&s->id, is_pool ? WEFT_KIND_POOL : WEFT_KIND_CONDITION, "semaphore", caller, 0, 0);
		weft_place(me, weft_hook_site(caller));
	}
	weft_await(me, id);
	if (s->waiters++ == 0 && is_pool)
		record_holders(s, true);
	unlock_semaphore(s);
	errno = saved;
	return id;
}

void weft_hook_semaphore_end_wait(const void *address, weft_id id)
{
	const int saved = errno;
	const weft_id me = current_promise();
	struct semaphore *s = me && weft_is_on() ? lock_semaphore(address) : NULL;
	if (!s)
		return;
	weft_awaits_no_more(me, id);
	if (s->waiters > 0 && --s->waiters == 0) {
		if (!is_message(s)) {
			record_holders(s, false);
		} else if (s->is_of_call && s->id) {
			weft_resolve(WEFT_SYSTEM_ID, s->id);
			s->id = 0;
		}
	}
	unlock_semaphore(s);
	errno = saved;
}

void weft_hook_semaphore_forget(const void *address)
{
	const struct semaphore_set *set = find_set(address);
	bool is_there = false;
	for (int i = 0; i < WEFT__HOOK_SEMAPHORES_OF_SET; i++)
		is_there |= __atomic_load_n(&set->semaphores[i].address, __ATOMIC_RELAXED) == address;
	struct semaphore *s = is_there ? lock_semaphore(address) : NULL;
	if (!s)
		return;
	if (s->waiters == 0)
		reset_semaphore(s, address);
	unlock_semaphore(s);
}

void weft_hook_semaphore_acquire(const void *address)
{
	const int saved = errno;
	const weft_id me = current_promise();
	struct semaphore *s = me ? lock_semaphore(address) : NULL;
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
		convert_to_condition(s);
	}
	unlock_semaphore(s);
	errno = saved;
}

void weft_hook_semaphore_post(const void *address)
{
	const int saved = errno;
	const weft_id me = current_promise();
	struct semaphore *s = me ? lock_semaphore(address) : NULL;
	if (!s)
		return;
	const weft_id awaited = s->id;
	struct holder *h = is_message(s) ? NULL : find_holder(s, me);
	if (h && --h->count == 0) {
		h->promise = 0;
		if (s->waiters > 0)
			weft_release(me, s->id);
	} else if (!h) {
		convert_to_condition(s);
	}
	if (s->waiters > 0 && awaited)
		weft_signal_only(me, awaited);
	unlock_semaphore(s);
	errno = saved;
}
