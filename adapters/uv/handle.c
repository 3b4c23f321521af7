/* handle.c: what lives on a loop until it is closed: timers, idle handles, asyncs, polls, signals, watchers, processes.
 *
 * A handle's promise begins when it is first used, not when it is initialised (many are never used), and ends when it is closed.
 * Stopped and started again for the same it stays one promise, with notes; for something else it becomes another: some runtimes
 * have one timer for all of theirs.  SPDX-License-Identifier: ISC */
#include <poll.h>
#include <stddef.h>
#include <string.h>

#include "adapters/uv/adapter.h"
#include "adapters/uv/slots.h"

void weft__uv_handle_init(struct weft__uv_copy *copy, const void *caller, const void *handle)
{
	struct weft__uv_thing *thing = weft__uv_thing_of_handle(copy, handle);
	if (thing)
		thing->site = weft__uv_site(caller);
}

struct weft__uv_thing *weft__uv_handle_unknown(struct weft__uv_copy *copy, const void *caller, const void *handle)
{
	struct weft__uv_thing *thing = weft__uv_thing_of_handle(copy, handle);
	if (thing)
		thing->site = weft__uv_site(caller);
	return thing;
}

static bool lives_in_datagram(enum weft_kind kind)
{
	return kind == WEFT_KIND_CONNECTION || kind == WEFT_KIND_PROCESS;
}

void weft__uv_begin_new(struct weft__uv_thing *thing, enum weft_kind kind, const void *caller)
{
	struct weft__uv_here *here = &weft__uv_here;
	thing->kind = (uint8_t)kind;
	thing->by = weft__hook_thread.running;
	if (caller)
		thing->site = weft__uv_site(caller);
	thing->id = weft_create_at(weft__hook_thread.running, kind, thing->site);
	if (caller)
		weft_hook_stack(thing->id, caller);
	thing->since = weft_is_on() ? weft__stream->last : 0;
	thing->kept = 0;
	thing->label.length = 0;
	struct weft__uv_thing *actor = weft__uv_find(here->actor);
	thing->owner = 0;
	if (actor && actor->is_datagram && lives_in_datagram(kind)) {
		thing->owner = here->actor;
		actor->children++;
		weft_await(actor->id, thing->id);
	}
}

void weft__uv_drop_input(struct weft__uv_thing *thing)
{
	if (thing->input) {
		weft_resolve(weft__hook_thread.running, thing->input);
		thing->input = 0;
	}
}

void weft__uv_end(struct weft__uv_thing *thing, weft_id by)
{
	weft__uv_dirty();
	weft__uv_drop_input(thing);
	if (!thing->id)
		return;
	weft_hook_carries_no_more(thing->fd, thing->id);
	weft_resolve(by, thing->id);
	__atomic_store_n(&thing->id, 0, __ATOMIC_RELAXED);
	weft__uv_datagram_release(thing->owner);
	thing->owner = 0;
}

/* What is known of a handle by its type: its kind, and the begin of its label, which what its descriptor is follows where it ends
 * with a blank. */
static enum weft_kind kind_of(const uv_handle_t *handle, const char **label)
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

static void put_what(struct weft__uv_thing *thing, const uv_handle_t *handle, const char *label)
{
	weft__uv_put(thing, label);
	if (label[strlen(label) - 1] == ' ')
		weft__uv_put_handle(thing, handle);
}

void weft__uv_begin_unseen(struct weft__uv_thing *thing, const uv_handle_t *handle)
{
	const char *label;
	const enum weft_kind kind = kind_of(handle, &label);
	if (!weft__uv_begin(thing, kind, NULL))
		return;
	put_what(thing, handle, label);
	weft__uv_say(thing);
	if (kind == WEFT_KIND_CONNECTION)
		weft__uv_carries(thing, handle);
}

/* ---- Handles that are older than the recording ---- */

/* The callback at *callback becomes its slot's: libuv's public structs have it, and this is the OS thread that it is called on.
 * Returns what the program gave. */
#define TAKE_OVER(name, callback) take_over(&weft__uv_##name##_pool, (void **)(void *)(callback))

static void *take_over(struct weft__uv_pool *pool, void **callback)
{
	void *given = *callback, *slot = given ? weft__uv_slot(pool, given) : NULL;
	const uintptr_t at = (uintptr_t)slot - (uintptr_t)pool->code;
	*callback = slot;
	return slot && at < WEFT__UV_SLOTS * WEFT__UV_SLOT_BYTES ? pool->user[at / WEFT__UV_SLOT_BYTES] : given;
}

