/* loop.c: records sd-event loops that run on a thread, and when they sleep.  SPDX-License-Identifier: ISC */
#include "adapters/sd/common.h"

#include "adapters/base/thread_sleep.h"
#include "adapters/hook/thread_memory.h"

enum { MAX_RUNS = 4 };

static __thread unsigned epoch __attribute__((tls_model("initial-exec")));

/* Calls of sd_event_loop() and sd_event_run() on this thread that have not returned. */
static struct run {
	const sd_event *event;
	const void *caller;
	unsigned epoch; /* recording that knows it */
	weft_id id, outer;
	weft_id turns; /* promise of a stepped loop, which `outer` awaits while the current iteration waits long; 0: none */
	bool is_loop;  /* true for sd_event_loop(), false for a single iteration */
} runs_of_threads[MAX_RUNS] WEFT_HOOK_PER_THREAD;
#define runs WEFT_HOOK_HERE(runs_of_threads)
static __thread unsigned run_depth __attribute__((tls_model("initial-exec")));

static void attach_thread(void);

bool weft__sd_should_record(void)
{
	if (!weft_hook_begin())
		return false;
	weft_hook_thread();
	if (epoch != weft__hook_epoch) {
		epoch = weft__hook_epoch;
		weft__sd_clear_unlabelled();
		weft_hook_register_list((weft_list_pending_fn *)weft_hook_object_table_list, &weft__sd_objects);
		if (weft__hook_is_standby)
			attach_thread();
	}
	return true;
}

/* ---- Loops ---- */

struct await_context {
	const sd_event *event;
	weft_id loop;
};

static void await_source(struct weft_hook_object *base_object, void *data)
{
	struct weft__sd_object *object = (struct weft__sd_object *)(void *)base_object;
	const struct await_context *k = data;
	if (object->event == k->event && object->is_enabled && object->id)
		weft_await(object->awaited_by = k->loop, object->id);
}

/* Ends the promise of a stepped loop.  Returns NULL.  Call it with the loop's lock held. */
static struct weft__sd_object *end_turn_loop(struct weft__sd_object *loop)
{
	if (loop->id && weft_is_on())
		weft_resolve(weft__hook_get_thread()->running ? weft__hook_get_thread()->running : WEFT_SYSTEM_ID, loop->id);
	weft_hook_object_remove(&weft__sd_objects, &loop->object);
	return NULL;
}

/* Creates the loop's promise, which awaits the enabled sources; the loop's address is its key.  All iterations of a stepped loop
 * share one promise, from the first long wait until the loop runs as a whole or its memory is reused. */
static weft_id begin_loop_promise(const struct run *run, bool is_older)
{
	const sd_event *event = run->event;
	weft__sd_lock(event);
	struct weft__sd_object *loop = weft__sd_find(event);
	if (loop && loop->is_run_by_turns && run->is_loop)
		loop = end_turn_loop(loop);
	if (!loop)
		loop = weft_hook_object_create(&weft__sd_objects, event);
	const bool is_new = loop && !loop->id;
	if (is_new) {
		loop->is_labelled = true;
		loop->is_run_by_turns = !run->is_loop;
		loop->label = (struct weft_hook_label){0};
		if (is_older)
			weft_hook_object_begin_older(&loop->object, WEFT_KIND_LOOP);
		else
			weft_hook_object_begin(&loop->object, WEFT_KIND_LOOP, run->caller);
		loop->by = run->outer;
		weft_hook_append(&loop->label, run->is_loop ? "sd_event_loop" : "sd_event_run");
		weft_hook_record_label(&loop->label, loop->id);
	}
	const weft_id id = is_new || (loop && loop->is_run_by_turns) ? loop->id : 0;
	if (id)
		weft_await(loop->awaited_by = run->outer, id);
	weft__sd_unlock(event);
	if (is_new)
		weft_hook_object_table_each(&weft__sd_objects, await_source, &(struct await_context){event, id});
	return id;
}

/* Ends the calling promise's wait for the iteration. */
static void end_loop_turn(const struct run *run)
{
	weft__sd_lock(run->event);
	struct weft__sd_object *loop = weft__sd_find(run->event);
	if (loop && loop->id == run->turns && loop->awaited_by == run->outer) {
		weft_awaits_no_more(run->outer, run->turns);
		loop->awaited_by = 0;
	}
	weft__sd_unlock(run->event);
}

static void end_loop_promise(const sd_event *event, weft_id id, weft_id outer)
{
	weft__sd_lock(event);
	struct weft__sd_object *loop = weft__sd_find(event);
	if (loop && loop->id == id) {
		weft_resolve(loop->ended_by ? loop->ended_by : WEFT_SYSTEM_ID, id);
		weft_hook_object_remove(&weft__sd_objects, &loop->object);
	}
	weft__sd_unlock(event);
	weft_read(outer, id);
	weft__hook_get_thread()->recorded_running = outer;
}

/* Returns the event loop, which for SD_EVENT_DEFAULT is this thread's default loop. */
static const sd_event *resolve_event(struct weft__sd_copy *copy, sd_event *event)
{
	if ((uintptr_t)event != 1)
		return event;
	sd_event *found = NULL;
	if (!copy->real.sd_event_default || !copy->real.sd_event_unref || copy->real.sd_event_default(&found) < 0)
		return NULL;
	copy->real.sd_event_unref(found);
	return found;
}

