/* cancel.c: which tasks a GCancellable ends.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/glib/adapter.h"

enum { CHAINS = 256, TURNS = 20000 };

/* Chains of tasks, by the address of what cancels them. */
static struct chain {
	uint32_t lock, first;
} chains[CHAINS];

static struct chain *lock(const GCancellable *cancellable)
{
	struct chain *c = &chains[(uintptr_t)cancellable * 0x9e3779b97f4a7c15u >> 56];
	for (unsigned i = 0; __atomic_exchange_n(&c->lock, 1, __ATOMIC_ACQUIRE); i++)
		if (i == TURNS)
			return NULL;
	return c;
}

static void unlock(struct chain *c)
{
	__atomic_store_n(&c->lock, 0, __ATOMIC_RELEASE);
}

void weft__glib_cancel_add(struct weft__glib_thing *task, const GCancellable *cancellable)
{
	struct chain *c = cancellable ? lock(cancellable) : NULL;
	if (!c)
		return;
	task->cancellable = cancellable;
	task->cancelled_before = 0;
	task->cancelled_next = c->first;
	if (c->first)
		weft__glib_thing_at(c->first)->cancelled_before = task->place;
	c->first = task->place;
	unlock(c);
}

void weft__glib_cancel_remove(struct weft__glib_thing *task)
{
	struct chain *c = lock(task->cancellable);
	if (!c)
		return;
	if (task->cancelled_next)
		weft__glib_thing_at(task->cancelled_next)->cancelled_before = task->cancelled_before;
	if (task->cancelled_before)
		weft__glib_thing_at(task->cancelled_before)->cancelled_next = task->cancelled_next;
	else if (c->first == task->place)
		c->first = task->cancelled_next;
	task->cancellable = NULL;
	unlock(c);
}

void weft__glib_cancels_forget(void)
{
	memset(chains, 0, sizeof chains);
}

/* Its tasks are told; most end by that. */
void weft__g_cancellable_cancel(GCancellable *cancellable)
{
	if (cancellable && weft__glib_goes_on() && !weft__glib_real.g_cancellable_is_cancelled(cancellable)) {
		weft_id by = weft__glib_who();
		struct chain *c = lock(cancellable);
		for (uint32_t place = c ? c->first : 0; place;) {
			const struct weft__glib_thing *task = weft__glib_thing_at(place);
			if (task->cancellable == cancellable && !task->is_returned && !task->is_ended) {
				weft_signal_only(by, task->id);
				WEFT_NOTE(task->id, "cancelled");
			}
			place = task->cancelled_next;
		}
		if (c)
			unlock(c);
	}
	weft__glib_real.g_cancellable_cancel(cancellable);
}
