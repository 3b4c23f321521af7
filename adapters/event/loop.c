/* loop.c: records libevent's loops.  SPDX-License-Identifier: ISC */
#include "adapters/event/common.h"

bool weft__ev_should_record(void)
{
	if (!weft_hook_begin())
		return false;
	if (weft__ev_get_here()->epoch != weft__hook_epoch)
		weft__ev_attach_thread();
	return true;
}

static void pop_run(struct weft__ev_here *here, unsigned depth)
{
	here->depth = depth;
	if (here->epoch != weft__hook_epoch) /* the thread's state belongs to an earlier recording */
		return;
	weft__hook_get_thread()->callbacks = here->runs[depth].callbacks;
	weft__hook_get_thread()->running = here->runs[depth].outer;
}

/* Ends the calling promise's wait for the iteration. */
static void end_loop_turn(const struct weft__ev_run *run)
{
	weft__ev_lock(run->base);
	struct weft__ev_object *loop = weft__ev_find(run->base);
	if (loop && loop->id == run->turns && loop->awaited_by == run->outer) {
		weft_awaits_no_more(run->outer, run->turns);
		loop->awaited_by = 0;
	}
	weft__ev_unlock(run->base);
}

/* Ends the loop whose frame is at *stack, and the inner loops whose frames a longjmp() has skipped. */
static void handle_loop_return(const void **stack)
{
	struct weft__ev_here *here = weft__ev_get_here();
	while (here->depth > 0 && (uintptr_t)here->runs[here->depth - 1].stack < (uintptr_t)*stack)
		pop_run(here, here->depth - 1);
	if (here->depth == 0 || here->runs[here->depth - 1].stack != *stack)
		return;
	const struct weft__ev_run run = here->runs[here->depth - 1];
	const bool is_on = weft_is_on() && here->epoch == weft__hook_epoch;
	if (is_on)
		weft__ev_end_delayed();
	pop_run(here, here->depth - 1);
	if (!is_on)
		return;
	if (run.id) {
		weft__ev_lock(run.base);
		struct weft__ev_object *loop = weft__ev_find(run.base);
		if (loop && loop->id == run.id)
			weft__ev_end(loop, WEFT_SYSTEM_ID);
		weft__ev_unlock(run.base);
		weft_read(run.outer, run.id);
		weft__hook_get_thread()->recorded_running = run.outer;
	} else {
		weft_hook_record_running(run.outer);
		if (run.turns)
			end_loop_turn(&run);
	}
}

weft_id weft__ev_begin_loop_promise(const struct weft__ev_run *run, bool is_older)
{
	weft__ev_lock(run->base);
	struct weft__ev_object *loop = weft__ev_find(run->base);
	if (loop && loop->is_run_by_turns && run->is_loop) {
		weft__ev_end(loop, run->outer);
		loop = NULL;
	}
	const bool is_new = !loop && (loop = weft__ev_create(run->base));
	if (is_new) {
		if (is_older)
			weft_hook_object_begin_older(&loop->object, WEFT_KIND_LOOP);
		else
			weft__ev_begin(loop, WEFT_KIND_LOOP, run->caller);
		loop->by = run->outer;
		loop->is_run_by_turns = !run->is_loop;
		weft_hook_append(&loop->label, run->is_loop ? "event_base_loop" : "event_base_loop, single iterations");
		weft__ev_record_label(loop);
	}
	const weft_id id = is_new || (loop && loop->is_run_by_turns) ? loop->id : 0;
	if (id)
		weft_await(loop->awaited_by = run->outer, id);
	weft__ev_unlock(run->base);
	if (is_new)
		weft__ev_await_events(run->base, id);
	return id;
}

static void end_turn_loop(struct event_base *base)
{
	if (!weft_is_on())
		return;
	weft__ev_lock(base);
	struct weft__ev_object *loop = weft__ev_find(base);
	if (loop && loop->is_run_by_turns)
		weft__ev_end(loop, weft__hook_get_thread()->running);
	weft__ev_unlock(base);
}

void weft__event_base_free(struct event_base *base)
{
	end_turn_loop(base);
	weft__ev_real.event_base_free(base);
}

void weft__event_base_free_nofinalize(struct event_base *base)
{
	end_turn_loop(base);
	weft__ev_real.event_base_free_nofinalize(base);
}

void weft__ev_attach_thread(void)
{
	struct weft__ev_here *here = weft__ev_get_here();
	struct weft_hook_thread *thread = weft_hook_thread();
	here->epoch = weft__hook_epoch;
	weft_hook_register_list(weft__ev_list, here);
	for (struct weft__ev_run *run = here->runs; run < here->runs + here->depth; run++) {
		run->is_older = weft_hook_is_loop_unlisted(&here->older, run->base);
		run->outer = thread->running;
		run->callbacks = 0;
		run->id = run->is_loop ? weft__ev_begin_loop_promise(run, true) : 0;
		run->turns = 0;
		thread->running = run->id ? run->id : run->outer;
	}
}

int weft__event_base_loop(struct event_base *base, int flags)
{
	enum { ONCE_OR_NONBLOCK = 3 };
	struct weft__ev_here *here = weft__ev_get_here();
	const void *caller = here->caller ? here->caller : __builtin_return_address(0);
	const bool is_on = weft__ev_should_record();
	if ((!is_on && !weft__hook_is_standby) || here->depth == WEFT__EV_MAX_RUNS)
		return weft__ev_real.event_base_loop(base, flags);
	/* Callbacks, and not this call, create the objects that libevent makes while the loop runs. */
	const void *before = here->caller;
	here->caller = NULL;
	__attribute__((cleanup(handle_loop_return))) const void *stack = __builtin_frame_address(0);
	struct weft_hook_thread *thread = is_on ? weft_hook_thread() : weft__hook_get_thread();
	struct weft__ev_run *run = &here->runs[here->depth];
	*run = (struct weft__ev_run){base, stack, 0, thread->running, 0, thread->callbacks, !(flags & ONCE_OR_NONBLOCK),
	    is_on && weft_hook_is_loop_unlisted(&here->older, base), caller};
	if (is_on && run->is_loop && (run->id = weft__ev_begin_loop_promise(run, false)))
		thread->running = run->id;
	here->depth++;
	int status = weft__ev_real.event_base_loop(base, flags);
	here->caller = before;
	return status;
}