static void put_signal(struct weft__uv_thing *thing, int number)
{
	const char *name = sigabbrev_np(number);
	weft__uv_put(thing, name ? "SIG" : "signal ");
	if (name)
		weft__uv_put(thing, name);
	else
		weft__uv_put_number(thing, (unsigned)number);
}

/* How long a timer that comes once was set for is not known any longer. */
static void put_timer(struct weft__uv_thing *thing, const uv_timer_t *timer, const void *function)
{
	weft__uv_put(thing, timer->repeat ? "every " : "timer");
	if (timer->repeat)
		weft__uv_put_ms(thing, timer->repeat);
	weft__uv_put_function(thing, function);
}

/* Its callbacks, and the rest of its label. */
static enum weft_kind take_stream(struct weft__uv_thing *thing, uv_stream_t *stream, enum weft_kind kind, const char **label)
{
	thing->reads = TAKE_OVER(read, &stream->read_cb) != NULL;
	if (TAKE_OVER(connection, &stream->connection_cb)) {
		*label = "listen ";
		return WEFT_KIND_LISTEN;
	}
	weft__uv_put_handle(thing, (uv_handle_t *)stream);
	*label = "";
	return kind;
}

static enum weft_kind take_handle(struct weft__uv_thing *thing, uv_handle_t *handle, const char **label)
{
	const enum weft_kind kind = kind_of(handle, label);
	switch ((int)handle->type) {
	case UV_TCP:
	case UV_NAMED_PIPE:
	case UV_TTY: return take_stream(thing, (uv_stream_t *)handle, kind, label);
	case UV_TIMER:
		put_timer(thing, (uv_timer_t *)handle, TAKE_OVER(timer, &((uv_timer_t *)handle)->timer_cb));
		*label = "";
		break;
	case UV_SIGNAL:
		TAKE_OVER(signal, &((uv_signal_t *)handle)->signal_cb);
		put_signal(thing, ((uv_signal_t *)handle)->signum);
		*label = "";
		break;
	case UV_ASYNC:
		weft__uv_put(thing, *label);
		weft__uv_put_function(thing, TAKE_OVER(async, &((uv_async_t *)handle)->async_cb));
		*label = "";
		break;
	case UV_PROCESS:
		TAKE_OVER(exit, &((uv_process_t *)handle)->exit_cb);
		weft__uv_put(thing, "process ");
		weft__uv_put_number(thing, (unsigned)((uv_process_t *)handle)->pid);
		*label = "";
		break;
	case UV_FS_EVENT:
		TAKE_OVER(fs_event, &((uv_fs_event_t *)handle)->cb);
		weft__uv_put(thing, "watch ");
		weft__uv_put_path(thing, ((uv_fs_event_t *)handle)->path ? ((uv_fs_event_t *)handle)->path : "?");
		*label = "";
		break;
	case UV_POLL: TAKE_OVER(poll, &((uv_poll_t *)handle)->poll_cb); break;
	case UV_UDP: TAKE_OVER(udp_recv, &((uv_udp_t *)handle)->recv_cb); break;
	case UV_IDLE: TAKE_OVER(idle, &((uv_idle_t *)handle)->idle_cb); break;
	case UV_CHECK: TAKE_OVER(check, &((uv_check_t *)handle)->check_cb); break;
	case UV_PREPARE: TAKE_OVER(prepare, &((uv_prepare_t *)handle)->prepare_cb); break;
	}
	return kind;
}

static uv_stream_t *stream_of(uv_handle_t *handle)
{
	return handle->type == UV_TCP || handle->type == UV_NAMED_PIPE || handle->type == UV_TTY ? (uv_stream_t *)handle : NULL;
}

/* libuv's list of what is to be written, by its public structs; NULL: no more. */
static uv_write_t *next_write(uv_stream_t *stream, const uv_write_t *last)
{
	void *const *head = (void *const *)&stream->write_queue, *const *at = last ? (void *const *)&last->queue : head;
	return *at == head || !*at ? NULL : (uv_write_t *)((char *)(uintptr_t)*at - offsetof(uv_write_t, queue));
}

bool weft__uv_has_requests(uv_handle_t *handle)
{
	uv_stream_t *stream = stream_of(handle);
	return stream && (stream->connect_req || next_write(stream, NULL));
}

