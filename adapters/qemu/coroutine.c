/* coroutine.c: records QEMU's coroutines from their creation to their end.  SPDX-License-Identifier: ISC */
#include "adapters/hook/address_cache.h"
#include "adapters/qemu/common.h"

/* QEMU's numbers of actions. */
enum { ACTION_YIELD = 1, ACTION_TERMINATE = 2, ACTION_ENTER = 3 };

/* If the table has an object at the coroutine's address, it belongs to a coroutine that has ended. */
static void begin_coroutine(const void *coroutine, weft__qemu_entry *entry)
{
	struct weft__qemu_here *here = weft__qemu_get_here();
	weft_hook_object_table_lock(&weft__qemu_objects, coroutine);
	struct weft__qemu_object *object = weft_hook_object_find(&weft__qemu_objects, coroutine);
	if (object)
		weft_hook_object_remove(&weft__qemu_objects, &object->object);
	object = weft_hook_object_create(&weft__qemu_objects, coroutine);
	if (object && here->pending_request) {
		object->running = here->pending_request;
		object->is_request = true;
	} else if (object) {
		weft_hook_object_begin(&object->object, WEFT_KIND_COROUTINE, (const char *)(const void *)entry + 1);
		const char *name = weft_hook_name((const void *)entry);
		if (name) {
			weft_hook_append(&object->label, name);
			weft_hook_record_label(&object->label, object->id);
		}
		object->running = object->id;
	}
	here->pending_request = 0;
	weft_hook_object_table_unlock(&weft__qemu_objects, coroutine);
}

void *weft__qemu_coroutine_create(weft__qemu_entry *entry, void *data)
{
	void *coroutine = weft__qemu_real.qemu_coroutine_create(entry, data);
	if (coroutine && weft__qemu_should_record())
		begin_coroutine(coroutine, entry);
	return coroutine;
}

static void enter_coroutine(const void *coroutine)
{
	struct weft__qemu_here *here = weft__qemu_get_here();
	weft_hook_object_table_lock(&weft__qemu_objects, coroutine);
	struct weft__qemu_object *object = weft_hook_object_find(&weft__qemu_objects, coroutine);
	if (object)
		object->owner_thread = weft__hook_get_thread();
	weft_hook_object_table_unlock(&weft__qemu_objects, coroutine);
	if (here->depth < WEFT__QEMU_MAX_ENTERED) {
		here->entered[here->depth].coroutine = object;
		here->entered[here->depth].outer = weft__hook_get_thread()->running;
		if (object)
			weft_hook_record_running(weft__hook_get_thread()->running = object->running);
	}
	here->depth++;
}

static void leave_coroutine(bool has_ended)
{
	struct weft__qemu_here *here = weft__qemu_get_here();
	if (here->depth == 0 || --here->depth >= WEFT__QEMU_MAX_ENTERED || !here->entered[here->depth].coroutine)
		return;
	struct weft__qemu_object *object = here->entered[here->depth].coroutine;
	object->running = weft__hook_get_thread()->running;
	if (has_ended) {
		const void *key = object->key;
		weft_hook_object_table_lock(&weft__qemu_objects, key);
		if (!object->is_request)
			weft_resolve(WEFT_SYSTEM_ID, object->id);
		weft_hook_object_remove(&weft__qemu_objects, &object->object);
		weft_hook_object_table_unlock(&weft__qemu_objects, key);
	}
	weft_hook_record_running(weft__hook_get_thread()->running = here->entered[here->depth].outer);
}

/* Everything is recorded before the switch of coroutines, because the switch may return on another thread. */
int weft__qemu_coroutine_switch(void *from, void *to, int action)
{
	if (weft_is_on() && weft__qemu_should_record()) {
		if (action == ACTION_ENTER)
			enter_coroutine(to);
		else if (action == ACTION_YIELD || action == ACTION_TERMINATE)
			leave_coroutine(action == ACTION_TERMINATE);
	}
	return weft__qemu_real.qemu_coroutine_switch(from, to, action);
}
