/* state.c: shared variables of the libevent adapter.  SPDX-License-Identifier: ISC */
#include "adapters/event/common.h"

struct weft__ev_calls weft__ev_real;
struct weft__ev_here weft__ev_heres WEFT_HOOK_PER_THREAD;

const struct weft_hook_module *weft__ev_core, *weft__ev_extra;

bool weft__ev_is_own(const void *caller)
{
	return (weft__ev_core && weft_hook_is_own(weft__ev_core, caller)) ||
	       (weft__ev_extra && weft_hook_is_own(weft__ev_extra, caller));
}

struct weft__ev_call weft__ev_enter_call(const void *caller)
{
	struct weft__ev_call call = {weft__ev_get_here()->caller};
	if (!call.before || !weft__ev_is_own(caller))
		weft__ev_get_here()->caller = caller;
	return call;
}

void weft__ev_leave_call(struct weft__ev_call *call)
{
	weft__ev_get_here()->caller = call->before;
}
