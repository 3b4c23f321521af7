/* run.c: who runs on this OS thread, when it sleeps, and what keeps a loop from ending.
 *
 * Callbacks nest (a program may run a loop in a callback), and may be left by longjmp() or an exception.  An exception unwinds
 * our frames.  After a longjmp they are believed no longer than to the next turn of a loop: what runs is then what that loop
 * says.
 *
 * A uv_run() that is to run until nothing is left has a promise, which its caller awaits and which awaits what keeps it.  Some
 * programs call each turn by themselves (UV_RUN_ONCE).  Such a loop has a promise from its first long wait on, until it is
 * closed; whoever calls a turn awaits it while that turn waits long.  SPDX-License-Identifier: ISC */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "adapters/hook/sleep.h"
#include "adapters/uv/adapter.h"

/* How long nothing has to come before it is told what a loop waits for.  A busy loop never gets there. */
enum { STILL_MS = 100 };

__thread struct weft__uv_here weft__uv_here __attribute__((tls_model("initial-exec")));

/* ---- What is pending ---- */

/* Whether the promise of a loop is. */
static bool is_pending(const struct weft__uv_here *here, weft_id loop)
{
	bool found = false;
	for (unsigned i = 0; i < here->depth; i++)
		found |= here->runs[i].id == loop;
	for (unsigned i = 0; i < WEFT__UV_TURNED; i++)
		found |= here->turned[i].id == loop;
	return found;
}

static void tell(struct weft__uv_here *here, struct weft__uv_thing *thing)
{
	weft_pending_at(thing->by, thing->id, (enum weft_kind)thing->kind, thing->site, thing->since, thing->label.text);
	if (thing->is_overdue)
		weft_should_resolve(thing->id);
	if (thing->is_used_again)
		WEFT_NOTE(thing->id, "started again");
	struct weft__uv_thing *owner = weft__uv_find(thing->owner);
	if (thing->is_request && owner && owner->id)
		weft_still_awaits(owner->id, thing->id);
	weft_hook_still_connected(thing->fd, thing->id);
	if (thing->input) {
		weft_pending_at(thing->id, thing->input, WEFT_KIND_STREAM_READ, thing->read_site, thing->input_since, NULL);
		weft_still_awaits(thing->id, thing->input);
	}
	if (thing->kept && is_pending(here, thing->kept))
		weft_still_awaits(thing->kept, thing->id);
}

/* For weft_hook_list(): the loops first, then the things of this OS thread from place `cursor` on. */
static uint64_t list(void *data, uint64_t cursor, unsigned budget)
{
	struct weft__uv_here *here = data;
	if (here->epoch != weft__hook_epoch)
		return 0;
	for (unsigned i = 0; cursor == 0 && i < here->depth; i++) {
		struct weft__uv_run *run = &here->runs[i];
		if (run->id) {
			weft_pending_at(run->outer, run->id, WEFT_KIND_LOOP, run->site, run->since, "uv_run");
			weft_still_awaits(run->outer, run->id);
		}
	}
	for (unsigned i = 0; cursor == 0 && i < WEFT__UV_TURNED; i++) {
		const struct weft__uv_turned *turned = &here->turned[i];
		if (turned->id)
			weft_pending_at(
			    turned->by, turned->id, WEFT_KIND_LOOP, turned->site, turned->since, "uv_run, turn by turn");
	}
	for (unsigned i = 0; cursor == 0 && i < here->depth; i++)
		if (here->runs[i].turns)
			weft_still_awaits(here->runs[i].outer, here->runs[i].turns);
	uint32_t at = (uint32_t)cursor;
	struct weft__uv_thing *thing;
	for (unsigned looked = 0; looked < 8 * budget && (thing = weft__uv_next(&at)); looked++)
		if (thing->home == here && thing->id) {
			tell(here, thing);
			if (--budget == 0)
				return at;
		}
	return weft__uv_next(&(uint32_t){at}) ? at : 0;
}

/* A loop that was run before recording began. */
static void adopt(struct weft__uv_run *run)
{
	struct weft_hook_thread *thread = weft_hook_thread();
	run->outer = thread->running;
	run->outer_actor = 0;
	run->id = run->turns = 0;
	run->since = weft__hook_since;
	run->blocks_since_ns = 0;
	run->callbacks = 0;
	run->is_dirty = true;
	run->is_older = weft_hook_may_be_older(&weft__uv_here.older, run->loop);
	if (run->mode != UV_RUN_DEFAULT)
		return;
	run->id = weft_pending_at(run->outer, 0, WEFT_KIND_LOOP, run->site, run->since, "uv_run");
	weft_still_awaits(run->outer, run->id);
	thread->running = run->id;
}

