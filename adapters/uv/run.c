/* run.c: records libuv's loops: when they sleep, and which objects keep them alive.
 *
 * A call of uv_run() that runs until nothing is left has a promise.  The caller of uv_run() awaits this promise, which awaits
 * the objects that keep the loop alive.  Some programs step their loop (UV_RUN_ONCE).  A stepped loop has a promise from its
 * first long wait until it is closed; the caller of an iteration awaits this promise while the iteration waits long.
 * SPDX-License-Identifier: ISC */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "adapters/base/thread_sleep.h"
#include "adapters/hook/frames.h"
#include "adapters/hook/patches.h"
#include "adapters/hook/session.h"
#include "adapters/uv/callback.h"
#include "adapters/uv/object.h"

/* Length in ms of a wait from which on the objects that keep the loop alive are recorded.  A busy loop never waits so long. */
enum { STILL_MS = 100 };

/* ---- Loops ---- */

int weft__uv_loop_init(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop)
{
	/* The table may have an earlier loop that was at this address. */
	struct weft__uv_here *here = weft__uv_get_here();
	for (unsigned i = 0; i < WEFT__UV_MAX_BUSY_LOOPS; i++)
		if (here->busy[i].loop == loop)
			here->busy[i].loop = NULL;
	for (unsigned i = 0; i < WEFT__UV_MAX_TURN_LOOPS; i++)
		if (here->turn_loop[i].loop == loop)
			here->turn_loop[i].loop = NULL;
	return WEFT__UV_INSIDE(copy->real.uv_loop_init(loop));
}

uv_loop_t *weft__uv_default_loop(struct weft__uv_copy *copy, const void *caller)
{
	return WEFT__UV_INSIDE(copy->real.uv_default_loop());
}

void weft__uv_ref(struct weft__uv_copy *copy, const void *caller, uv_handle_t *handle)
{
	copy->real.uv_ref(handle);
	weft__uv_mark_loop_dirty();
}

void weft__uv_unref(struct weft__uv_copy *copy, const void *caller, uv_handle_t *handle)
{
	copy->real.uv_unref(handle);
	weft__uv_mark_loop_dirty();
}

static bool is_keeping_loop(const struct weft__uv_calls *real, const uv_handle_t *handle)
{
	return real->uv_is_active(handle) && real->uv_has_ref(handle) && !real->uv_is_closing(handle);
}

/* Visits the handles of a loop in the order of their creation, through libuv's public structs. uv_walk() is not used, because it
 * would write to all handles, and a program may have freed a handle without closing it, which libuv notices later.  The visit
 * stops at memory that is no handle of the loop any more. */
static void visit_handles(uv_loop_t *loop, void (*visit)(uv_handle_t *handle, void *data), void *data)
{
	enum {
		EXTRA_HANDLES = 1024,       /* number of handles that may be unknown to the adapter */
		INTERNAL_HANDLE_FLAG = 0x10 /* flag since libuv 1.19 of internal handles, such as those inside of uv_loop_t */
	};
	uint32_t left = __atomic_load_n(&weft__uv_object_count, __ATOMIC_ACQUIRE) + EXTRA_HANDLES;
	void *const *head = (void *const *)&loop->handle_queue, *const *at = head;
	while ((at = *at) != head && left-- > 0) {
		uv_handle_t *handle = (uv_handle_t *)((char *)(uintptr_t)at - offsetof(uv_handle_t, handle_queue));
		if (!weft_hook_is_readable(handle, sizeof *handle) || handle->loop != loop)
			return;
		if ((uintptr_t)handle - (uintptr_t)loop >= sizeof *loop && !(handle->flags & INTERNAL_HANDLE_FLAG))
			visit(handle, data);
	}
}

/* Returns the promise that awaits the objects that keep the loop alive. */
static weft_id get_loop_promise(const struct weft__uv_run *run)
{
	return run->id ? run->id : run->turns;
}