static struct run *push_run(const sd_event *event, const void *caller, bool is_loop, bool is_on)
{
	struct run *run = &runs[run_depth++];
	*run = (struct run){.event = event, .caller = caller, .is_loop = is_loop};
	if (is_on) {
		run->epoch = weft__hook_epoch;
		run->outer = weft__hook_get_thread()->running;
		run->id = is_loop ? begin_loop_promise(run, false) : 0;
		if (run->id)
			weft__hook_get_thread()->running = run->id;
	}
	return run;
}

static void pop_run(const struct run *run)
{
	run_depth--;
	if (run->epoch != weft__hook_epoch)
		return;
	weft__hook_get_thread()->running = run->outer;
	if (run->id && weft_is_on())
		end_loop_promise(run->event, run->id, run->outer);
	else if (run->turns && weft_is_on())
		end_loop_turn(run);
}

int weft__sd_event_loop(struct weft__sd_copy *copy, const void *caller, sd_event *event)
{
	const bool is_on = weft__sd_should_record();
	const sd_event *key = run_depth < MAX_RUNS && weft__sd_should_track() ? resolve_event(copy, event) : NULL;
	if (!key)
		return copy->real.sd_event_loop(event);
	const struct run *run = push_run(key, caller, true, is_on);
	int status = copy->real.sd_event_loop(event);
	pop_run(run);
	return status;
}

/* Records an iteration of the loop; sd_event_loop() calls this function too. */
int weft__sd_event_run(struct weft__sd_copy *copy, const void *caller, sd_event *event, uint64_t timeout_us)
{
	const bool is_on = weft__sd_should_record();
	const sd_event *key = run_depth < MAX_RUNS && weft__sd_should_track() ? resolve_event(copy, event) : NULL;
	if (!key || (run_depth > 0 && runs[run_depth - 1].is_loop && runs[run_depth - 1].event == key))
		return copy->real.sd_event_run(event, timeout_us);
	const struct run *run = push_run(key, caller, false, is_on);
	int status = copy->real.sd_event_run(event, timeout_us);
	pop_run(run);
	return status;
}

/* The table may have the object of an earlier loop at this address. */
int weft__sd_event_new(struct weft__sd_copy *copy, const void *caller, sd_event **event)
{
	int status = copy->real.sd_event_new(event);
	if (status < 0 || !weft__sd_should_track())
		return status;
	weft__sd_lock(*event);
	struct weft__sd_object *loop = weft__sd_find(*event);
	if (loop && loop->is_run_by_turns)
		end_turn_loop(loop);
	weft__sd_unlock(*event);
	return status;
}

static void begin_older_source(struct weft_hook_object *base_object, void *data)
{
	struct weft__sd_object *object = (struct weft__sd_object *)(void *)base_object;
	if (object->id || !object->event) /* the object is a loop or a call, and no source */
		return;
	weft_hook_object_begin_older(base_object, (enum weft_kind)object->kind);
	weft__sd_attach_fd(object);
	if (object->is_labelled)
		weft_hook_record_label(&object->label, object->id);
	else
		weft__sd_label_source(object, NULL);
}

/* Attaches this thread at its first call or sleep in this recording.  Sources and loops may be older than the recording.  The
 * first attached thread records all older sources; each other thread takes over its own sources at its next call. */
static void attach_thread(void)
{
	weft_hook_object_table_each(&weft__sd_objects, begin_older_source, NULL);
	for (struct run *run = runs; run < runs + run_depth; run++) {
		run->epoch = weft__hook_epoch;
		run->outer = weft__hook_get_thread()->running;
		run->turns = 0;
		run->id = run->is_loop ? begin_loop_promise(run, true) : 0;
		if (run->id)
			weft__hook_get_thread()->running = run->id;
	}
}

int weft__sd_event_exit(struct weft__sd_copy *copy, const void *caller, sd_event *event, int code)
{
	const sd_event *key = weft_is_on() ? resolve_event(copy, event) : NULL;
	if (key) {
		weft__sd_lock(key);
		struct weft__sd_object *loop = weft__sd_find(key);
		if (loop && loop->id != weft__hook_get_thread()->running)
			loop->ended_by = weft__hook_get_thread()->running;
		weft__sd_unlock(key);
	}
	return copy->real.sd_event_exit(event, code);
}

/* Records the stepped loop's promise when an iteration waits long. */
static void await_turn(const struct weft_hook_sleep *sleep)
{
	(void)sleep;
	if (run_depth > 0)
		runs[run_depth - 1].turns = begin_loop_promise(&runs[run_depth - 1], false);
}

/* sd-event waits by epoll, and nothing else in systemd's libraries does. */
bool weft__sd_is_loop_wait(struct weft_hook_sleep *sleep)
{
	enum { STILL_MS = 100 }; /* longest wait of a busy loop */
	if (sleep->kind != WEFT_HOOK_SLEEP_FDS || sleep->epoll < 0 || (epoch != weft__hook_epoch && !weft__hook_is_standby))
		return false;
	const bool is_own = weft__sd_copy_of(sleep->caller) != NULL;
	if (epoch != weft__hook_epoch && (!is_own || !weft__sd_should_record()))
		return false;
	weft__sd_label_all();
	const struct run *run = run_depth > 0 ? &runs[run_depth - 1] : NULL;
	if (is_own && run && !run->is_loop && !run->turns && run->epoch == epoch) {
		sleep->first_ms = STILL_MS;
		sleep->on_long_wait = await_turn;
	}
	return is_own;
}
