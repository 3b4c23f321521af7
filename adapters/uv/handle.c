/* handle.c: records handles: timers, idle, check and prepare handles, asyncs, polls, signals, watchers, processes.
 *
 * The promise of a handle begins when the handle is first used, because many handles are never used, and ends when the handle is
 * closed.  If the handle is stopped and started for the same purpose, it keeps its promise, which gets notes.  For another
 * purpose the handle gets another promise, because some runtimes use one timer for all of their timers.
 * SPDX-License-Identifier: ISC */
#include <poll.h>
#include <stddef.h>
#include <string.h>

#include "adapters/hook/thread_memory.h"
#include "adapters/uv/callback.h"
#include "adapters/uv/promise.h"
#include "adapters/uv/question.h"
#include "adapters/uv/slots.h"

/* Returns the promise kind of a handle, and the start of its label.  If the start of the label ends with a space, the
 * description of the handle's descriptor follows. */
static enum weft_kind classify_handle(const uv_handle_t *handle, const char **label)
{
	static const struct {
		uv_handle_type type;
		enum weft_kind kind;
		const char *label;
	} kinds[] = {{UV_ASYNC, WEFT_KIND_CONDITION, "async"}, {UV_CHECK, WEFT_KIND_HANDLE, "check"},
	    {UV_FS_EVENT, WEFT_KIND_POLL, "watch"}, {UV_FS_POLL, WEFT_KIND_POLL, "watch"}, {UV_IDLE, WEFT_KIND_HANDLE, "idle"},
	    {UV_NAMED_PIPE, WEFT_KIND_CONNECTION, "pipe "}, {UV_POLL, WEFT_KIND_POLL, "poll "},
	    {UV_PREPARE, WEFT_KIND_HANDLE, "prepare"}, {UV_PROCESS, WEFT_KIND_PROCESS, "process"},
	    {UV_TCP, WEFT_KIND_CONNECTION, "tcp "}, {UV_TIMER, WEFT_KIND_TIMER, "timer"}, {UV_TTY, WEFT_KIND_CONNECTION, "tty "},
	    {UV_UDP, WEFT_KIND_CONNECTION, "udp "}, {UV_SIGNAL, WEFT_KIND_OS_SIGNAL, "signal"}};
	size_t at = 0;
	while (at < sizeof kinds / sizeof *kinds && kinds[at].type != handle->type)
		at++;
	bool known = at < sizeof kinds / sizeof *kinds;
	*label = known ? kinds[at].label : "handle";
	return known ? kinds[at].kind : WEFT_KIND_HANDLE;
}

static void append_kind_label(struct weft__uv_object *object, const uv_handle_t *handle, const char *label)
{
	weft__uv_append(object, label);
	if (label[strlen(label) - 1] == ' ')
		weft__uv_append_handle(object, handle);
}

void weft__uv_begin_unseen(struct weft__uv_object *object, const uv_handle_t *handle)
{
	const char *label;
	const enum weft_kind kind = classify_handle(handle, &label);
	if (!weft__uv_begin(object, kind, NULL))
		return;
	append_kind_label(object, handle, label);
	weft__uv_record_label(object);
	if (kind == WEFT_KIND_CONNECTION)
		weft__uv_attach_fd(object, handle);
}

/* ---- Handles that are older than the recording ---- */

/* Replaces the callback at *callback, which is in a public struct of libuv, by its slot.  The function runs on the loop's
 * thread.  Returns the program's callback. */
#define REPLACE_CALLBACK(name, callback) replace_callback(&weft__uv_##name##_pool, (void **)(void *)(callback))

static void *replace_callback(struct weft__uv_pool *pool, void **callback)
{
	void *program_callback = *callback, *slot = program_callback ? weft__uv_slot(pool, program_callback) : NULL;
	const uintptr_t at = (uintptr_t)slot - (uintptr_t)pool->code;
	*callback = slot;
	return slot && at < WEFT__UV_SLOTS * WEFT__UV_SLOT_BYTES ? pool->user[at / WEFT__UV_SLOT_BYTES] : program_callback;
}

static void append_signal(struct weft__uv_object *object, int number)
{
	const char *name = sigabbrev_np(number);
	weft__uv_append(object, name ? "SIG" : "signal ");
	if (name)
		weft__uv_append(object, name);
	else
		weft__uv_append_number(object, (unsigned)number);
}

/* The duration of a one-shot timer is unknown. */
static void append_timer(struct weft__uv_object *object, const uv_timer_t *timer, const void *function)
{
	weft__uv_append(object, timer->repeat ? "every " : "timer");
	if (timer->repeat)
		weft__uv_append_ms(object, timer->repeat);
	weft__uv_append_function(object, function);
}

/* Replaces the stream's callbacks.  Returns the kind of the stream's promise, and in *label what the caller still has to append
 * to the label. */
static enum weft_kind replace_stream_callbacks(
    struct weft__uv_object *object, uv_stream_t *stream, enum weft_kind kind, const char **label)
{
	object->reads = REPLACE_CALLBACK(read, &stream->read_cb) != NULL;
	if (REPLACE_CALLBACK(connection, &stream->connection_cb)) {
		*label = "listen ";
		return WEFT_KIND_LISTEN;
	}
	weft__uv_append_handle(object, (uv_handle_t *)stream);
	*label = "";
	return kind;
}