void weft__uv_meet(void)
{
	struct weft__uv_here *here = &weft__uv_here;
	here->epoch = weft__hook_epoch;
	here->actor = 0;
	here->inside = 0;
	memset(here->busy, 0, sizeof here->busy);
	memset(here->turned, 0, sizeof here->turned);
	here->next_busy = here->next_turned = 0;
	here->free_first = here->free_count = 0;
	for (unsigned i = 0; i < here->depth; i++)
		adopt(&here->runs[i]);
	weft_hook_list(list, here);
}

/* ---- Callbacks ---- */

/* A handle that its own callback started for something else: the promise that it was goes on to the callback's end. */
static void end_replaced(weft__uv_tag handle, weft_id id)
{
	const struct weft__uv_thing *thing = weft__uv_find(handle);
	if (thing && thing->id && thing->id != id && weft_is_on())
		weft_resolve(id, id);
}

/* Between the callbacks of a loop nothing is said: the next callback will, or the sleep. */
void weft__uv_leave(struct weft__uv_frame *frame)
{
	struct weft__uv_here *here = &weft__uv_here;
	if (__builtin_expect(frame->own != 0, 0))
		end_replaced(frame->handle, frame->own);
	weft__hook_thread.called = NULL;
	weft__hook_thread.running = frame->running;
	here->actor = frame->actor;
	here->inside = frame->inside;
	if (weft__hook_thread.callbacks > 0)
		weft__hook_thread.callbacks--;
	if (weft__hook_thread.callbacks > (here->depth > 0 ? here->runs[here->depth - 1].callbacks : 0) && weft_is_on())
		weft_hook_show(frame->running);
	if (frame->datagram)
		weft__uv_datagram_release(frame->datagram);
}

struct weft__uv_frame weft__uv_enter_called(struct weft__uv_thing *thing, bool repeats)
{
	if (!thing || !thing->id)
		return weft__uv_enter(weft__hook_thread.running, weft__uv_here.actor);
	thing->home = &weft__uv_here;
	if (!repeats || weft_hook_called(&thing->calls, thing->id, true))
		weft_hook_signal(thing->id);
	struct weft__uv_frame frame = weft__uv_enter(thing->id, weft__uv_tag_of(thing));
	frame.own = thing->id;
	frame.handle = weft__uv_here.actor;
	return frame;
}

struct weft__uv_frame weft__uv_enter_signalled(const void *handle)
{
	return weft__uv_enter_called(weft_is_on() ? weft__uv_find_handle(handle) : NULL, false);
}

/* ---- Loops ---- */

int weft__uv_loop_init(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop)
{
	/* Another loop may have been there. */
	struct weft__uv_here *here = &weft__uv_here;
	for (unsigned i = 0; i < WEFT__UV_BUSY; i++)
		if (here->busy[i].loop == loop)
			here->busy[i].loop = NULL;
	for (unsigned i = 0; i < WEFT__UV_TURNED; i++)
		if (here->turned[i].loop == loop)
			here->turned[i].loop = NULL;
	return WEFT__UV_INSIDE(copy->real.uv_loop_init(loop));
}

uv_loop_t *weft__uv_default_loop(struct weft__uv_copy *copy, const void *caller)
{
	return WEFT__UV_INSIDE(copy->real.uv_default_loop());
}

void weft__uv_ref(struct weft__uv_copy *copy, const void *caller, uv_handle_t *handle)
{
	copy->real.uv_ref(handle);
	weft__uv_dirty();
}

void weft__uv_unref(struct weft__uv_copy *copy, const void *caller, uv_handle_t *handle)
{
	copy->real.uv_unref(handle);
	weft__uv_dirty();
}

static bool keeps_loop(const struct weft__uv_calls *real, const uv_handle_t *handle)
{
	return real->uv_is_active(handle) && real->uv_has_ref(handle) && !real->uv_is_closing(handle);
}

/* Handles of a loop, in the order in which they were made, by libuv's public structs; not uv_walk(), which writes to all of them:
 * a program may have freed one without closing it, and libuv itself does not notice until then.  Behind memory that is no handle
 * of the loop any more the rest is not found. */
