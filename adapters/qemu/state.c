/* state.c: shared variables of the QEMU adapter.  SPDX-License-Identifier: ISC */
#include "adapters/qemu/common.h"

struct weft__qemu_calls weft__qemu_real;
struct weft_hook_object_table weft__qemu_objects = WEFT_HOOK_OBJECT_TABLE(struct weft__qemu_object);
struct weft__qemu_here weft__qemu_heres WEFT_HOOK_PER_THREAD;

const struct weft_hook_module *weft__qemu_program;

bool weft__qemu_is_own(const void *address)
{
	return weft__qemu_program && weft_hook_is_own(weft__qemu_program, address);
}

static uint64_t list_objects(void *data, uint64_t cursor, unsigned budget)
{
	return weft_hook_object_table_list(&weft__qemu_objects, cursor, budget);
}

bool weft__qemu_should_record(void)
{
	if (!weft_hook_begin())
		return false;
	if (weft__qemu_get_here()->epoch != weft__hook_epoch) {
		*weft__qemu_get_here() = (struct weft__qemu_here){.epoch = weft__hook_epoch};
		weft_hook_register_list(list_objects, weft__qemu_get_here());
	}
	weft_hook_thread();
	return true;
}
