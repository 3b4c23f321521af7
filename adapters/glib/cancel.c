/* cancel.c: finds the tasks that a GCancellable cancels.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/glib/common.h"

enum { CHAIN_COUNT = 256, MAX_SPINS = 20000 };

/* Chains of tasks, in a hash table by the address of the tasks' GCancellable. */
static struct chain {
	uint32_t lock, first;
} chains[CHAIN_COUNT];

static struct chain *lock_chain(const GCancellable *cancellable)
{
	struct chain *c = &chains[(uintptr_t)cancellable * 0x9e3779b97f4a7c15u >> 56];
	for (unsigned i = 0; __atomic_exchange_n(&c->lock, 1, __ATOMIC_ACQUIRE); i++)
		if (i == MAX_SPINS)
			return NULL;
	return c;
}

static void unlock_chain(struct chain *c)
{
	__atomic_store_n(&c->lock, 0, __ATOMIC_RELEASE);
}

void weft__glib_cancel_add(struct weft__glib_object *task, const GCancellable *cancellable)
{
	struct chain *c = cancellable ? lock_chain(cancellable) : NULL;
	if (!c)
		return;
	task->cancellable = cancellable;
	task->cancelled_before = 0;
	task->cancelled_next = c->first;
	if (c->first)
		weft__glib_object_at(c->first)->cancelled_before = task->index;
	c->first = task->index;
	unlock_chain(c);
}

void weft__glib_cancel_remove(struct weft__glib_object *task)
{
	struct chain *c = lock_chain(task->cancellable);
	if (!c)
		return;
	if (task->cancelled_next)
		weft__glib_object_at(task->cancelled_next)->cancelled_before = task->cancelled_before;
	if (task->cancelled_before)
		weft__glib_object_at(task->cancelled_before)->cancelled_next = task->cancelled_next;
	else if (c->first == task->index)
		c->first = task->cancelled_next;
	task->cancellable = NULL;
	unlock_chain(c);
}

void weft__glib_cancels_clear(void)
{
	memset(chains, 0, sizeof chains);
}

/* Signals the tasks of the GCancellable; most tasks then end. */
void weft__g_cancellable_cancel(GCancellable *cancellable)
{
	if (cancellable && weft__glib_is_recording() && !weft__glib_real.g_cancellable_is_cancelled(cancellable)) {
		weft_id by = weft__glib_current_promise();
		struct chain *c = lock_chain(cancellable);
		for (uint32_t index = c ? c->first : 0; index;) {
			const struct weft__glib_object *task = weft__glib_object_at(index);
			if (task->cancellable == cancellable && !task->is_returned && !task->is_ended) {
				weft_signal_only(by, task->id);
				WEFT_NOTE(task->id, "cancelled");
			}
			index = task->cancelled_next;
		}
		if (c)
			unlock_chain(c);
	}
	weft__glib_real.g_cancellable_cancel(cancellable);
}