static void each_handle(uv_loop_t *loop, void (*see)(uv_handle_t *handle, void *data), void *data)
{
	enum {
		UNKNOWN = 1024, /* handles that the adapter may not know of */
		INTERNAL = 0x10 /* since libuv 1.19: it is libuv's own, as those inside of the loop are */
	};
	uint32_t left = __atomic_load_n(&weft__uv_places, __ATOMIC_ACQUIRE) + UNKNOWN;
	void *const *head = (void *const *)&loop->handle_queue, *const *at = head;
	while ((at = *at) != head && left-- > 0) {
		uv_handle_t *handle = (uv_handle_t *)((char *)(uintptr_t)at - offsetof(uv_handle_t, handle_queue));
		if (!weft_hook_is_readable(handle, sizeof *handle) || handle->loop != loop)
			return;
		if ((uintptr_t)handle - (uintptr_t)loop >= sizeof *loop && !(handle->flags & INTERNAL))
			see(handle, data);
	}
}

/* The promise that awaits what keeps it. */
static weft_id loop_of(const struct weft__uv_run *run)
{
	return run->id ? run->id : run->turns;
}

static void tell_handle(uv_handle_t *handle, void *data)
{
	struct weft__uv_run *run = data;
	const struct weft__uv_calls *real = &run->copy->real;
	struct weft__uv_thing *thing = weft__uv_find_handle(handle);
	bool keeps = keeps_loop(real, handle);
	if (!thing && keeps)
		thing = weft__uv_thing_of_handle(run->copy, handle);
	if (!thing)
		return;
	if (keeps && !thing->id)
		weft__uv_begin_unseen(thing, handle);
	weft_id kept = keeps ? loop_of(run) : 0;
	if (thing->id && kept != thing->kept) {
		if (thing->kept && is_pending(&weft__uv_here, thing->kept))
			weft_awaits_no_more(thing->kept, thing->id);
		if (kept)
			weft_await(kept, thing->id);
		thing->kept = kept;
	}
}

/* What the loop waits for.  A request that is in flight while nothing happens had better end: libuv promises its callback. */
static void tell_what_keeps(struct weft__uv_run *run)
{
	run->is_dirty = false;
	each_handle(run->loop, tell_handle, run);
	uint32_t at = 0;
	for (struct weft__uv_thing *thing; (thing = weft__uv_next(&at));)
		if (thing->is_request && thing->loop == run->loop && thing->id) {
			if (thing->kept != loop_of(run))
				weft_await(thing->kept = loop_of(run), thing->id);
			if (!thing->is_overdue)
				weft_should_resolve(thing->id);
			thing->is_overdue = true;
		}
}

static void pop(struct weft__uv_here *here, unsigned depth)
{
	here->depth = depth;
	if (here->epoch != weft__hook_epoch) /* what it was interrupted in was another recording's */
		return;
	weft__hook_thread.callbacks = here->runs[depth].callbacks;
	weft__hook_thread.running = here->runs[depth].outer;
	here->actor = here->runs[depth].outer_actor;
}

/* A loop that a callback of another one runs to its end, as Node.js does for a child process that it waits for. */
static bool holds_up_another(const struct weft__uv_here *here, const uv_loop_t *loop)
{
	const struct weft__uv_run *outer = here->depth > 0 ? &here->runs[here->depth - 1] : NULL;
	return outer && outer->loop != loop && weft__hook_thread.callbacks > outer->callbacks;
}

/* The frame at *stack ends; loops that a longjmp has left lie above it. */
static void run_returns(const void **stack)
{
	struct weft__uv_here *here = &weft__uv_here;
	while (here->depth > 0 && (uintptr_t)here->runs[here->depth - 1].stack < (uintptr_t)*stack)
		pop(here, here->depth - 1);
	if (here->depth == 0 || here->runs[here->depth - 1].stack != *stack)
		return;
	const struct weft__uv_run *run = &here->runs[here->depth - 1];
	pop(here, here->depth - 1);
	if (!weft_is_on() || here->epoch != weft__hook_epoch)
		return;
	if (run->id) {
		weft_resolve(WEFT_SYSTEM_ID, run->id);
		weft_read(run->outer, run->id);
		weft__hook_thread.shown = run->outer;
	} else {
		weft_hook_show(run->outer);
		/* The next turn may run timers before it comes to its wait. */
		if (here->depth == 0)
			weft__round();
		if (run->turns)
			weft_awaits_no_more(run->outer, run->turns);
	}
	weft__uv_blocked(WEFT__TEXT("blocked in uv_run of another loop", ""), run->blocks_since_ns);
}