static void record_handle(uv_handle_t *handle, void *data)
{
	struct weft__uv_run *run = data;
	const struct weft__uv_calls *real = &run->copy->real;
	struct weft__uv_object *object = weft__uv_find_handle(handle);
	bool keeps = is_keeping_loop(real, handle);
	if (!object && keeps)
		object = weft__uv_object_of_handle(run->copy, handle);
	if (!object)
		return;
	if (keeps && !object->id)
		weft__uv_begin_unseen(object, handle);
	weft_id kept = keeps ? get_loop_promise(run) : 0;
	if (object->id && kept != object->awaited_by) {
		if (object->awaited_by && weft__uv_is_loop_pending(weft__uv_get_here(), object->awaited_by))
			weft_awaits_no_more(object->awaited_by, object->id);
		if (kept)
			weft_await(kept, object->id);
		object->awaited_by = kept;
	}
}

/* Records for which objects the loop waits.  A request in flight should end, because libuv guarantees its callback. */
static void record_keepers(struct weft__uv_run *run)
{
	run->is_dirty = false;
	visit_handles(run->loop, record_handle, run);
	uint32_t at = 0;
	for (struct weft__uv_object *object; (object = weft__uv_request_next(run->loop, &at));)
		if (object->id) {
			if (object->awaited_by != get_loop_promise(run))
				weft_await(object->awaited_by = get_loop_promise(run), object->id);
			if (!object->is_expected)
				weft_should_resolve(object->id);
			object->is_expected = true;
		}
}

static void pop_run(struct weft__uv_here *here, unsigned depth)
{
	here->depth = depth;
	if (here->epoch != weft__hook_epoch) /* the thread's state belongs to an earlier recording */
		return;
	if (here->runs[depth].is_adopted && here->runs[depth].id && weft_is_on())
		weft_resolve(WEFT_SYSTEM_ID, here->runs[depth].id);
	weft__hook_get_thread()->callbacks = here->runs[depth].callbacks;
	weft__hook_get_thread()->running = here->runs[depth].outer;
	here->actor = here->runs[depth].outer_actor;
	here->line = NULL;
}

/* Returns whether a callback of another loop runs this loop, as Node.js does to wait for a child process. */
static bool is_blocking_outer_loop(const struct weft__uv_here *here, const uv_loop_t *loop)
{
	const struct weft__uv_run *outer = here->depth > 0 ? &here->runs[here->depth - 1] : NULL;
	return outer && outer->loop != loop && weft__hook_get_thread()->callbacks > outer->callbacks;
}

/* Ends the call of uv_run() whose frame is at *stack, and the inner calls whose frames a longjmp() has skipped. */
static void handle_run_return(const void **stack)
{
	struct weft__uv_here *here = weft__uv_get_here();
	while (here->depth > 0 && (uintptr_t)here->runs[here->depth - 1].stack < (uintptr_t)*stack)
		pop_run(here, here->depth - 1);
	if (here->depth == 0 || here->runs[here->depth - 1].stack != *stack)
		return;
	const struct weft__uv_run *run = &here->runs[here->depth - 1];
	pop_run(here, here->depth - 1);
	if (!weft_is_on() || here->epoch != weft__hook_epoch)
		return;
	if (run->id) {
		weft_resolve(WEFT_SYSTEM_ID, run->id);
		weft_read(run->outer, run->id);
		weft__hook_get_thread()->recorded_running = run->outer;
	} else {
		weft_hook_record_running(run->outer);
		/* The next iteration may run timers before it waits. */
		if (here->depth == 0)
			weft__round();
		if (run->turns)
			weft_awaits_no_more(run->outer, run->turns);
	}
	weft__uv_record_pause(WEFT__TEXT("blocked in uv_run of another loop", ""), run->site, run->blocks_since_ns);
}