static struct weft__uv_thing *older_request(struct weft__uv_thing *stream, const void *request, enum weft_kind kind)
{
	struct weft__uv_thing *thing = weft__uv_thing_of_request(stream->copy, request, stream->loop);
	if (thing) {
		thing->kind = (uint8_t)kind;
		thing->by = stream->id;
		thing->owner = weft__uv_tag_of(stream);
		thing->since = stream->since;
		thing->id = weft_pending_at(thing->by, 0, kind, NULL, thing->since, NULL);
		weft_still_awaits(stream->id, thing->id);
	}
	return thing;
}

/* What libuv was asked to do with a stream stands in that. */
static void begin_older_requests(struct weft__uv_thing *thing, uv_stream_t *stream)
{
	unsigned left = 1000;
	uv_connect_t *connect = stream->connect_req;
	if (connect && older_request(thing, connect, WEFT_KIND_CONNECT)) {
		connect->cb = weft__uv_connect_slot_or_none(connect->cb);
		thing->connects = true;
	}
	for (uv_write_t *write = next_write(stream, NULL); write && left > 0; write = next_write(stream, write), left--) {
		struct weft__uv_thing *request = older_request(thing, write, WEFT_KIND_STREAM_WRITE);
		if (!request)
			break;
		write->cb = weft__uv_write_slot_or_none(write->cb);
		weft__uv_put_bytes(request, write->bufs + write->write_index, write->nbufs - write->write_index);
		weft__uv_say(request);
	}
}

void weft__uv_begin_older(struct weft__uv_copy *copy, uv_handle_t *handle)
{
	struct weft__uv_thing *thing = weft__uv_thing_of_handle(copy, handle);
	if (!thing)
		return;
	const char *label;
	thing->kind = (uint8_t)take_handle(thing, handle, &label);
	thing->by = WEFT_SYSTEM_ID;
	thing->since = weft__hook_since;
	thing->id = weft_pending_at(thing->by, 0, (enum weft_kind)thing->kind, NULL, thing->since, NULL);
	if (*label)
		put_what(thing, handle, label);
	weft__uv_say(thing);
	if (thing->reads)
		weft__uv_reads_already(thing);
	uv_stream_t *stream = stream_of(handle);
	if (stream)
		begin_older_requests(thing, stream);
	if (thing->kind == WEFT_KIND_CONNECTION)
		weft__uv_carries(thing, handle);
}

/* ---- The end ---- */

/* Whether it is the program that closes it. */
static bool closes(struct weft__uv_copy *copy, const void *caller, const void *handle)
{
	bool taken = weft__uv_takes(copy, caller);
	struct weft__uv_thing *thing = taken ? weft__uv_find_handle(handle) : NULL;
	if (thing) {
		thing->by = weft__hook_thread.running;
		thing->is_closing = true;
	}
	weft__uv_dirty();
	return taken;
}

void weft__uv_close(struct weft__uv_copy *copy, const void *caller, uv_handle_t *handle, uv_close_cb cb)
{
	bool taken = closes(copy, caller, handle);
	weft__uv_here.inside++;
	copy->real.uv_close(handle, taken ? weft__uv_close_slot_or_none(cb) : cb);
	weft__uv_here.inside--;
}

int weft__uv_tcp_close_reset(struct weft__uv_copy *copy, const void *caller, uv_tcp_t *handle, uv_close_cb cb)
{
	bool taken = closes(copy, caller, handle);
	return WEFT__UV_INSIDE(copy->real.uv_tcp_close_reset(handle, taken ? weft__uv_close_slot_or_none(cb) : cb));
}

/* The thing goes before the callback, which may free the memory, or make another handle of it. */
void weft__uv_close_called(uv_handle_t *handle, unsigned slot)
{
	uv_close_cb user = weft__uv_close_user(slot);
	struct weft__uv_thing *thing = weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	weft_id id = thing ? thing->id : 0;
	if (thing) {
		weft__uv_end(thing, thing->by);
		weft__uv_thing_free(thing);
		if (user && id)
			weft_hook_show(id);
	}
	if (user) {
		WEFT__UV_FRAME frame = weft__uv_enter(id ? id : weft__hook_thread.running, 0);
		(void)frame;
		user(handle);
	}
}

/* ---- All that is alike ---- */