int weft__uv_run(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_run_mode mode)
{
	struct weft__uv_here *here = &weft__uv_here;
	const bool is_on = weft_hook_begin();
	if ((!is_on && !weft__hook_stands_by) || weft_hook_is_own(copy->module, caller))
		return copy->real.uv_run(loop, mode);
	here->inside = 0; /* no function of libuv calls this one: a longjmp has left our count behind */
	if (is_on)
		weft__uv_takes(copy, caller);
	__attribute__((cleanup(run_returns))) const void *stack = __builtin_frame_address(0);
	while (here->depth > 0 && (uintptr_t)here->runs[here->depth - 1].stack <= (uintptr_t)stack)
		pop(here, here->depth - 1);
	if (here->depth == WEFT__UV_DEPTH)
		return copy->real.uv_run(loop, mode);
	struct weft__uv_run *run = &here->runs[here->depth];
	*run = (struct weft__uv_run){.copy = copy,
	    .loop = loop,
	    .stack = stack,
	    .site = weft__uv_site(caller),
	    .outer = weft__hook_thread.running,
	    .outer_actor = here->actor,
	    .epoll = copy->real.uv_backend_fd(loop),
	    .callbacks = weft__hook_thread.callbacks,
	    .blocks_since_ns = is_on && holds_up_another(here, loop) ? weft__uv_now_ns() : 0,
	    .mode = mode,
	    .is_dirty = true,
	    .is_older = is_on && weft_hook_may_be_older(&here->older, loop)};
	if (is_on && mode == UV_RUN_DEFAULT) {
		run->id = weft_create_at(weft__hook_thread.running, WEFT_KIND_LOOP, run->site);
		run->since = weft__stream->last;
		weft_hook_stack(run->id, caller);
		WEFT_LABEL(run->id, "uv_run");
		weft_await(weft__hook_thread.running, run->id);
	}
	here->depth++;
	int status = copy->real.uv_run(loop, mode);
	if (status && run->id && weft_is_on() && here->epoch == weft__hook_epoch)
		WEFT_NOTE(run->id, "stopped by uv_stop");
	return status;
}

struct busy {
	struct weft__uv_copy *copy;
	weft_id id;
};

static void tell_open(uv_handle_t *handle, void *data)
{
	struct busy *busy = data;
	struct weft__uv_thing *thing = weft__uv_find_handle(handle);
	if (!thing)
		thing = weft__uv_thing_of_handle(busy->copy, handle);
	if (thing && !thing->id)
		weft__uv_begin_unseen(thing, handle);
	if (thing && thing->id)
		weft_await(busy->id, thing->id);
}

/* A loop that is busy is refused.  Many programs then close what is left and ask again: the promise is pending until that works,
 * and whoever never gets there is told of what was open. */
int weft__uv_loop_close(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop)
{
	struct weft__uv_here *here = &weft__uv_here;
	bool taken = weft__uv_takes(copy, caller);
	int status = WEFT__UV_INSIDE(copy->real.uv_loop_close(loop));
	if (!taken)
		return status;
	unsigned at = 0;
	for (unsigned i = 0; status == 0 && i < WEFT__UV_TURNED; i++)
		if (here->turned[i].id && here->turned[i].loop == loop) {
			weft_resolve(weft__hook_thread.running, here->turned[i].id);
			here->turned[i].id = 0;
		}
	while (at < WEFT__UV_BUSY && here->busy[at].loop != loop)
		at++;
	if (at < WEFT__UV_BUSY && status == 0) {
		weft_resolve(weft__hook_thread.running, here->busy[at].id);
		weft_read_later(weft__hook_thread.running, here->busy[at].id);
		here->busy[at].loop = NULL;
	}
	if (at < WEFT__UV_BUSY || status != UV_EBUSY)
		return status;
	at = here->next_busy++ % WEFT__UV_BUSY;
	struct busy busy = {copy, weft_create_at(weft__hook_thread.running, WEFT_KIND_CLOSE, weft__uv_site(caller))};
	WEFT_LABEL(busy.id, "uv_loop_close");
	WEFT_NOTE(busy.id, "EBUSY");
	each_handle(loop, tell_open, &busy);
	here->busy[at].loop = loop;
	here->busy[at].id = busy.id;
	return status;
}

struct walk {
	uv_walk_cb cb;
	void *data;
};

static void walk_called(uv_handle_t *handle, void *data)
{
	const struct walk *walk = data;
	walk->cb(handle, walk->data);
}

/* By way of a callback of ours: where the program's ends with a call of libuv, as those that close all do, compilers make a jump
 * of that, and the call seems to return to libuv. */
void weft__uv_walk(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_walk_cb cb, void *data)
{
	struct walk walk = {cb, data};
	bool taken = cb && weft__uv_takes(copy, caller);
	copy->real.uv_walk(loop, taken ? walk_called : cb, taken ? &walk : data);
}

/* ---- Sleep ---- */