int weft__uv_run(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_run_mode mode)
{
	struct weft__uv_here *here = weft__uv_get_here();
	const bool is_on = weft_hook_begin();
	if ((!is_on && !weft__hook_is_standby) || weft_hook_is_own(copy->module, caller))
		return copy->real.uv_run(loop, mode);
	here->nested_calls = 0; /* libuv itself does not call uv_run(), so a longjmp() has left the count */
	if (is_on)
		weft__uv_should_record(copy, caller);
	__attribute__((cleanup(handle_run_return))) const void *stack = __builtin_frame_address(0);
	while (here->depth > 0 && (uintptr_t)here->runs[here->depth - 1].stack <= (uintptr_t)stack)
		pop_run(here, here->depth - 1);
	if (here->depth == WEFT__UV_MAX_RUNS)
		return copy->real.uv_run(loop, mode);
	struct weft__uv_run *run = &here->runs[here->depth];
	*run = (struct weft__uv_run){.copy = copy,
	    .loop = loop,
	    .stack = stack,
	    .site = weft_hook_site(caller),
	    .outer = weft__hook_get_thread()->running,
	    .outer_actor = here->actor,
	    .epoll = copy->real.uv_backend_fd(loop),
	    .callbacks = weft__hook_get_thread()->callbacks,
	    .blocks_since_ns = is_on && is_blocking_outer_loop(here, loop) ? weft__uv_now_ns() : 0,
	    .mode = mode,
	    .is_dirty = true,
	    .is_older = is_on && weft_hook_is_loop_unlisted(&here->older, loop)};
	if (is_on && mode == UV_RUN_DEFAULT) {
		run->id = weft_create_at(weft__hook_get_thread()->running, WEFT_KIND_LOOP, run->site);
		run->since = weft__stream->last;
		weft_hook_stack(run->id, caller);
		WEFT_LABEL(run->id, "uv_run");
		weft_await(weft__hook_get_thread()->running, run->id);
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

static void record_open_handle(uv_handle_t *handle, void *data)
{
	struct busy *busy = data;
	struct weft__uv_object *object = weft__uv_find_handle(handle);
	if (!object)
		object = weft__uv_object_of_handle(busy->copy, handle);
	if (object && !object->id)
		weft__uv_begin_unseen(object, handle);
	if (object && object->id)
		weft_await(busy->id, object->id);
}

/* uv_loop_close() rejects a loop with open handles.  Many programs then close these handles and try again.  The promise of the
 * closing is pending until a try succeeds, so that the open handles are known if none ever does. */
int weft__uv_loop_close(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop)
{
	struct weft__uv_here *here = weft__uv_get_here();
	bool is_recorded = weft__uv_should_record(copy, caller);
	int status = WEFT__UV_INSIDE(copy->real.uv_loop_close(loop));
	if (!is_recorded)
		return status;
	unsigned at = 0;
	for (unsigned i = 0; status == 0 && i < WEFT__UV_MAX_TURN_LOOPS; i++)
		if (here->turn_loop[i].id && here->turn_loop[i].loop == loop) {
			weft_resolve(weft__hook_get_thread()->running, here->turn_loop[i].id);
			here->turn_loop[i].id = 0;
		}
	while (at < WEFT__UV_MAX_BUSY_LOOPS && here->busy[at].loop != loop)
		at++;
	if (at < WEFT__UV_MAX_BUSY_LOOPS && status == 0) {
		weft_resolve(weft__hook_get_thread()->running, here->busy[at].id);
		weft_read_later(weft__hook_get_thread()->running, here->busy[at].id);
		here->busy[at].loop = NULL;
	}
	if (at < WEFT__UV_MAX_BUSY_LOOPS || status != UV_EBUSY)
		return status;
	at = here->next_busy++ % WEFT__UV_MAX_BUSY_LOOPS;
	struct busy busy = {copy, weft_create_at(weft__hook_get_thread()->running, WEFT_KIND_CLOSE, weft_hook_site(caller))};
	WEFT_LABEL(busy.id, "uv_loop_close");
	WEFT_NOTE(busy.id, "EBUSY");
	visit_handles(loop, record_open_handle, &busy);
	here->busy[at].loop = loop;
	here->busy[at].id = busy.id;
	return status;
}

struct walk {
	uv_walk_cb cb;
	void *data;
};

static void call_walk(uv_handle_t *handle, void *data)
{
	const struct walk *walk = data;
	walk->cb(handle, walk->data);
}

/* Walks over the handles with a callback of the adapter.  If the program's callback ends with a call of libuv, such as
 * uv_close(), compilers make that call a jump, and it would seem to come from libuv. */
void weft__uv_walk(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_walk_cb cb, void *data)
{
	struct walk walk = {cb, data};
	bool is_recorded = cb && weft__uv_should_record(copy, caller);
	copy->real.uv_walk(loop, is_recorded ? call_walk : cb, is_recorded ? &walk : data);
}

/* ---- Sleep ---- */

/* Returns the run of the loop that has this epoll descriptor.  Runs above it have been skipped by a longjmp(), and are ended. */
static struct weft__uv_run *restore_run(struct weft__uv_here *here, int epoll)
{
	unsigned depth = here->depth;
	while (depth > 0 && here->runs[depth - 1].epoll != epoll)
		depth--;
	if (depth == 0)
		return NULL;
	struct weft__uv_run *run = &here->runs[depth - 1];
	if (here->depth > depth)
		here->depth = depth;
	weft__hook_get_thread()->callbacks = run->callbacks;
	here->nested_calls = 0;
	here->line = NULL;
	weft__hook_get_thread()->running = run->id ? run->id : run->outer;
	here->actor = run->id ? 0 : run->outer_actor;
	return run;
}

/* Returns the promise of a stepped loop, and creates the promise if there is none. */
static weft_id get_turn_promise(struct weft__uv_here *here, const struct weft__uv_run *run)
{
	struct weft__uv_turn_loop *turn_loop = here->turn_loop, *end = turn_loop + WEFT__UV_MAX_TURN_LOOPS;
	while (turn_loop < end && !(turn_loop->id && turn_loop->loop == run->loop))
		turn_loop++;
	if (turn_loop == end) {
		turn_loop = &here->turn_loop[here->next_turn_loop++ % WEFT__UV_MAX_TURN_LOOPS];
		if (turn_loop->id)
			weft_resolve(WEFT_SYSTEM_ID, turn_loop->id); /* promise of another loop, which is not recorded any more */
		weft_id id = weft_create_at(run->outer, WEFT_KIND_LOOP, run->site);
		*turn_loop = (struct weft__uv_turn_loop){run->loop, id, run->outer, weft__stream->last, run->site};
		WEFT_LABEL(id, "uv_run, single iterations");
	}
	return turn_loop->id;
}

/* ---- Handles and requests that are older than the recording ---- */

struct older {
	struct weft__uv_run *run;
	unsigned budget;
};

static void record_older_handle(uv_handle_t *handle, void *data)
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

/* Notes how many older requests are pending. libuv only counts requests, and does not say which of them its thread pool runs. */
static void note_older_requests(const struct weft__uv_run *run)
{
	enum { MAX_REQUESTS = 1000000 }; /* before libuv 1.19 the field contains no number */
	const unsigned all = run->loop->active_reqs.count;
	unsigned recorded = 0;
	uint32_t at = 0;
	while (weft__uv_request_next(run->loop, &at))
		recorded++;
	if (all <= recorded || all > MAX_REQUESTS)
		return;
	struct weft_hook_label text = {0};
	weft_hook_append_number(&text, all - recorded);
	weft_hook_append(&text, all - recorded == 1 ? " request is" : " requests are");
	weft_hook_append(&text, " older than the recording: files, names or work");
	weft_note(run->id ? run->id : run->outer, text.text);
}

/* Records at most `budget` older handles, which takes some ms.  The other handles follow in later iterations, or when the loop
 * has nothing to do. */
static void record_older(struct weft__uv_run *run, unsigned budget)
{
	run->is_older = false;
	visit_handles(run->loop, record_older_handle, &(struct older){run, budget});
	if (run->is_older)
		return;
	weft_hook_mark_loop_listed(&weft__uv_get_here()->older, run->loop);
	note_older_requests(run);
}

enum { HANDLES_PER_TURN = 1000 };

static void await_turn(const struct weft_hook_sleep *sleep)
{
	struct weft__uv_here *here = weft__uv_get_here();
	struct weft__uv_run *run = &here->runs[here->depth - 1];
	if (run->is_older)
		record_older(run, UINT_MAX);
	if (!run->id && !run->turns) {
		run->turns = get_turn_promise(here, run);
		weft_await(run->outer, run->turns);
	}
	record_keepers(run);
}

/* ---- Calls of uv_run() that are older than this library ---- */

/* Returns whether the address is that of the loop with this epoll descriptor: two handles inside of the loop name the loop. */
static bool is_loop_of(const uv_loop_t *loop, int epoll)
{
	return (uintptr_t)loop % sizeof(void *) == 0 && (uintptr_t)loop > sizeof *loop &&
	       weft_hook_is_readable(loop, sizeof *loop) && loop->backend_fd == epoll && loop->wq_async.loop == loop &&
	       loop->wq_async.type == UV_ASYNC && loop->child_watcher.loop == loop && loop->child_watcher.type == UV_SIGNAL;
}

/* Finds the loop for which this thread waits on its stack, where uv_run() and its callees keep the loop's address.  Returns the
 * place of the address, or NULL. */
static uv_loop_t *const *find_loop_on_stack(int epoll)
{
	enum { MAX_WORDS = 512 };
	uv_loop_t *const *at = __builtin_frame_address(0);
	for (unsigned i = 0; i < MAX_WORDS && weft_hook_is_readable(at + i, sizeof *at); i++)
		if (is_loop_of(at[i], epoll))
			return &at[i];
	return NULL;
}

/* Adds the run of uv_run() that a program called before weft attached.  Nothing shows its mode, so it counts as a run until
 * nothing is left.  Its end is not seen; it ends with the next run at its place of the stack. */
static void adopt_run(struct weft__uv_here *here, const struct weft_hook_sleep *sleep)
{
	enum { MAX_SEARCHES = 4, POLL_FRAME_WORDS = 256 };
	struct weft__uv_copy *copy = weft__uv_find_copy(sleep->caller);
	uv_loop_t *const *place = copy && here->searches++ < MAX_SEARCHES ? find_loop_on_stack(sleep->epoll) : NULL;
	if (!place)
		return;
	weft__uv_attach_thread();
	struct weft__uv_run *run = &here->runs[0];
	*run = (struct weft__uv_run){.copy = copy,
	    .loop = *place,
	    /* Behind this place is a frame of libuv with an array of 12 KiB.  Callbacks have their frames before the array, and
	     * the next call of uv_run() has its frame behind the array. */
	    .stack = place + POLL_FRAME_WORDS,
	    .site = weft__uv_site(weft__hook_find_program_line(sleep->caller, NULL)),
	    .outer = weft__hook_get_thread()->running,
	    .outer_actor = here->actor,
	    .epoll = sleep->epoll,
	    .callbacks = weft__hook_get_thread()->callbacks,
	    .mode = UV_RUN_DEFAULT,
	    .is_dirty = true,
	    .is_older = true,
	    .is_adopted = true};
	run->id = weft_create_at(run->outer, WEFT_KIND_LOOP, run->site);
	run->since = weft__stream->last;
	WEFT_LABEL(run->id, "uv_run");
	weft_await(run->outer, run->id);
	here->depth = 1;
}

bool weft__uv_is_loop_wait(struct weft_hook_sleep *sleep)
{
	struct weft__uv_here *here = weft__uv_get_here();
	if (sleep->epoll >= 0 && here->depth == 0 && weft__hook_is_attached)
		adopt_run(here, sleep);
	if (sleep->epoll >= 0 && here->depth > 0 && here->epoch != weft__hook_epoch)
		weft__uv_attach_thread();
	struct weft__uv_run *run = sleep->epoll >= 0 && here->epoch == weft__hook_epoch ? restore_run(here, sleep->epoll) : NULL;
	if (run && run->is_older)
		record_older(run, HANDLES_PER_TURN);
	if (run && run->is_dirty) {
		sleep->first_ms = STILL_MS;
		sleep->on_long_wait = await_turn;
	}
	return run != NULL;
}
