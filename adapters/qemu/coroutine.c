/* coroutine.c: coroutines, from their creation to their end, and who runs on them.  SPDX-License-Identifier: ISC */
#include "adapters/qemu/adapter.h"

/* As QEMU numbers them. */
enum { YIELDS = 1, ENDS = 2, ENTERS = 3 };

/* Memory of a coroutine that has ended is used again. */
static void is_created(const void *coroutine, weft__qemu_entry *entry)
{
	struct weft__qemu_here *here = &weft__qemu_here;
	weft_hook_things_lock(&weft__qemu_things, coroutine);
	struct weft__qemu_thing *thing = weft_hook_things_find(&weft__qemu_things, coroutine);
	if (thing)
		weft_hook_things_drop(&weft__qemu_things, &thing->thing);
	thing = weft_hook_things_make(&weft__qemu_things, coroutine);
	if (thing && here->asking) {
		thing->running = here->asking;
		thing->is_request = true;
	} else if (thing) {
		weft_hook_things_begin(&thing->thing, WEFT_KIND_COROUTINE, (const char *)(const void *)entry + 1);
		const char *name = weft_hook_name((const void *)entry);
		if (name) {
			weft_hook_put(&thing->label, name);
			weft_hook_say(&thing->label, thing->id);
		}
		thing->running = thing->id;
	}
	here->asking = 0;
	weft_hook_things_unlock(&weft__qemu_things, coroutine);
}

void *weft__qemu_coroutine_create(weft__qemu_entry *entry, void *data)
{
	void *coroutine = weft__qemu_real.qemu_coroutine_create(entry, data);
	if (coroutine && weft__qemu_takes())
		is_created(coroutine, entry);
	return coroutine;
}

static void enter(const void *coroutine)
{
	struct weft__qemu_here *here = &weft__qemu_here;
	weft_hook_things_lock(&weft__qemu_things, coroutine);
	struct weft__qemu_thing *thing = weft_hook_things_find(&weft__qemu_things, coroutine);
	if (thing)
		thing->home = &weft__hook_thread;
	weft_hook_things_unlock(&weft__qemu_things, coroutine);
	if (here->depth < WEFT__QEMU_DEPTH) {
		here->entered[here->depth].coroutine = thing;
		here->entered[here->depth].outer = weft__hook_thread.running;
		if (thing)
			weft_hook_show(weft__hook_thread.running = thing->running);
	}
	here->depth++;
}

static void leave(bool for_ever)
{
	struct weft__qemu_here *here = &weft__qemu_here;
	if (here->depth == 0 || --here->depth >= WEFT__QEMU_DEPTH || !here->entered[here->depth].coroutine)
		return;
	struct weft__qemu_thing *thing = here->entered[here->depth].coroutine;
	thing->running = weft__hook_thread.running;
	if (for_ever) {
		const void *key = thing->key;
		weft_hook_things_lock(&weft__qemu_things, key);
		if (!thing->is_request)
			weft_resolve(WEFT_SYSTEM_ID, thing->id);
		weft_hook_things_drop(&weft__qemu_things, &thing->thing);
		weft_hook_things_unlock(&weft__qemu_things, key);
	}
	weft_hook_show(weft__hook_thread.running = here->entered[here->depth].outer);
}

/* All is told before: what comes after the switch may be on another OS thread. */
int weft__qemu_coroutine_switch(void *from, void *to, int action)
{
	if (weft_is_on() && weft__qemu_takes()) {
		if (action == ENTERS)
			enter(to);
		else if (action == YIELDS || action == ENDS)
			leave(action == ENDS);
	}
	return weft__qemu_real.qemu_coroutine_switch(from, to, action);
}