static enum weft_kind replace_callbacks(struct weft__uv_object *object, uv_handle_t *handle, const char **label)
{
	const enum weft_kind kind = classify_handle(handle, label);
	switch ((int)handle->type) {
	case UV_TCP:
	case UV_NAMED_PIPE:
	case UV_TTY: return replace_stream_callbacks(object, (uv_stream_t *)handle, kind, label);
	case UV_TIMER:
		append_timer(object, (uv_timer_t *)handle, REPLACE_CALLBACK(timer, &((uv_timer_t *)handle)->timer_cb));
		*label = "";
		break;
	case UV_SIGNAL:
		REPLACE_CALLBACK(signal, &((uv_signal_t *)handle)->signal_cb);
		append_signal(object, ((uv_signal_t *)handle)->signum);
		*label = "";
		break;
	case UV_ASYNC:
		weft__uv_append(object, *label);
		weft__uv_append_function(object, REPLACE_CALLBACK(async, &((uv_async_t *)handle)->async_cb));
		*label = "";
		break;
	case UV_PROCESS:
		REPLACE_CALLBACK(exit, &((uv_process_t *)handle)->exit_cb);
		weft__uv_append(object, "process ");
		weft__uv_append_number(object, (unsigned)((uv_process_t *)handle)->pid);
		*label = "";
		break;
	case UV_FS_EVENT:
		REPLACE_CALLBACK(fs_event, &((uv_fs_event_t *)handle)->cb);
		weft__uv_append(object, "watch ");
		weft__uv_append_path(object, ((uv_fs_event_t *)handle)->path ? ((uv_fs_event_t *)handle)->path : "?");
		*label = "";
		break;
	case UV_POLL: REPLACE_CALLBACK(poll, &((uv_poll_t *)handle)->poll_cb); break;
	case UV_UDP: REPLACE_CALLBACK(udp_recv, &((uv_udp_t *)handle)->recv_cb); break;
	case UV_IDLE: REPLACE_CALLBACK(idle, &((uv_idle_t *)handle)->idle_cb); break;
	case UV_CHECK: REPLACE_CALLBACK(check, &((uv_check_t *)handle)->check_cb); break;
	case UV_PREPARE: REPLACE_CALLBACK(prepare, &((uv_prepare_t *)handle)->prepare_cb); break;
	}
	return kind;
}

static uv_stream_t *get_stream(uv_handle_t *handle)
{
	return handle->type == UV_TCP || handle->type == UV_NAMED_PIPE || handle->type == UV_TTY ? (uv_stream_t *)handle : NULL;
}

/* Returns the next pending write in a public list of libuv; NULL: none. */
static uv_write_t *get_next_write(uv_stream_t *stream, const uv_write_t *last)
{
	void *const *head = (void *const *)&stream->write_queue, *const *at = last ? (void *const *)&last->queue : head;
	return *at == head || !*at ? NULL : (uv_write_t *)((char *)(uintptr_t)*at - offsetof(uv_write_t, queue));
}

bool weft__uv_has_requests(uv_handle_t *handle)
{
	uv_stream_t *stream = get_stream(handle);
	return stream && (stream->connect_req || get_next_write(stream, NULL));
}

static struct weft__uv_object *begin_older_request(struct weft__uv_object *stream, const void *request, enum weft_kind kind)
{
	struct weft__uv_object *object = weft__uv_object_of_request(stream->copy, request, stream->loop);
	if (object) {
		object->kind = (uint8_t)kind;
		object->by = stream->id;
		object->owner = weft__uv_tag_of(stream);
		object->since = stream->since;
		object->id = weft_pending_at(object->by, 0, kind, NULL, object->since, NULL);
		weft_still_awaits(stream->id, object->id);
	}
	return object;
}

/* The pending requests are found in the public struct of the stream. */
static void begin_older_requests(struct weft__uv_object *object, uv_stream_t *stream)
{
	unsigned left = 1000;
	uv_connect_t *connect = stream->connect_req;
	if (connect && begin_older_request(object, connect, WEFT_KIND_CONNECT)) {
		connect->cb = weft__uv_connect_slot_or_none(connect->cb);
		object->connects = true;
	}
	for (uv_write_t *write = get_next_write(stream, NULL); write && left > 0; write = get_next_write(stream, write), left--) {
		struct weft__uv_object *request = begin_older_request(object, write, WEFT_KIND_STREAM_WRITE);
		if (!request)
			break;
		write->cb = weft__uv_write_slot_or_none(write->cb);
		weft__uv_append_bytes(request, write->bufs + write->write_index, write->nbufs - write->write_index);
		weft__uv_record_label(request);
	}
}

void weft__uv_begin_older(struct weft__uv_copy *copy, uv_handle_t *handle)
{
	struct weft__uv_object *object = weft__uv_object_of_handle(copy, handle);
	if (!object)
		return;
	const char *label;
	object->kind = (uint8_t)replace_callbacks(object, handle, &label);
	object->by = WEFT_SYSTEM_ID;
	object->since = weft__hook_standby_since;
	object->id = weft_pending_at(object->by, 0, (enum weft_kind)object->kind, NULL, object->since, NULL);
	if (*label)
		append_kind_label(object, handle, label);
	weft__uv_record_label(object);
	if (object->reads)
		weft__uv_begin_older_read(object);
	uv_stream_t *stream = get_stream(handle);
	if (stream)
		begin_older_requests(object, stream);
	if (object->kind == WEFT_KIND_CONNECTION)
		weft__uv_attach_fd(object, handle);
}

