/* adapter.c: the tables of the libevent adapter, and its loops.
 *
 * Debian has libevent as one library, and again in two: the core, and what is beside it (HTTP, DNS).  So there are two tables; a
 * library that has all is taken by both.  SPDX-License-Identifier: ISC */
#include "adapters/event/adapter.h"

#include <stdio.h>
#include <string.h>

#include "adapters/hook/sleep.h"

struct weft__ev_calls weft__ev_real;
__thread struct weft__ev_here weft__ev_here __attribute__((tls_model("initial-exec")));

static const struct weft_hook_module *core, *extra;

bool weft__ev_is_own(const void *caller)
{
	return (core && weft_hook_is_own(core, caller)) || (extra && weft_hook_is_own(extra, caller));
}

static void meet(void);

bool weft__ev_takes(void)
{
	if (!weft_hook_begin())
		return false;
	if (weft__ev_here.epoch != weft__hook_epoch)
		meet();
	return true;
}

struct weft__ev_call weft__ev_enter_call(const void *caller)
{
	struct weft__ev_call call = {weft__ev_here.caller};
	if (!call.before || !weft__ev_is_own(caller))
		weft__ev_here.caller = caller;
	return call;
}

void weft__ev_leave_call(struct weft__ev_call *call)
{
	weft__ev_here.caller = call->before;
}

/* ---- Loops ---- */

static void pop(struct weft__ev_here *here, unsigned depth)
{
	here->depth = depth;
	if (here->epoch != weft__hook_epoch) /* what it was interrupted in was another recording's */
		return;
	weft__hook_thread.callbacks = here->runs[depth].callbacks;
	weft__hook_thread.running = here->runs[depth].outer;
}

/* Who called a turn goes on. */
static void end_turn(const struct weft__ev_run *run)
{
	weft__ev_lock(run->base);
	struct weft__ev_thing *loop = weft__ev_find(run->base);
	if (loop && loop->id == run->turns && loop->kept == run->outer) {
		weft_awaits_no_more(run->outer, run->turns);
		loop->kept = 0;
	}
	weft__ev_unlock(run->base);
}

/* The frame at *stack ends; loops that a longjmp has left lie above it. */
static void loop_returns(const void **stack)
{
	struct weft__ev_here *here = &weft__ev_here;
	while (here->depth > 0 && (uintptr_t)here->runs[here->depth - 1].stack < (uintptr_t)*stack)
		pop(here, here->depth - 1);
	if (here->depth == 0 || here->runs[here->depth - 1].stack != *stack)
		return;
	const struct weft__ev_run run = here->runs[here->depth - 1];
	const bool is_on = weft_is_on() && here->epoch == weft__hook_epoch;
	if (is_on)
		weft__ev_end_all();
	pop(here, here->depth - 1);
	if (!is_on)
		return;
	if (run.id) {
		weft__ev_lock(run.base);
		struct weft__ev_thing *loop = weft__ev_find(run.base);
		if (loop && loop->id == run.id)
			weft__ev_end(loop, WEFT_SYSTEM_ID);
		weft__ev_unlock(run.base);
		weft_read(run.outer, run.id);
		weft__hook_thread.shown = run.outer;
	} else {
		weft_hook_show(run.outer);
		if (run.turns)
			end_turn(&run);
	}
}

/* A promise that awaits the events that were added so far; it is found by its base.  Turns of one loop have one promise, from the
 * first that waits long until the base is freed or run as a loop. */
static weft_id begin_loop(const struct weft__ev_run *run, bool is_older)
{
	weft__ev_lock(run->base);
	struct weft__ev_thing *loop = weft__ev_find(run->base);
	if (loop && loop->is_turned && run->is_loop) {
		weft__ev_end(loop, run->outer);
		loop = NULL;
	}
	const bool is_new = !loop && (loop = weft__ev_make(run->base));
	if (is_new) {
		if (is_older)
			weft_hook_things_begin_older(&loop->thing, WEFT_KIND_LOOP);
		else
			weft__ev_begin(loop, WEFT_KIND_LOOP, run->caller);
		loop->by = run->outer;
		loop->is_turned = !run->is_loop;
		weft_hook_put(&loop->label, run->is_loop ? "event_base_loop" : "event_base_loop, turn by turn");
		weft__ev_say(loop);
	}
	const weft_id id = is_new || (loop && loop->is_turned) ? loop->id : 0;
	if (id)
		weft_await(loop->kept = run->outer, id);
	weft__ev_unlock(run->base);
	if (is_new)
		weft__ev_keep(run->base, id);
	return id;
}

static void end_base(struct event_base *base)
{
	if (!weft_is_on())
		return;
	weft__ev_lock(base);
	struct weft__ev_thing *loop = weft__ev_find(base);
	if (loop && loop->is_turned)
		weft__ev_end(loop, weft__hook_thread.running);
	weft__ev_unlock(base);
}

void weft__event_base_free(struct event_base *base)
{
	end_base(base);
	weft__ev_real.event_base_free(base);
}

void weft__event_base_free_nofinalize(struct event_base *base)
{
	end_base(base);
	weft__ev_real.event_base_free_nofinalize(base);
}

/* The first call of this OS thread in this recording.  Loops may run since before that. */
static void meet(void)
{
	struct weft__ev_here *here = &weft__ev_here;
	struct weft_hook_thread *thread = weft_hook_thread();
	here->epoch = weft__hook_epoch;
	weft_hook_list(weft__ev_list, here);
	for (struct weft__ev_run *run = here->runs; run < here->runs + here->depth; run++) {
		run->is_older = weft_hook_may_be_older(&here->older, run->base);
		run->outer = thread->running;
		run->callbacks = 0;
		run->id = run->is_loop ? begin_loop(run, true) : 0;
		run->turns = 0;
		thread->running = run->id ? run->id : run->outer;
	}
}