#define INIT(name, parameters, arguments)                                                                                        \
	int weft__uv_##name##_init parameters                                                                                    \
	{                                                                                                                        \
		bool taken = weft__uv_takes(copy, caller);                                                                       \
		int status = WEFT__UV_INSIDE(copy->real.uv_##name##_init arguments);                                             \
		if (status == 0 && taken)                                                                                        \
			weft__uv_handle_init(copy, caller, handle);                                                              \
		return status;                                                                                                   \
	}
#define INIT_OF(type) (struct weft__uv_copy * copy, const void *caller, uv_loop_t *loop, uv_##type##_t *handle)
INIT(timer, INIT_OF(timer), (loop, handle))
INIT(idle, INIT_OF(idle), (loop, handle))
INIT(check, INIT_OF(check), (loop, handle))
INIT(prepare, INIT_OF(prepare), (loop, handle))
INIT(signal, INIT_OF(signal), (loop, handle))
INIT(fs_event, INIT_OF(fs_event), (loop, handle))
INIT(fs_poll, INIT_OF(fs_poll), (loop, handle))
INIT(poll, (struct weft__uv_copy * copy, const void *caller, uv_loop_t *loop, uv_poll_t *handle, int fd), (loop, handle, fd))

int weft__uv_poll_init_socket(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_poll_t *handle, uv_os_sock_t fd)
{
	bool taken = weft__uv_takes(copy, caller);
	int status = WEFT__UV_INSIDE(copy->real.uv_poll_init_socket(loop, handle, fd));
	if (status == 0 && taken)
		weft__uv_handle_init(copy, caller, handle);
	return status;
}

/* The handle works again, for `what`: its promise begins, to be labelled, or goes on. */
static bool starts(struct weft__uv_thing *thing, enum weft_kind kind, const void *caller, uint64_t what)
{
	weft__uv_dirty();
	if (!thing)
		return false;
	if (thing->id && thing->what != what) {
		/* In its own callback the promise ends with that. */
		if (weft__uv_here.actor == weft__uv_tag_of(thing))
			thing->id = 0;
		else
			weft__uv_end(thing, weft__hook_thread.running);
	}
	thing->what = what;
	bool begins = weft__uv_begin(thing, kind, caller);
	/* Of a timer that is always set anew before it comes, once is enough. */
	const bool is_set_anew = kind == WEFT_KIND_TIMER && !thing->is_used_again;
	if (!begins && (thing->is_stopped || is_set_anew))
		WEFT_NOTE(thing->id, "started again");
	thing->is_used_again = !begins;
	thing->is_stopped = false;
	return begins;
}

static void stops(const void *handle)
{
	struct weft__uv_thing *thing = weft__uv_find_handle(handle);
	weft__uv_dirty();
	if (!thing || !thing->id || thing->is_stopped)
		return;
	thing->is_stopped = true;
	WEFT_NOTE(thing->id, "stopped");
}

#define STOP(name)                                                                                                               \
	int weft__uv_##name##_stop(struct weft__uv_copy *copy, const void *caller, uv_##name##_t *handle)                        \
	{                                                                                                                        \
		bool taken = weft__uv_takes(copy, caller), worked = taken && copy->real.uv_is_active((uv_handle_t *)handle);     \
		int status = WEFT__UV_INSIDE(copy->real.uv_##name##_stop(handle));                                               \
		if (worked)                                                                                                      \
			stops(handle);                                                                                           \
		return status;                                                                                                   \
	}
STOP(timer)
STOP(poll)
STOP(signal)
STOP(fs_event)
STOP(fs_poll)

/* ---- Timers ---- */

/* The callback and about how long, within twice of it: one that is armed anew for the rest of a time is the same timer. */
static uint64_t timer_what(const void *function, uint64_t ms, uint64_t every_ms)
{
	uint64_t period = every_ms ? every_ms : ms, magnitude = period ? 64 - (uint64_t)__builtin_clzll(period) : 0;
	return (uint64_t)(uintptr_t)function << 8 | magnitude << 1 | (every_ms != 0);
}

/* What starts it anew in its callback never lets the loop sleep. */
static bool is_without_time(uint64_t what)
{
	return what && (what & 0xff) == 0;
}

/* A timer without a time that is started, at the same place for the same callback, where another such is called, goes on with the
 * promise of that one, once this was often without a sleep. */
static void goes_on(struct weft__uv_thing *thing, const void *caller, uint64_t what)
{
	struct weft__uv_thing *last = weft__uv_find(weft__uv_here.actor);
	if (thing->id || !is_without_time(what) || !last || !last->id || last->what != what ||
	    last->site != weft__uv_site(caller))
		return;
	thing->calls = last->calls;
	if (!weft_hook_is_often(&last->calls))
		return;
	thing->kind = last->kind;
	thing->by = last->by;
	thing->since = last->since;
	thing->site = last->site;
	thing->kept = last->kept;
	thing->label = last->label;
	thing->what = what;
	thing->owner = last->owner;
	thing->is_used_again = true;
	thing->id = last->id;
	last->owner = 0;
	__atomic_store_n(&last->id, 0, __ATOMIC_RELAXED);
}

int weft__uv_timer_start(
    struct weft__uv_copy *copy, const void *caller, uv_timer_t *handle, uv_timer_cb cb, uint64_t after_ms, uint64_t every_ms)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_timer_start(handle, cb, after_ms, every_ms);
	int status = WEFT__UV_INSIDE(copy->real.uv_timer_start(handle, cb ? weft__uv_timer_slot(cb) : NULL, after_ms, every_ms));
	struct weft__uv_thing *thing = status == 0 ? weft__uv_handle(copy, caller, handle) : NULL;
	const uint64_t what = timer_what((void *)cb, after_ms, every_ms);
	if (thing)
		goes_on(thing, caller, what);
	if (thing && starts(thing, WEFT_KIND_TIMER, caller, what)) {
		weft__uv_put(thing, every_ms ? "every " : "");
		weft__uv_put_ms(thing, every_ms ? every_ms : after_ms);
		weft__uv_put_function(thing, (void *)cb);
		weft__uv_say(thing);
	}
	return status;
}

int weft__uv_timer_again(struct weft__uv_copy *copy, const void *caller, uv_timer_t *handle)
{
	bool taken = weft__uv_takes(copy, caller);
	int status = WEFT__UV_INSIDE(copy->real.uv_timer_again(handle));
	if (status == 0 && taken && copy->real.uv_is_active((uv_handle_t *)handle)) {
		struct weft__uv_thing *thing = weft__uv_handle(copy, caller, handle);
		if (thing && starts(thing, WEFT_KIND_TIMER, caller, thing ? thing->what : 0)) {
			weft__uv_put(thing, "again");
			weft__uv_say(thing);
		}
	}
	return status;
}

void weft__uv_timer_called(uv_timer_t *handle, unsigned slot)
{
	struct weft__uv_thing *thing = weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	WEFT__UV_FRAME frame = weft__uv_enter_called(thing, thing && is_without_time(thing->what));
	(void)frame;
	weft__uv_dirty();
	weft__uv_timer_user(slot)(handle);
}

/* ---- Idle, check, prepare: called once a turn, whether anything happened or not ---- */

/* Not told for ever while nothing but such handles runs: a loop that spins costs nothing.  To leave them out would be wrong: some
 * runtimes do all their work in one. */
static struct weft__uv_frame enter_quiet(const void *handle, const char *what, void *function)
{
	struct weft__uv_here *here = &weft__uv_here;
	struct weft__uv_thing *thing = weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	if (!thing)
		return weft__uv_enter(weft__hook_thread.running, here->actor);
	if (!thing->id && weft__uv_begin(thing, WEFT_KIND_HANDLE, NULL)) {
		weft__uv_put(thing, what);
		weft__uv_put_function(thing, function);
		weft__uv_say(thing);
	}
	thing->home = here;
	/* An idle handle keeps the loop from sleeping; the others are called where it turns. */
	if (weft_hook_called(&thing->calls, thing->id, what[0] == 'i'))
		weft_hook_show(thing->id);
	return weft__uv_enter(thing->id, weft__uv_tag_of(thing));
}

#define QUIET(name)                                                                                                              \
	int weft__uv_##name##_start(struct weft__uv_copy *copy, const void *caller, uv_##name##_t *handle, uv_##name##_cb cb)    \
	{                                                                                                                        \
		if (!cb || !weft__uv_takes(copy, caller))                                                                        \
			return copy->real.uv_##name##_start(handle, cb);                                                         \
		struct weft__uv_thing *thing = weft__uv_handle(copy, caller, handle);                                            \
		if (thing && !thing->id)                                                                                         \
			thing->site = weft__uv_site(caller);                                                                     \
		weft__uv_dirty();                                                                                                \
		return WEFT__UV_INSIDE(copy->real.uv_##name##_start(handle, weft__uv_##name##_slot(cb)));                        \
	}                                                                                                                        \
	int weft__uv_##name##_stop(struct weft__uv_copy *copy, const void *caller, uv_##name##_t *handle)                        \
	{                                                                                                                        \
		weft__uv_dirty();                                                                                                \
		return copy->real.uv_##name##_stop(handle);                                                                      \
	}                                                                                                                        \
	void weft__uv_##name##_called(uv_##name##_t *handle, unsigned slot)                                                      \
	{                                                                                                                        \
		uv_##name##_cb user = weft__uv_##name##_user(slot);                                                              \
		WEFT__UV_FRAME frame = enter_quiet(handle, #name, (void *)user);                                                 \
		(void)frame;                                                                                                     \
		user(handle);                                                                                                    \
	}
QUIET(idle)
QUIET(check)
QUIET(prepare)

/* ---- Async: the way into a loop from another OS thread, or from a signal handler ---- */

int weft__uv_async_init(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_async_t *handle, uv_async_cb cb)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_async_init(loop, handle, cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_async_init(loop, handle, weft__uv_async_slot_or_none(cb)));
	if (status == 0) {
		struct weft__uv_thing *thing = weft__uv_thing_of_handle(copy, handle);
		if (weft__uv_begin(thing, WEFT_KIND_CONDITION, caller)) {
			weft__uv_put(thing, "async");
			weft__uv_put_function(thing, (void *)cb);
			weft__uv_say(thing);
		}
	}
	return status;
}

/* A signal handler may call it anywhere, in the recorder too: nothing here is made, or waits. */
int weft__uv_async_send(struct weft__uv_copy *copy, const void *caller, uv_async_t *handle)
{
	struct weft__uv_thing *thing = weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	weft_id id = thing ? __atomic_load_n(&thing->id, __ATOMIC_RELAXED) : 0;
	if (id) {
		const bool is_own = weft__hook_thread.running == id && thing->home == &weft__uv_here;
		__atomic_store_n(&thing->is_untouched, is_own, __ATOMIC_RELAXED);
		if (!is_own || !weft_hook_is_often(&thing->calls))
			weft_signal_only(weft_hook_sender(), id);
	}
	return copy->real.uv_async_send(handle);
}

void weft__uv_async_called(uv_async_t *handle, unsigned slot)
{
	uv_async_cb user = weft__uv_async_user(slot);
	struct weft__uv_thing *thing = user && weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	if (!user)
		return;
	if (thing && thing->id) {
		thing->home = &weft__uv_here;
		if (!__atomic_load_n(&thing->is_untouched, __ATOMIC_RELAXED) || weft_hook_called(&thing->calls, thing->id, true))
			weft_hook_show(thing->id);
	}
	WEFT__UV_FRAME frame = thing && thing->id ? weft__uv_enter(thing->id, weft__uv_tag_of(thing))
						  : weft__uv_enter(weft__hook_thread.running, weft__uv_here.actor);
	(void)frame;
	user(handle);
}

/* ---- Descriptors, signals, files that change ---- */

int weft__uv_poll_start(struct weft__uv_copy *copy, const void *caller, uv_poll_t *handle, int events, uv_poll_cb cb)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_poll_start(handle, events, cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_poll_start(handle, events, weft__uv_poll_slot(cb)));
	struct weft__uv_thing *thing = status == 0 ? weft__uv_handle(copy, caller, handle) : NULL;
	struct weft_hook_label label = {0};
	uv_os_fd_t fd;
	const bool is_new = thing && !thing->id && copy->real.uv_fileno((const uv_handle_t *)handle, &fd) == 0;
	bool has_datagrams = false;
	const enum weft_kind kind =
	    is_new ? weft_hook_put_watched(&label, fd, events & UV_READABLE, &has_datagrams) : WEFT_KIND_POLL;
	if (thing && starts(thing, kind, caller, 0)) {
		thing->has_datagrams = has_datagrams;
		if (kind == WEFT_KIND_POLL)
			weft__uv_put(thing, "poll ");
		weft__uv_put(thing, label.text);
		weft__uv_say(thing);
		if (kind == WEFT_KIND_CONNECTION)
			weft__uv_carries(thing, (const uv_handle_t *)handle);
	}
	return status;
}

void weft__uv_poll_called(uv_poll_t *handle, int status, int events, unsigned slot)
{
	struct weft__uv_thing *thing = weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	const weft__uv_tag tag = weft__uv_tag_of(thing);
	if (thing && !thing->is_untouched)
		weft_hook_count(&thing->calls);
	uv_os_fd_t fd = -1;
	const bool looks =
	    thing && weft_hook_looks(&thing->calls) && thing->copy->real.uv_fileno((uv_handle_t *)handle, &fd) == 0;
	const int before = looks ? weft_hook_waiting(fd) : 0;
	{
		WEFT__UV_FRAME frame = weft__uv_enter_called(thing, thing && thing->is_untouched);
		(void)frame;
		weft__uv_poll_user(slot)(handle, status, events);
	}
	if (looks && (thing = weft__uv_find(tag))) /* the handle itself may be gone */
		thing->is_untouched = weft_hook_is_untouched(fd, events & UV_READABLE ? POLLIN : POLLOUT, before);
}

static void signal_starts(struct weft__uv_copy *copy, const void *caller, const uv_signal_t *handle, int number)
{
	struct weft__uv_thing *thing = weft__uv_handle(copy, caller, handle);
	if (!thing || !starts(thing, WEFT_KIND_OS_SIGNAL, caller, (unsigned)number))
		return;
	put_signal(thing, number);
	weft__uv_say(thing);
}

#define SIGNAL_START(name)                                                                                                       \
	int weft__uv_signal_##name(                                                                                              \
	    struct weft__uv_copy *copy, const void *caller, uv_signal_t *handle, uv_signal_cb cb, int number)                    \
	{                                                                                                                        \
		if (!weft__uv_takes(copy, caller))                                                                               \
			return copy->real.uv_signal_##name(handle, cb, number);                                                  \
		int status = WEFT__UV_INSIDE(copy->real.uv_signal_##name(handle, weft__uv_signal_slot(cb), number));             \
		if (status == 0)                                                                                                 \
			signal_starts(copy, caller, handle, number);                                                             \
		return status;                                                                                                   \
	}
SIGNAL_START(start)
SIGNAL_START(start_oneshot)

void weft__uv_signal_called(uv_signal_t *handle, int number, unsigned slot)
{
	WEFT__UV_FRAME frame = weft__uv_enter_signalled(handle);
	(void)frame;
	weft__uv_signal_user(slot)(handle, number);
}

static uint64_t path_what(const char *path)
{
	uint64_t what = 0xcbf29ce484222325;
	for (; *path; path++)
		what = (what ^ (unsigned char)*path) * 0x100000001b3;
	return what;
}

int weft__uv_fs_event_start(
    struct weft__uv_copy *copy, const void *caller, uv_fs_event_t *handle, uv_fs_event_cb cb, const char *path, unsigned flags)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_fs_event_start(handle, cb, path, flags);
	int status = WEFT__UV_INSIDE(copy->real.uv_fs_event_start(handle, weft__uv_fs_event_slot(cb), path, flags));
	struct weft__uv_thing *thing = status == 0 ? weft__uv_handle(copy, caller, handle) : NULL;
	if (thing && starts(thing, WEFT_KIND_POLL, caller, path_what(path))) {
		weft__uv_put(thing, "watch ");
		weft__uv_put_path(thing, path);
		weft__uv_say(thing);
	}
	return status;
}