/* ---- Closing ---- */

/* Returns whether the program closes the handle. */
static bool begin_close(struct weft__uv_copy *copy, const void *caller, const void *handle)
{
	bool is_recorded = weft__uv_should_record(copy, caller);
	struct weft__uv_object *object = is_recorded ? weft__uv_find_handle(handle) : NULL;
	if (object) {
		object->by = weft__hook_get_thread()->running;
		object->is_closing = true;
		/* libuv closes the descriptor at once, and the state of the request belongs to the descriptor. */
		if (object->id && (object->is_accepted || object->asks))
			weft__uv_question_end(object);
	}
	weft__uv_mark_loop_dirty();
	return is_recorded;
}

void weft__uv_close(struct weft__uv_copy *copy, const void *caller, uv_handle_t *handle, uv_close_cb cb)
{
	bool is_recorded = begin_close(copy, caller, handle);
	weft__uv_get_here()->nested_calls++;
	copy->real.uv_close(handle, is_recorded ? weft__uv_close_slot_or_none(cb) : cb);
	weft__uv_get_here()->nested_calls--;
}

int weft__uv_tcp_close_reset(struct weft__uv_copy *copy, const void *caller, uv_tcp_t *handle, uv_close_cb cb)
{
	bool is_recorded = begin_close(copy, caller, handle);
	return WEFT__UV_INSIDE(copy->real.uv_tcp_close_reset(handle, is_recorded ? weft__uv_close_slot_or_none(cb) : cb));
}

/* The object is freed before the callback, because the callback may free or reuse the handle's memory.  The callback has no
 * cause but uv_close(), so it must not hide that its loop spins: since libuv 1.45, a loop calls it between two timers of 0
 * ms. */
void weft__uv_close_called(uv_handle_t *handle, unsigned slot)
{
	uv_close_cb user = weft__uv_close_user(slot);
	struct weft__uv_object *object = weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	weft_id id = object ? object->id : 0;
	if (object) {
		weft__uv_end(object, object->by);
		weft__uv_object_free(object);
		if (user && id)
			weft_hook_record_running(id);
	}
	if (user) {
		WEFT__UV_FRAME frame = weft__uv_enter_callback(id ? id : weft__hook_get_thread()->running, 0);
		(void)frame;
		weft__hook_get_thread()->repeated++;
		user(handle);
	}
}

/* ---- Handles of a language's runtime ---- */

/* Makes the promise of a handle that only the runtime knows a part of the running loop, or of the thread before the loop
 * starts. */
static void fold_internal(struct weft__uv_object *object, const void *caller)
{
	const struct weft__uv_here *here = weft__uv_get_here();
	const weft_id loop = here->depth > 0 ? here->runs[here->depth - 1].id : 0;
	if (object && !object->id && weft_hook_is_internal(caller))
		object->part_of = loop ? loop : weft_hook_thread()->root;
}

/* Makes a part of the thread, or of a loop that has ended, a part of the running loop. */
static void move_part(struct weft__uv_object *object)
{
	const struct weft__uv_here *here = weft__uv_get_here();
	const weft_id loop = here->depth > 0 ? here->runs[here->depth - 1].id : 0;
	if (!object->part_of || !object->id || !loop || object->part_of == loop)
		return;
	weft_resolve(WEFT_SYSTEM_ID, object->id);
	object->part_of = loop;
	__atomic_store_n(&object->id, weft__uv_create_promise(object), __ATOMIC_RELAXED);
	weft__uv_record_label(object);
}

/* ---- Starting and stopping ---- */

