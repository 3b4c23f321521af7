/* adapter.c: tables of the functions that the libevent adapter wraps, and the waits of libevent's loops.
 *
 * Debian ships libevent as one complete library, and also as two libraries: the core and the rest (HTTP, DNS).  So the adapter
 * has two tables of functions, and both match the complete library.  SPDX-License-Identifier: ISC */
#include "adapters/event/common.h"

#include <stdio.h>
#include <string.h>

#include "adapters/base/thread_sleep.h"

/* Callback of event_base_foreach_event(), which holds the base's lock, if the base has a lock. */
static int begin_older_event(const struct event_base *base, const struct event *event, void *data)
{
	weft__ev_begin_older(event);
	return 0;
}

/* Records older events.  Runs on the thread that runs the loop; older events are those that the program added before the
 * recording. */
static void record_older(struct weft__ev_run *run)
{
	run->is_older = false;
	weft_hook_mark_loop_listed(&weft__ev_get_here()->older, run->base);
	if (!weft__ev_real.event_base_foreach_event) /* libevent 2.0 */
		return;
	weft__ev_real.event_base_foreach_event(run->base, begin_older_event, NULL);
	if (run->id)
		weft__ev_await_events(run->base, run->id);
}

/* Records the promise of a stepped loop when an iteration that the program asked for waits long. */
static void await_turn(const struct weft_hook_sleep *sleep)
{
	struct weft__ev_run *run = &weft__ev_get_here()->runs[weft__ev_get_here()->depth - 1];
	run->turns = weft__ev_begin_loop_promise(run, false);
}

static bool is_loop_wait(struct weft_hook_sleep *sleep)
{
	enum { STILL_MS = 100 }; /* longest wait of a busy loop */
	struct weft__ev_here *here = weft__ev_get_here();
	if (here->depth > 0 && here->epoch != weft__hook_epoch && sleep->kind == WEFT_HOOK_SLEEP_FDS)
		weft__ev_attach_thread();
	bool is_wait = sleep->kind == WEFT_HOOK_SLEEP_FDS && here->epoch == weft__hook_epoch && here->depth > 0 &&
		       weft__ev_is_own(sleep->caller);
	if (is_wait) {
		const struct weft__ev_run *run = &here->runs[here->depth - 1];
		if (!run->is_loop && !run->turns) {
			sleep->first_ms = STILL_MS;
			sleep->on_long_wait = await_turn;
		}
		weft__hook_get_thread()->callbacks = run->callbacks;
		weft__hook_get_thread()->running = run->id ? run->id : run->outer;
		if (run->is_older)
			record_older(&here->runs[here->depth - 1]);
		weft__ev_end_delayed();
	}
	return is_wait;
}

/* ---- The adapter ---- */

#define TAKEN(result, name, parameters) WEFT_HOOK_TAKEN(name, weft__##name, weft__ev_real.name),
#define CALLED(result, name, parameters) WEFT_HOOK_CALLED(name, weft__ev_real.name),
static const struct weft_hook_function core_functions[] = {WEFT__EV_CORE(TAKEN) WEFT__EV_CORE_CALLED(CALLED){0}};
static const struct weft_hook_function extra_functions[] = {WEFT__EV_EXTRA(TAKEN) WEFT__EV_EXTRA_CALLED(CALLED){0}};

static bool is_supported_library(const struct weft_hook_module *module, char *version, size_t size)
{
	const char *slash = strrchr(module->path, '/'), *file = slash ? slash + 1 : module->path;
	const char *dash = !strncmp(file, "libevent", 8) ? strchr(file, '-') : NULL;
	/* If libevent is linked into another module, its code cannot be distinguished from that module's code. */
	snprintf(version, size, "%.*s", dash ? (int)strcspn(dash + 1, ".") + 2 : 11, dash ? dash + 1 : "(linked in)");
	return dash && (!strcmp(version, "2.0") || !strcmp(version, "2.1"));
}

const struct weft_hook_adapter weft_event_adapter = {
    .name = "libevent",
    .library = "libevent",
    .prefix = "event_",
    .mark = "event_base_loop",
    WEFT_HOOK_SETS((core_functions), (&weft__ev_core)),
    .accepts = is_supported_library,
    .forget = weft__ev_clear,
    .fork = weft__ev_fork,
    .sleeps = is_loop_wait,
};

const struct weft_hook_adapter weft_event_extra_adapter = {
    .name = "libevent's HTTP and DNS",
    .library = "libevent",
    .prefix = "evhttp_",
    .mark = "evhttp_make_request",
    WEFT_HOOK_SETS((extra_functions), (&weft__ev_extra)),
    .accepts = is_supported_library,
};