void weft__uv_fs_event_called(uv_fs_event_t *handle, const char *file, int events, int status, unsigned slot)
{
	WEFT__UV_FRAME frame = weft__uv_enter_signalled(handle);
	(void)frame;
	weft__uv_fs_event_user(slot)(handle, file, events, status);
}

int weft__uv_fs_poll_start(
    struct weft__uv_copy *copy, const void *caller, uv_fs_poll_t *handle, uv_fs_poll_cb cb, const char *path, unsigned every_ms)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_fs_poll_start(handle, cb, path, every_ms);
	int status = WEFT__UV_INSIDE(copy->real.uv_fs_poll_start(handle, weft__uv_fs_poll_slot(cb), path, every_ms));
	struct weft__uv_thing *thing = status == 0 ? weft__uv_handle(copy, caller, handle) : NULL;
	if (thing && starts(thing, WEFT_KIND_POLL, caller, path_what(path))) {
		weft__uv_put(thing, "watch every ");
		weft__uv_put_ms(thing, every_ms);
		weft__uv_put(thing, " ");
		weft__uv_put_path(thing, path);
		weft__uv_say(thing);
	}
	return status;
}

void weft__uv_fs_poll_called(uv_fs_poll_t *handle, int status, const uv_stat_t *before, const uv_stat_t *now, unsigned slot)
{
	WEFT__UV_FRAME frame = weft__uv_enter_signalled(handle);
	(void)frame;
	weft__uv_fs_poll_user(slot)(handle, status, before, now);
}