#define HANDLE_INIT(name, parameters, arguments)                                                                                 \
	int weft__uv_##name##_init parameters                                                                                    \
	{                                                                                                                        \
		bool is_recorded = weft__uv_should_record(copy, caller);                                                         \
		int status = WEFT__UV_INSIDE(copy->real.uv_##name##_init arguments);                                             \
		if (status == 0 && is_recorded)                                                                                  \
			weft__uv_handle_create(copy, caller, handle);                                                            \
		return status;                                                                                                   \
	}
#define HANDLE_INIT_PARAMETERS(type) (struct weft__uv_copy * copy, const void *caller, uv_loop_t *loop, uv_##type##_t *handle)
HANDLE_INIT(timer, HANDLE_INIT_PARAMETERS(timer), (loop, handle))
HANDLE_INIT(idle, HANDLE_INIT_PARAMETERS(idle), (loop, handle))
HANDLE_INIT(check, HANDLE_INIT_PARAMETERS(check), (loop, handle))
HANDLE_INIT(prepare, HANDLE_INIT_PARAMETERS(prepare), (loop, handle))
HANDLE_INIT(signal, HANDLE_INIT_PARAMETERS(signal), (loop, handle))
HANDLE_INIT(fs_event, HANDLE_INIT_PARAMETERS(fs_event), (loop, handle))
HANDLE_INIT(fs_poll, HANDLE_INIT_PARAMETERS(fs_poll), (loop, handle))
HANDLE_INIT(
    poll, (struct weft__uv_copy * copy, const void *caller, uv_loop_t *loop, uv_poll_t *handle, int fd), (loop, handle, fd))

int weft__uv_poll_init_socket(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_poll_t *handle, uv_os_sock_t fd)
{
	bool is_recorded = weft__uv_should_record(copy, caller);
	int status = WEFT__UV_INSIDE(copy->real.uv_poll_init_socket(loop, handle, fd));
	if (status == 0 && is_recorded)
		weft__uv_handle_create(copy, caller, handle);
	return status;
}

/* Records that the handle starts for the purpose `what`.  Returns whether the handle's promise begins; its label may follow. */
static bool start_handle(struct weft__uv_object *object, enum weft_kind kind, const void *caller, uint64_t what)
{
	weft__uv_mark_loop_dirty();
	if (!object)
		return false;
	if (object->id && object->what != what) {
		/* In the handle's own callback the old promise ends together with the callback. */
		if (weft__uv_get_here()->actor == weft__uv_tag_of(object))
			object->id = 0;
		else
			weft__uv_end(object, weft__hook_get_thread()->running);
	}
	object->what = what;
	bool begins = weft__uv_begin(object, kind, caller);
	/* If a timer is always restarted before it fires, only its first restart is noted. */
	const bool is_timer_reset = kind == WEFT_KIND_TIMER && !object->is_restarted;
	if (!begins && (object->is_stopped || is_timer_reset))
		WEFT_NOTE(object->id, "started again");
	object->is_restarted = !begins;
	object->is_stopped = false;
	return begins;
}

static void stop_handle(const void *handle)
{
	struct weft__uv_object *object = weft__uv_find_handle(handle);
	weft__uv_mark_loop_dirty();
	if (!object || !object->id || object->is_stopped)
		return;
	object->is_stopped = true;
	WEFT_NOTE(object->id, "stopped");
}

#define HANDLE_STOP(name)                                                                                                        \
	int weft__uv_##name##_stop(struct weft__uv_copy *copy, const void *caller, uv_##name##_t *handle)                        \
	{                                                                                                                        \
		bool is_recorded = weft__uv_should_record(copy, caller),                                                         \
		     was_active = is_recorded && copy->real.uv_is_active((uv_handle_t *)handle);                                 \
		int status = WEFT__UV_INSIDE(copy->real.uv_##name##_stop(handle));                                               \
		if (was_active)                                                                                                  \
			stop_handle(handle);                                                                                     \
		return status;                                                                                                   \
	}
HANDLE_STOP(timer)
HANDLE_STOP(poll)
HANDLE_STOP(signal)
HANDLE_STOP(fs_event)
HANDLE_STOP(fs_poll)

/* ---- Timers of a language whose runtime has one handle for all of them ---- */

/* A timer of the program for which the runtime started its only handle.  Another timer that is due earlier may replace it. */
struct shared_timer {
	const uv_timer_t *handle;
	uint64_t due_ms, ms, what;
	struct weft_record_site *line;
};

enum { SHARED_TIMERS = 16 };
static struct {
	struct shared_timer known[SHARED_TIMERS];
	unsigned next;
} shared_timers_of_threads WEFT_HOOK_PER_THREAD;

#define shared_timers WEFT_HOOK_HERE(shared_timers_of_threads)

static struct shared_timer *add_shared_timer(const uv_timer_t *handle, uint64_t ms, uint64_t what)
{
	struct weft_record_site *line = weft__uv_find_line(true);
	struct shared_timer *timer = &shared_timers.known[shared_timers.next++ % SHARED_TIMERS];
	*timer = (struct shared_timer){handle, handle->timeout, ms, what ^ (uintptr_t)line << 8, line};
	return timer;
}

/* Returns the timer of the program for which the runtime starts the handle: a timer with this time, or the timer whose callback
 * has just started it again.  Returns NULL for a timer that was never the next one to fire. */
static struct shared_timer *find_shared_timer(const uv_timer_t *handle, const struct weft__uv_object *object)
{
	const uint64_t due_ms = handle->timeout;
	for (struct shared_timer *t = shared_timers.known; t < shared_timers.known + SHARED_TIMERS; t++)
		if (t->handle == handle && t->due_ms == due_ms)
			return t;
	for (struct shared_timer *t = shared_timers.known; t < shared_timers.known + SHARED_TIMERS; t++)
		if (t->handle == handle && t->what == object->what && t->due_ms + t->ms <= due_ms &&
		    due_ms <= handle->loop->time + t->ms) {
			t->due_ms = due_ms;
			return t;
		}
	return NULL;
}

static void start_shared_timer(
    struct weft__uv_object *object, const void *caller, const uv_timer_t *handle, uint64_t what, uint64_t ms)
{
	const bool is_of_code = !weft_hook_is_internal(caller);
	const struct shared_timer *timer = is_of_code ? add_shared_timer(handle, ms, what) : find_shared_timer(handle, object);
	object->site = NULL;
	object->line = timer ? timer->line : NULL;
	if (!start_handle(object, WEFT_KIND_TIMER, NULL, timer ? timer->what : 1))
		return;
	if (is_of_code)
		weft_hook_stack(object->id, caller);
	weft__uv_append_ms(object, timer ? timer->ms : ms);
	weft__uv_append(object, timer ? "" : " to the next timer");
	weft__uv_record_label(object);
	if (timer && ms < timer->ms && !object->is_restarted) { /* the timer is older than its promise */
		object->is_restarted = true;
		WEFT_NOTE(object->id, "started again");
	}
}

/* ---- Timers ---- */

/* Returns a hash of the callback and the magnitude of the time (within a factor of 2), because a timer that is restarted for the
 * rest of its time is the same timer. */
static uint64_t hash_timer_start(const void *function, uint64_t ms, uint64_t every_ms)
{
	uint64_t period = every_ms ? every_ms : ms, magnitude = period ? 64 - (uint64_t)__builtin_clzll(period) : 0;
	return (uint64_t)(uintptr_t)function << 8 | magnitude << 1 | (every_ms != 0);
}

/* Returns whether the timer has no delay.  If the callback of such a timer restarts the timer, the loop never sleeps. */
static bool has_no_delay(uint64_t what)
{
	return what && (what & 0xff) == 0;
}

/* Continues the promise of the timer whose callback runs, if both timers have no delay, the same callback and the same site, and
 * this has happened often without a sleep. */
static void continue_timer(struct weft__uv_object *object, const void *caller, uint64_t what)
{
	struct weft__uv_object *last = weft__uv_find(weft__uv_get_here()->actor);
	if (object->id || !has_no_delay(what) || !last || !last->id || last->what != what || last->site != weft__uv_site(caller))
		return;
	object->calls = last->calls;
	if (!weft_hook_is_spinning(&last->calls))
		return;
	object->kind = last->kind;
	object->by = last->by;
	object->since = last->since;
	object->site = last->site;
	object->awaited_by = last->awaited_by;
	object->label = last->label;
	object->what = what;
	object->owner = last->owner;
	object->is_restarted = true;
	object->id = last->id;
	last->owner = 0;
	__atomic_store_n(&last->id, 0, __ATOMIC_RELAXED);
}

int weft__uv_timer_start(
    struct weft__uv_copy *copy, const void *caller, uv_timer_t *handle, uv_timer_cb cb, uint64_t after_ms, uint64_t every_ms)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_timer_start(handle, cb, after_ms, every_ms);
	int status = WEFT__UV_INSIDE(copy->real.uv_timer_start(handle, cb ? weft__uv_timer_slot(cb) : NULL, after_ms, every_ms));
	struct weft__uv_object *object = status == 0 ? weft__uv_handle(copy, caller, handle) : NULL;
	const uint64_t what = hash_timer_start((void *)cb, after_ms, every_ms);
	if (object && weft_hook_name_callback("timer", (void *)cb)) {
		start_shared_timer(object, caller, handle, what, after_ms);
		return status;
	}
	fold_internal(object, caller);
	if (object)
		continue_timer(object, caller, what);
	if (object && start_handle(object, WEFT_KIND_TIMER, caller, what)) {
		weft__uv_append(object, every_ms ? "every " : "");
		weft__uv_append_ms(object, every_ms ? every_ms : after_ms);
		weft__uv_append_function(object, (void *)cb);
		weft__uv_record_label(object);
	}
	return status;
}

int weft__uv_timer_again(struct weft__uv_copy *copy, const void *caller, uv_timer_t *handle)
{
	bool is_recorded = weft__uv_should_record(copy, caller);
	int status = WEFT__UV_INSIDE(copy->real.uv_timer_again(handle));
	if (status == 0 && is_recorded && copy->real.uv_is_active((uv_handle_t *)handle)) {
		struct weft__uv_object *object = weft__uv_handle(copy, caller, handle);
		if (object && start_handle(object, WEFT_KIND_TIMER, caller, object ? object->what : 0)) {
			weft__uv_append(object, "again");
			weft__uv_record_label(object);
		}
	}
	return status;
}

void weft__uv_timer_called(uv_timer_t *handle, unsigned slot)
{
	struct weft__uv_object *object = weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	WEFT__UV_FRAME frame = weft__uv_enter_handle_callback(object, object && has_no_delay(object->what));
	(void)frame;
	weft__uv_mark_loop_dirty();
	weft__uv_timer_user(slot)(handle);
}

/* ---- Idle, check, prepare: called in each iteration ---- */

static void begin_repeating(struct weft__uv_object *object, const char *what, const void *function)
{
	const char *name = weft_hook_name_callback(what, function);
	if (object->id || !weft__uv_begin(object, WEFT_KIND_HANDLE, NULL))
		return;
	weft__uv_append(object, name ? name : what);
	weft__uv_append_function(object, name ? NULL : function);
	weft__uv_record_label(object);
}

static bool keeps_for_code(const char *what, const void *function)
{
	return what[0] == 'i' && weft_hook_name_callback(what, function);
}

/* A handle by which a language's runtime keeps the loop alive for code of the program begins at its start, at the line of that
 * code.  Other repeating handles of a language's runtime are internal. */
static void place_repeating(struct weft__uv_object *object, const char *what, const void *caller, const void *function)
{
	struct weft_record_site *line = object ? weft__uv_find_line(true) : NULL;
	if (!object)
		return;
	if (!keeps_for_code(what, function)) {
		if (!object->id)
			object->site = weft__uv_site(caller);
		fold_internal(object, caller);
		return;
	}
	if (object->id && line && line != object->line)
		weft__uv_end(object, weft__hook_get_thread()->running);
	object->site = NULL;
	object->line = line ? line : object->line;
	object->asker = weft__uv_question_note_asker(object);
	weft__uv_get_here()->keeper = weft__uv_tag_of(object);
	begin_repeating(object, what, function);
}

/* Returns the object to whose code the callback belongs.  If a callback of the runtime calls code of the program, this is the
 * handle by which the runtime keeps the loop alive for that code. */
static struct weft__uv_object *find_repeating(const void *handle, const char *what, const void *function)
{
	struct weft__uv_object *keeper =
	    what[0] != 'i' && weft_hook_name_callback(what, function) ? weft__uv_find(weft__uv_get_here()->keeper) : NULL;
	if (keeper && keeper->id && keeper->copy->real.uv_is_active((const uv_handle_t *)keeper->key))
		return keeper;
	return weft__uv_find_handle(handle);
}

/* Records only the first calls of a repeating handle while nothing else happens, so that a busy loop causes few events.  These
 * handles cannot be left out, because some runtimes do all of their work in them. */
static struct weft__uv_frame enter_repeating(const void *handle, const char *what, void *function)
{
	struct weft__uv_here *here = weft__uv_get_here();
	struct weft__uv_object *object = weft_is_on() ? find_repeating(handle, what, function) : NULL;
	if (!object)
		return weft__uv_enter_callback(weft__hook_get_thread()->running, here->actor);
	begin_repeating(object, what, function);
	move_part(object);
	weft__uv_own(object);
	/* An idle handle keeps the loop from sleeping. */
	if (weft_hook_count_repeat(&object->calls, object->id, what[0] == 'i'))
		weft_hook_record_running(object->id);
	return weft__uv_enter_callback(object->id, weft__uv_tag_of(object));
}

#define REPEATING_HANDLE(name)                                                                                                   \
	int weft__uv_##name##_start(struct weft__uv_copy *copy, const void *caller, uv_##name##_t *handle, uv_##name##_cb cb)    \
	{                                                                                                                        \
		if (!cb || !weft__uv_should_record(copy, caller))                                                                \
			return copy->real.uv_##name##_start(handle, cb);                                                         \
		place_repeating(weft__uv_handle(copy, caller, handle), #name, caller, (const void *)cb);                         \
		weft__uv_mark_loop_dirty();                                                                                      \
		return WEFT__UV_INSIDE(copy->real.uv_##name##_start(handle, weft__uv_##name##_slot(cb)));                        \
	}                                                                                                                        \
	int weft__uv_##name##_stop(struct weft__uv_copy *copy, const void *caller, uv_##name##_t *handle)                        \
	{                                                                                                                        \
		weft__uv_mark_loop_dirty();                                                                                      \
		return copy->real.uv_##name##_stop(handle);                                                                      \
	}                                                                                                                        \
	void weft__uv_##name##_called(uv_##name##_t *handle, unsigned slot)                                                      \
	{                                                                                                                        \
		uv_##name##_cb user = weft__uv_##name##_user(slot);                                                              \
		WEFT__UV_FRAME frame = enter_repeating(handle, #name, (void *)user);                                             \
		(void)frame;                                                                                                     \
		user(handle);                                                                                                    \
	}
REPEATING_HANDLE(idle)
REPEATING_HANDLE(check)
REPEATING_HANDLE(prepare)

/* ---- Async handles: wake a loop from other threads or signal handlers ---- */

int weft__uv_async_init(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_async_t *handle, uv_async_cb cb)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_async_init(loop, handle, cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_async_init(loop, handle, weft__uv_async_slot_or_none(cb)));
	if (status == 0) {
		struct weft__uv_object *object = weft__uv_object_of_handle(copy, handle);
		fold_internal(object, caller);
		if (weft__uv_begin(object, WEFT_KIND_CONDITION, caller)) {
			weft__uv_append(object, "async");
			weft__uv_append_function(object, (void *)cb);
			weft__uv_record_label(object);
		}
	}
	return status;
}

/* The function may run in a signal handler that has interrupted the recorder, so it allocates nothing and takes no lock. */
int weft__uv_async_send(struct weft__uv_copy *copy, const void *caller, uv_async_t *handle)
{
	struct weft__uv_object *object = weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	weft_id id = object ? __atomic_load_n(&object->id, __ATOMIC_RELAXED) : 0;
	if (id) {
		const bool is_own = weft__hook_get_thread()->running == id && object->owner_thread == weft__uv_get_here();
		__atomic_store_n(&object->is_untouched, is_own, __ATOMIC_RELAXED);
		if (!is_own || !weft_hook_is_spinning(&object->calls))
			weft_signal_only(weft_hook_current_promise(), id);
	}
	return copy->real.uv_async_send(handle);
}

void weft__uv_async_called(uv_async_t *handle, unsigned slot)
{
	uv_async_cb user = weft__uv_async_user(slot);
	struct weft__uv_object *object = user && weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	if (!user)
		return;
	if (object && object->id) {
		move_part(object);
		weft__uv_own(object);
		if (!__atomic_load_n(&object->is_untouched, __ATOMIC_RELAXED) ||
		    weft_hook_count_repeat(&object->calls, object->id, true))
			weft_hook_record_running(object->id);
	}
	WEFT__UV_FRAME frame = object && object->id
				   ? weft__uv_enter_callback(object->id, weft__uv_tag_of(object))
				   : weft__uv_enter_callback(weft__hook_get_thread()->running, weft__uv_get_here()->actor);
	(void)frame;
	user(handle);
}

/* ---- Descriptors, signals, file changes ---- */

int weft__uv_poll_start(struct weft__uv_copy *copy, const void *caller, uv_poll_t *handle, int events, uv_poll_cb cb)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_poll_start(handle, events, cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_poll_start(handle, events, weft__uv_poll_slot(cb)));
	struct weft__uv_object *object = status == 0 ? weft__uv_handle(copy, caller, handle) : NULL;
	struct weft_hook_label label = {0};
	uv_os_fd_t fd;
	const bool is_new = object && !object->id && copy->real.uv_fileno((const uv_handle_t *)handle, &fd) == 0;
	bool has_datagrams = false;
	const enum weft_kind kind =
	    is_new ? weft_hook_append_watched_fd(&label, fd, events & UV_READABLE, &has_datagrams) : WEFT_KIND_POLL;
	if (object && start_handle(object, kind, caller, 0)) {
		object->has_datagrams = has_datagrams;
		if (kind == WEFT_KIND_POLL)
			weft__uv_append(object, "poll ");
		weft__uv_append(object, label.text);
		weft__uv_record_label(object);
		if (kind == WEFT_KIND_CONNECTION)
			weft__uv_attach_fd(object, (const uv_handle_t *)handle);
	}
	return status;
}

void weft__uv_poll_called(uv_poll_t *handle, int status, int events, unsigned slot)
{
	struct weft__uv_object *object = weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	const weft__uv_tag tag = weft__uv_tag_of(object);
	if (object && !object->is_untouched)
		weft_hook_count_call(&object->calls);
	uv_os_fd_t fd = -1;
	const bool should_probe =
	    object && weft_hook_should_probe_fd(&object->calls) && object->copy->real.uv_fileno((uv_handle_t *)handle, &fd) == 0;
	const int before = should_probe ? weft_hook_probe_fd(fd) : 0;
	{
		WEFT__UV_FRAME frame = weft__uv_enter_handle_callback(object, object && object->is_untouched);
		(void)frame;
		weft__uv_poll_user(slot)(handle, status, events);
	}
	if (should_probe && (object = weft__uv_find(tag))) /* the callback may have freed the handle */
		object->is_untouched = weft_hook_is_fd_untouched(fd, events & UV_READABLE ? POLLIN : POLLOUT, before);
}

static void start_signal(struct weft__uv_copy *copy, const void *caller, const uv_signal_t *handle, int number)
{
	struct weft__uv_object *object = weft__uv_handle(copy, caller, handle);
	if (!object || !start_handle(object, WEFT_KIND_OS_SIGNAL, caller, (unsigned)number))
		return;
	append_signal(object, number);
	weft__uv_record_label(object);
}

#define SIGNAL_START(name)                                                                                                       \
	int weft__uv_signal_##name(                                                                                              \
	    struct weft__uv_copy *copy, const void *caller, uv_signal_t *handle, uv_signal_cb cb, int number)                    \
	{                                                                                                                        \
		if (!weft__uv_should_record(copy, caller))                                                                       \
			return copy->real.uv_signal_##name(handle, cb, number);                                                  \
		int status = WEFT__UV_INSIDE(copy->real.uv_signal_##name(handle, weft__uv_signal_slot(cb), number));             \
		if (status == 0)                                                                                                 \
			start_signal(copy, caller, handle, number);                                                              \
		return status;                                                                                                   \
	}
SIGNAL_START(start)
SIGNAL_START(start_oneshot)

void weft__uv_signal_called(uv_signal_t *handle, int number, unsigned slot)
{
	WEFT__UV_FRAME frame = weft__uv_enter_signalled_handle(handle);
	(void)frame;
	weft__uv_signal_user(slot)(handle, number);
}

static uint64_t hash_path(const char *path)
{
	uint64_t what = 0xcbf29ce484222325;
	for (; *path; path++)
		what = (what ^ (unsigned char)*path) * 0x100000001b3;
	return what;
}

int weft__uv_fs_event_start(
    struct weft__uv_copy *copy, const void *caller, uv_fs_event_t *handle, uv_fs_event_cb cb, const char *path, unsigned flags)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_fs_event_start(handle, cb, path, flags);
	int status = WEFT__UV_INSIDE(copy->real.uv_fs_event_start(handle, weft__uv_fs_event_slot(cb), path, flags));
	struct weft__uv_object *object = status == 0 ? weft__uv_handle(copy, caller, handle) : NULL;
	if (object && start_handle(object, WEFT_KIND_POLL, caller, hash_path(path))) {
		weft__uv_append(object, "watch ");
		weft__uv_append_path(object, path);
		weft__uv_record_label(object);
	}
	return status;
}

void weft__uv_fs_event_called(uv_fs_event_t *handle, const char *file, int events, int status, unsigned slot)
{
	WEFT__UV_FRAME frame = weft__uv_enter_signalled_handle(handle);
	(void)frame;
	weft__uv_fs_event_user(slot)(handle, file, events, status);
}

int weft__uv_fs_poll_start(
    struct weft__uv_copy *copy, const void *caller, uv_fs_poll_t *handle, uv_fs_poll_cb cb, const char *path, unsigned every_ms)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_fs_poll_start(handle, cb, path, every_ms);
	int status = WEFT__UV_INSIDE(copy->real.uv_fs_poll_start(handle, weft__uv_fs_poll_slot(cb), path, every_ms));
	struct weft__uv_object *object = status == 0 ? weft__uv_handle(copy, caller, handle) : NULL;
	if (object && start_handle(object, WEFT_KIND_POLL, caller, hash_path(path))) {
		weft__uv_append(object, "watch every ");
		weft__uv_append_ms(object, every_ms);
		weft__uv_append(object, " ");
		weft__uv_append_path(object, path);
		weft__uv_record_label(object);
	}
	return status;
}

