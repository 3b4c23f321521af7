/* callers.c: see callers.h.  SPDX-License-Identifier: ISC */
#include "adapters/hook/callers.h"

#include "adapters/hook/state.h"

struct weft__module weft__hook_recorder_module, weft__hook_own_module, weft__hook_libc_module;
bool weft__hook_is_instrumented;
__thread const void *weft__hook_outer_caller;

bool weft__hook_is_recorder(const void *return_address)
{
	uintptr_t at = (uintptr_t)return_address;
	return at - weft__hook_recorder_module.text_begin <
		   weft__hook_recorder_module.text_end - weft__hook_recorder_module.text_begin ||
	       at - weft__hook_own_module.text_begin < weft__hook_own_module.text_end - weft__hook_own_module.text_begin;
}

bool weft__hook_is_runtime(const void *return_address)
{
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; *a; a++)
		for (unsigned set = 0; set < (*a)->sets; set++)
			if (*(*a)->modules[set] && weft_hook_is_own(*(*a)->modules[set], return_address))
				return true;
	return false;
}