/* ---- Processes ---- */

static void label_process(struct weft__uv_thing *thing, const uv_process_options_t *options)
{
	if (!options->args || !options->args[0])
		weft__uv_put_path(thing, options->file ? options->file : "?");
	for (char **argument = options->args; argument && *argument && thing->label.length < WEFT_HOOK_LABEL - 1; argument++) {
		weft__uv_put(thing, argument > options->args ? " " : "");
		weft__uv_put(thing, *argument);
	}
	weft__uv_say(thing);
}

/* The ends of its pipes that stay here: "stdout of sh". */
static void name_pipes(struct weft__uv_copy *copy, const void *caller, const uv_process_options_t *options)
{
	static const char *const names[] = {"stdin of ", "stdout of ", "stderr of "};
	const char *program = options->args && options->args[0] ? options->args[0] : options->file;
	const char *slash = program ? strrchr(program, '/') : NULL;
	for (int i = 0; i < options->stdio_count; i++) {
		if (!(options->stdio[i].flags & UV_CREATE_PIPE))
			continue;
		struct weft__uv_thing *pipe = weft__uv_handle(copy, caller, options->stdio[i].data.stream);
		if (!weft__uv_begin(pipe, WEFT_KIND_CONNECTION, caller))
			continue;
		if (i < 3) {
			weft__uv_put(pipe, names[i]);
		} else {
			weft__uv_put(pipe, "fd ");
			weft__uv_put_number(pipe, (unsigned)i);
			weft__uv_put(pipe, " of ");
		}
		weft__uv_put(pipe, slash ? slash + 1 : program ? program : "?");
		weft__uv_say(pipe);
	}
}