void weft__uv_fs_poll_called(uv_fs_poll_t *handle, int status, const uv_stat_t *before, const uv_stat_t *now, unsigned slot)
{
	WEFT__UV_FRAME frame = weft__uv_enter_signalled_handle(handle);
	(void)frame;
	weft__uv_fs_poll_user(slot)(handle, status, before, now);
}

/* ---- Processes ---- */

static void label_process(struct weft__uv_object *object, const uv_process_options_t *options)
{
	if (!options->args || !options->args[0])
		weft__uv_append_path(object, options->file ? options->file : "?");
	for (char **argument = options->args; argument && *argument && object->label.length < WEFT_HOOK_LABEL_BYTES - 1;
	     argument++) {
		weft__uv_append(object, argument > options->args ? " " : "");
		weft__uv_append(object, *argument);
	}
	weft__uv_record_label(object);
}

/* Labels the parent's ends of the pipes to a child, as "stdout of sh". */
static void label_pipes(struct weft__uv_copy *copy, const void *caller, const uv_process_options_t *options)
{
	static const char *const names[] = {"stdin of ", "stdout of ", "stderr of "};
	const char *program = options->args && options->args[0] ? options->args[0] : options->file;
	const char *slash = program ? strrchr(program, '/') : NULL;
	for (int i = 0; i < options->stdio_count; i++) {
		if (!(options->stdio[i].flags & UV_CREATE_PIPE))
			continue;
		struct weft__uv_object *pipe = weft__uv_handle(copy, caller, options->stdio[i].data.stream);
		if (!weft__uv_begin(pipe, WEFT_KIND_CONNECTION, caller))
			continue;
		if (i < 3) {
			weft__uv_append(pipe, names[i]);
		} else {
			weft__uv_append(pipe, "fd ");
			weft__uv_append_number(pipe, (unsigned)i);
			weft__uv_append(pipe, " of ");
		}
		weft__uv_append(pipe, slash ? slash + 1 : program ? program : "?");
		weft__uv_record_label(pipe);
	}
}

