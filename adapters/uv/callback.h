/* callback.h: keeps the running promise of a thread (private to adapters/uv).  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_UV_CALLBACK_H
#define WEFT_ADAPTERS_UV_CALLBACK_H

#include "adapters/hook/session.h"
#include "adapters/uv/common.h"

void weft__uv_attach_thread(void); /* attaches this thread at its first call in this recording, or since a fork */

/* Returns whether the call comes from the program and must be recorded. */
static inline bool weft__uv_should_record(const struct weft__uv_copy *copy, const void *caller)
{
	if (__builtin_expect(
		!weft_hook_begin() || weft__uv_get_here()->nested_calls > 0 || weft_hook_is_own(copy->module, caller), 0))
		return false;
	if (__builtin_expect(weft__uv_get_here()->epoch != weft__hook_epoch, 0))
		weft__uv_attach_thread();
	return true;
}

/* State of the thread before a callback, which weft__uv_leave_callback() restores; a longjmp() skips that, but an exception does
 * not. */
struct weft__uv_frame {
	weft_id running;
	weft__uv_tag actor;
	struct weft_record_site *line;
	weft__uv_tag datagram; /* datagram whose handler is the callback; 0: none */
	weft_id own;           /* promise of the handle to which the callback belongs; 0: none */
	weft__uv_tag handle;   /* that handle */
	int nested_calls;
	const void *stack; /* stack address of the callback that contains this callback (adapters/hook/thread.h) */
};

#define WEFT__UV_FRAME __attribute__((cleanup(weft__uv_leave_callback))) struct weft__uv_frame

/* The function is always inlined, because it notes the frame of its caller. */
__attribute__((always_inline)) static inline struct weft__uv_frame weft__uv_enter_callback(weft_id id, weft__uv_tag actor)
{
	struct weft__uv_here *here = weft__uv_get_here();
	struct weft__uv_frame frame = {.running = weft__hook_get_thread()->running,
	    .actor = here->actor,
	    .line = here->line,
	    .nested_calls = here->nested_calls,
	    .stack = weft__hook_get_thread()->callback_stack};
	weft__hook_get_thread()->running = id;
	here->actor = actor;
	here->line = NULL;
	here->nested_calls = 0;
	weft__hook_get_thread()->callbacks++;
	/* This is not the address of this function's own frame, because functions that enter may have returned when the callback
	 * runs. */
	weft__hook_get_thread()->callback_stack = __builtin_dwarf_cfa();
	weft__hook_get_thread()->entered++;
	return frame;
}

void weft__uv_leave_callback(struct weft__uv_frame *frame);

/* Returns the line of the program for which a handle or request is made: the line that runs, or that of the callback's owner.
 * may_be_fast: whether it is a timer or an idle handle, which Node.js starts in fast calls of optimized code, too. */
static inline struct weft_record_site *weft__uv_find_line(bool may_be_fast)
{
	struct weft_record_site *line = weft_hook_find_line(may_be_fast);
	return line ? line : weft__uv_get_here()->line;
}

/* Enters the callback of a handle, which has an external cause.  If the handle is unknown, the running promise stays. */
struct weft__uv_frame weft__uv_enter_signalled_handle(const void *handle);

/* Enters the callback of a handle's object, which may be NULL. `repeats` says that the callback has no external cause or does
 * not use its input (adapters/hook/thread.h). */
struct weft__uv_frame weft__uv_enter_handle_callback(struct weft__uv_object *object, bool repeats);

/* Returns whether the promise of a loop is pending. */
bool weft__uv_is_loop_pending(const struct weft__uv_here *here, weft_id loop);

#endif