int weft__event_base_loop(struct event_base *base, int flags)
{
	enum { ONCE_OR_NONBLOCK = 3 };
	struct weft__ev_here *here = &weft__ev_here;
	const void *caller = here->caller ? here->caller : __builtin_return_address(0);
	const bool is_on = weft__ev_takes();
	if ((!is_on && !weft__hook_stands_by) || here->depth == WEFT__EV_DEPTH)
		return weft__ev_real.event_base_loop(base, flags);
	/* What libevent makes while it runs is made by callbacks, not by this call. */
	const void *before = here->caller;
	here->caller = NULL;
	__attribute__((cleanup(loop_returns))) const void *stack = __builtin_frame_address(0);
	struct weft_hook_thread *thread = is_on ? weft_hook_thread() : &weft__hook_thread;
	struct weft__ev_run *run = &here->runs[here->depth];
	*run = (struct weft__ev_run){base, stack, 0, thread->running, 0, thread->callbacks, !(flags & ONCE_OR_NONBLOCK),
	    is_on && weft_hook_may_be_older(&here->older, base), caller};
	if (is_on && run->is_loop && (run->id = begin_loop(run, false)))
		thread->running = run->id;
	here->depth++;
	int status = weft__ev_real.event_base_loop(base, flags);
	here->caller = before;
	return status;
}

/* Under the base's lock, if it has one. */
static int see_older(const struct event_base *base, const struct event *event, void *data)
{
	weft__ev_begin_older(event);
	return 0;
}

/* On the OS thread that runs the loop. */
static void tell_older(struct weft__ev_run *run)
{
	run->is_older = false;
	weft_hook_older_told(&weft__ev_here.older, run->base);
	if (!weft__ev_real.event_base_foreach_event) /* libevent 2.0 */
		return;
	weft__ev_real.event_base_foreach_event(run->base, see_older, NULL);
	if (run->id)
		weft__ev_keep(run->base, run->id);
}

/* A loop that is called turn by turn, and has nothing to do. */
static void still(const struct weft_hook_sleep *sleep)
{
	struct weft__ev_run *run = &weft__ev_here.runs[weft__ev_here.depth - 1];
	run->turns = begin_loop(run, false);
}

static bool sleeps(struct weft_hook_sleep *sleep)
{
	enum { STILL_MS = 100 }; /* a busy loop never gets there */
	struct weft__ev_here *here = &weft__ev_here;
	if (here->depth > 0 && here->epoch != weft__hook_epoch && sleep->kind == WEFT_HOOK_SLEEP_FDS)
		meet();
	bool is_wait = sleep->kind == WEFT_HOOK_SLEEP_FDS && here->epoch == weft__hook_epoch && here->depth > 0 &&
		       weft__ev_is_own(sleep->caller);
	if (is_wait) {
		const struct weft__ev_run *run = &here->runs[here->depth - 1];
		if (!run->is_loop && !run->turns) {
			sleep->first_ms = STILL_MS;
			sleep->still = still;
		}
		weft__hook_thread.callbacks = run->callbacks;
		weft__hook_thread.running = run->id ? run->id : run->outer;
		if (run->is_older)
			tell_older(&here->runs[here->depth - 1]);
		weft__ev_end_all();
	}
	return is_wait;
}

/* ---- The adapter ---- */

#define ROW(result, name, parameters) {#name, (void *)weft__##name, (void **)(void *)&weft__ev_real.name},
#define CALLED(result, name, parameters) {#name, NULL, (void **)(void *)&weft__ev_real.name},
static const struct weft_hook_function core_functions[] = {WEFT__EV_CORE(ROW) WEFT__EV_CORE_CALLED(CALLED){0}};
static const struct weft_hook_function extra_functions[] = {WEFT__EV_EXTRA(ROW) WEFT__EV_EXTRA_CALLED(CALLED){0}};
static const struct weft_hook_function *const core_sets[] = {core_functions}, *const extra_sets[] = {extra_functions};
static const struct weft_hook_module **const core_modules[] = {&core}, **const extra_modules[] = {&extra};

static bool is_library(const struct weft_hook_module *module, char *version, size_t size)
{
	const char *slash = strrchr(module->path, '/'), *file = slash ? slash + 1 : module->path;
	const char *dash = !strncmp(file, "libevent", 8) ? strchr(file, '-') : NULL;
	/* Inside a program nothing tells which of its code is libevent's. */
	snprintf(version, size, "%.*s", dash ? (int)strcspn(dash + 1, ".") + 2 : 11, dash ? dash + 1 : "(linked in)");
	return dash && (!strcmp(version, "2.0") || !strcmp(version, "2.1"));
}

const struct weft_hook_adapter weft_event_adapter = {
    .name = "libevent",
    .library = "libevent",
    .prefix = "event_",
    .mark = "event_base_loop",
    .sets = 1,
    .functions = core_sets,
    .modules = core_modules,
    .accepts = is_library,
    .forget = weft__ev_forget,
    .fork = weft__ev_fork,
    .sleeps = sleeps,
};

const struct weft_hook_adapter weft_event_extra_adapter = {
    .name = "libevent's HTTP and DNS",
    .library = "libevent",
    .prefix = "evhttp_",
    .mark = "evhttp_make_request",
    .sets = 1,
    .functions = extra_sets,
    .modules = extra_modules,
    .accepts = is_library,
};