int weft__uv_spawn(
    struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_process_t *handle, const uv_process_options_t *options)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_spawn(loop, handle, options);
	uv_process_options_t changed = *options;
	changed.exit_cb = weft__uv_exit_slot_or_none(options->exit_cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_spawn(loop, handle, &changed));
	struct weft__uv_object *object = weft__uv_object_of_handle(copy, handle);
	if (weft__uv_begin(object, WEFT_KIND_PROCESS, caller))
		label_process(object, options);
	if (status == 0) {
		label_pipes(copy, caller, options);
	} else if (object && object->id) {
		weft_id id = object->id;
		weft_fail(weft__hook_get_thread()->running, id, copy->real.uv_strerror(status));
		weft_read_later(weft__hook_get_thread()->running, id); /* the caller of the function gets the error status */
		object->id = 0;
		weft__uv_datagram_release(object->owner);
		object->owner = 0;
	}
	return status;
}

/* An exit status other than 0 is no failure, because many programs answer by their exit status. */
static void note_exit(struct weft__uv_object *object, int64_t status, int number)
{
	const char *name = number ? sigabbrev_np(number) : NULL;
	object->label.length = 0;
	weft__uv_append(object, number ? "killed by " : "exit status ");
	weft__uv_append(object, name ? "SIG" : number ? "signal " : "");
	if (name)
		weft__uv_append(object, name);
	else
		weft__uv_append_number(object, number ? (uint64_t)number : (uint64_t)status);
	weft_note(object->id, object->label.text);
}

void weft__uv_exit_called(uv_process_t *handle, int64_t status, int number, unsigned slot)
{
	uv_exit_cb user = weft__uv_exit_user(slot);
	struct weft__uv_object *object = weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	weft__uv_tag tag = weft__uv_tag_of(object);
	{
		if (object && object->id && (status || number))
			note_exit(object, status, number);
		WEFT__UV_FRAME frame = weft__uv_enter_signalled_handle(handle);
		(void)frame;
		if (user)
			user(handle, status, number);
		object = weft__uv_find(tag);
		if (object && object->id && weft_is_on())
			weft__uv_end(object, WEFT_SYSTEM_ID);
	}
}