/* The run of the loop that waits at this descriptor: what is above it was left by a longjmp. */
static struct weft__uv_run *put_right(struct weft__uv_here *here, int epoll)
{
	unsigned depth = here->depth;
	while (depth > 0 && here->runs[depth - 1].epoll != epoll)
		depth--;
	if (depth == 0)
		return NULL;
	struct weft__uv_run *run = &here->runs[depth - 1];
	if (here->depth > depth)
		here->depth = depth;
	weft__hook_thread.callbacks = run->callbacks;
	here->inside = 0;
	weft__hook_thread.running = run->id ? run->id : run->outer;
	here->actor = run->id ? 0 : run->outer_actor;
	return run;
}

/* The promise of a loop that is called turn by turn. */
static weft_id turns_of(struct weft__uv_here *here, const struct weft__uv_run *run)
{
	struct weft__uv_turned *turned = here->turned, *end = turned + WEFT__UV_TURNED;
	while (turned < end && !(turned->id && turned->loop == run->loop))
		turned++;
	if (turned == end) {
		turned = &here->turned[here->next_turned++ % WEFT__UV_TURNED];
		if (turned->id)
			weft_resolve(WEFT_SYSTEM_ID, turned->id); /* another loop's, of which nothing more is told */
		weft_id id = weft_create_at(run->outer, WEFT_KIND_LOOP, run->site);
		*turned = (struct weft__uv_turned){run->loop, id, run->outer, weft__stream->last, run->site};
		WEFT_LABEL(id, "uv_run, turn by turn");
	}
	return turned->id;
}

/* ---- What is older than the recording ---- */

struct older {
	struct weft__uv_run *run;
	unsigned budget;
};

static void tell_older(uv_handle_t *handle, void *data)
{
	struct older *older = data;
	const struct weft__uv_copy *copy = older->run->copy;
	if (weft__uv_find_handle(handle) || copy->real.uv_is_closing(handle) ||
	    !(copy->real.uv_is_active(handle) || weft__uv_has_requests(handle)))
		return;
	older->run->is_older |= older->budget == 0;
	if (older->budget == 0)
		return;
	older->budget--;
	weft__uv_begin_older(older->run->copy, handle);
}

/* libuv counts the requests of a loop; which those are on its pool of OS threads nobody can ask. */
static void tell_older_requests(const struct weft__uv_run *run)
{
	enum { MOST = 1000000 }; /* before libuv 1.19 it is no number */
	const unsigned all = run->loop->active_reqs.count;
	unsigned told = 0;
	uint32_t at = 0;
	for (const struct weft__uv_thing *thing; (thing = weft__uv_next(&at));)
		told += thing->is_request && thing->loop == run->loop;
	if (all <= told || all > MOST)
		return;
	struct weft_hook_label text = {0};
	weft_hook_put_number(&text, all - told);
	weft_hook_put(&text, all - told == 1 ? " request is" : " requests are");
	weft_hook_put(&text, " older than the recording: files, names or work");
	weft_note(run->id ? run->id : run->outer, text.text);
}

/* So many in a turn, which take some ms; the rest in the next one, or as soon as the loop has nothing to do. */
static void tell_some(struct weft__uv_run *run, unsigned budget)
{
	run->is_older = false;
	each_handle(run->loop, tell_older, &(struct older){run, budget});
	if (run->is_older)
		return;
	weft_hook_older_told(&weft__uv_here.older, run->loop);
	tell_older_requests(run);
}

enum { AT_A_TIME = 1000 };

static void still(const struct weft_hook_sleep *sleep)
{
	struct weft__uv_here *here = &weft__uv_here;
	struct weft__uv_run *run = &here->runs[here->depth - 1];
	if (run->is_older)
		tell_some(run, UINT_MAX);
	if (!run->id && !run->turns) {
		run->turns = turns_of(here, run);
		weft_await(run->outer, run->turns);
	}
	tell_what_keeps(run);
}

bool weft__uv_sleeps(struct weft_hook_sleep *sleep)
{
	struct weft__uv_here *here = &weft__uv_here;
	if (sleep->epoll >= 0 && here->depth > 0 && here->epoch != weft__hook_epoch)
		weft__uv_meet();
	struct weft__uv_run *run = sleep->epoll >= 0 && here->epoch == weft__hook_epoch ? put_right(here, sleep->epoll) : NULL;
	if (run && run->is_older)
		tell_some(run, AT_A_TIME);
	if (run && run->is_dirty) {
		sleep->first_ms = STILL_MS;
		sleep->still = still;
	}
	return run != NULL;
}