int weft__uv_spawn(
    struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_process_t *handle, const uv_process_options_t *options)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_spawn(loop, handle, options);
	uv_process_options_t changed = *options;
	changed.exit_cb = weft__uv_exit_slot_or_none(options->exit_cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_spawn(loop, handle, &changed));
	struct weft__uv_thing *thing = weft__uv_thing_of_handle(copy, handle);
	if (weft__uv_begin(thing, WEFT_KIND_PROCESS, caller))
		label_process(thing, options);
	if (status == 0) {
		name_pipes(copy, caller, options);
	} else if (thing && thing->id) {
		weft_id id = thing->id;
		weft_fail(weft__hook_thread.running, id, copy->real.uv_strerror(status));
		weft_read_later(weft__hook_thread.running, id); /* the caller has the status */
		thing->id = 0;
		weft__uv_datagram_release(thing->owner);
		thing->owner = 0;
	}
	return status;
}

/* How it ended is no failure: many programs answer by their status. */
static void note_exit(struct weft__uv_thing *thing, int64_t status, int number)
{
	const char *name = number ? sigabbrev_np(number) : NULL;
	thing->label.length = 0;
	weft__uv_put(thing, number ? "killed by " : "exit status ");
	weft__uv_put(thing, name ? "SIG" : number ? "signal " : "");
	if (name)
		weft__uv_put(thing, name);
	else
		weft__uv_put_number(thing, number ? (uint64_t)number : (uint64_t)status);
	weft_note(thing->id, thing->label.text);
}

void weft__uv_exit_called(uv_process_t *handle, int64_t status, int number, unsigned slot)
{
	uv_exit_cb user = weft__uv_exit_user(slot);
	struct weft__uv_thing *thing = weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	weft__uv_tag tag = weft__uv_tag_of(thing);
	{
		if (thing && thing->id && (status || number))
			note_exit(thing, status, number);
		WEFT__UV_FRAME frame = weft__uv_enter_signalled(handle);
		(void)frame;
		if (user)
			user(handle, status, number);
		thing = weft__uv_find(tag);
		if (thing && thing->id && weft_is_on())
			weft__uv_end(thing, WEFT_SYSTEM_ID);
	}
}
