/* event.c: records libevent's events: descriptors, timers, signals, and events that the program activates.
 *
 * An event's promise begins when the event is added. event_free() ends the promise of an event that event_new() made.  Other
 * events are in structs of the program, and no call says when they are freed.  The promise of such an event ends if the event is
 * not added when the loop sleeps next.  So an event that the program deletes, changes and adds again keeps its promise.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <poll.h>

#include "adapters/event/common.h"
#include "adapters/hook/callers.h"

enum { SLOT_COUNT = 256 };

static void *slot_users[SLOT_COUNT];
void weft__ev_called(int fd, short what, void *data, unsigned slot);
WEFT_HOOK_CODE(weft__ev_called, 3, 256);
static const struct weft_hook_slots slots = {weft__ev_called_code, slot_users, SLOT_COUNT};

static weft__ev_event_cb *get_user_callback(weft__ev_event_cb *given)
{
	return (weft__ev_event_cb *)weft_hook_user(&slots, (void *)given);
}

/* ---- Kinds of events ---- */

static enum weft_kind classify_event(struct weft_hook_label *label, const struct event *event, bool has_time, bool *has_datagrams)
{
	const int fd = weft__ev_real.event_get_fd(event);
	const short events = weft__ev_real.event_get_events(event);
	*has_datagrams = false;
	if (events & EV_IS_SIGNAL) {
		weft_hook_append(label, "signal ");
		weft_hook_append_number(label, (unsigned)fd);
		return WEFT_KIND_OS_SIGNAL;
	}
	if (fd >= 0) {
		const enum weft_kind kind = weft_hook_append_watched_fd(label, fd, events & EV_IS_READ, has_datagrams);
		if (kind != WEFT_KIND_POLL || !weft_hook_may_connect(fd))
			return kind;
		*label = (struct weft_hook_label){0}; /* the label is set later, when the connection is established */
		return WEFT_KIND_CONNECTION;
	}
	if (!has_time)
		weft_hook_append(label, "event");
	else if (events & EV_IS_PERSISTENT)
		weft_hook_append(label, "every ");
	return has_time ? WEFT_KIND_TIMER : WEFT_KIND_CONDITION;
}

static void begin_event(
    struct weft__ev_object *object, const struct event *event, const struct timeval *timeout, const void *caller)
{
	const int saved_errno = errno, fd = weft__ev_real.event_get_fd(event);
	const bool is_signal = weft__ev_real.event_get_events(event) & EV_IS_SIGNAL;
	object->fd = is_signal ? -1 : fd;
	const enum weft_kind kind = classify_event(&object->label, event, timeout, &object->has_datagrams);
	weft__ev_begin(object, kind, caller);
	if (kind == WEFT_KIND_TIMER && timeout)
		weft_hook_append_ms(&object->label, (uint64_t)timeout->tv_sec * 1000 + (uint64_t)timeout->tv_usec / 1000);
	if (object->fd < 0 && !is_signal)
		weft_hook_append_function(&object->label, object->function);
	weft__ev_record_label(object);
	errno = saved_errno;
}

/* Returns the key of the object for an event that is older than the recording, or NULL.  Among libevent's own events, only those
 * of listeners, datagram sockets and bufferevents are recorded; the others only wake libevent's loop. */
static const void *get_older_key(
    const struct event *event, const void *function, enum weft_kind kind, bool has_datagrams, bool *is_buffer)
{
	struct sockaddr_storage peer = {0};
	socklen_t size = sizeof peer;
	*is_buffer = false;
	if (!weft__ev_is_own(function) || kind == WEFT_KIND_LISTEN || has_datagrams)
		return event;
	if (kind != WEFT_KIND_CONNECTION || getpeername(weft__ev_real.event_get_fd(event), (struct sockaddr *)&peer, &size) ||
	    (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
		return NULL;
	*is_buffer = true;
	return weft__ev_real.event_get_callback_arg(event);
}

void weft__ev_begin_older(const struct event *event)
{
	const int saved_errno = errno;
	const void *function = (const void *)get_user_callback(weft__ev_real.event_get_callback(event));
	struct weft_hook_label label = {0};
	bool is_buffer, has_datagrams;
	const short events = weft__ev_real.event_get_events(event);
	const enum weft_kind kind = classify_event(&label, event, true, &has_datagrams);
	const void *key = get_older_key(event, function, kind, has_datagrams, &is_buffer);
	weft__ev_lock(key);
	struct weft__ev_object *object = key && !weft__ev_find(key) ? weft__ev_create(key) : NULL;
	if (object) {
		weft_hook_object_begin_older(&object->object, kind);
		object->fd = events & EV_IS_SIGNAL ? -1 : weft__ev_real.event_get_fd(event);
		object->function = function;
		object->base = weft__ev_real.event_get_base(event);
		object->is_added = true;
		object->is_buffer = is_buffer;
		object->has_datagrams = has_datagrams;
		if (is_buffer)
			weft_hook_fd_attach(object->fd, object->id, NULL);
		if (kind == WEFT_KIND_LISTEN)
			weft__loop_leave_listener(object->fd);
		object->label = label;
		if (kind == WEFT_KIND_TIMER) { /* no due time, because the remaining time of an older timer is unknown */
			object->label = (struct weft_hook_label){0};
			weft_hook_append(&object->label, "timer");
			weft_hook_append_function(&object->label, function);
		}
		weft__ev_record_label(object);
	}
	weft__ev_unlock(key);
	errno = saved_errno;
}

/* Assigns the event's descriptor to the event's promise.  If a connection has several events, only one of them can own the
 * descriptor. */
static void attach_fd(struct weft__ev_object *object, const struct event *event)
{
	if (object->id && object->kind == WEFT_KIND_LISTEN)
		weft__loop_leave_listener(object->fd);
	if (!object->id || object->kind != WEFT_KIND_CONNECTION)
		return;
	if (!object->label.length && object->fd >= 0) {
		classify_event(&object->label, event, false, &object->has_datagrams);
		weft__ev_record_label(object);
	}
	weft_hook_fd_attach_if_free(object->fd, object->id, object->has_datagrams);
}

/* ---- Calls ---- */

/* Records that an event with this callback is being added to its base. */
static void note_added(struct event *event, const struct timeval *timeout, const void *function)
{
	weft_hook_thread();
	const struct event_base *base = weft__ev_real.event_get_base(event);
	weft_id loop = weft__ev_id(base);
	weft__ev_lock(event);
	struct weft__ev_object *object = weft__ev_find(event);
	if (!object && (object = weft__ev_create(event)))
		object->function = function;
	if (object && !object->id)
		begin_event(object, event, timeout, weft__ev_get_here()->caller);
	if (object)
		attach_fd(object, event);
	if (object) {
		object->is_added = true;
		object->base = base;
		if (loop && object->awaited_by != loop)
			weft_await(object->awaited_by = loop, object->id);
	}
	weft__ev_unlock(event);
}

/* Ends the older object at the event's address, unless the call only changes what the same event waits for. */
int weft__event_assign(struct event *event, struct event_base *base, int fd, short events, weft__ev_event_cb *cb, void *data)
{
	if (weft_is_on()) {
		weft__ev_lock(event);
		struct weft__ev_object *object = weft__ev_find(event);
		if (object && (object->fd != fd || object->function != (const void *)cb))
			weft__ev_end(object, weft__hook_get_thread()->running);
		weft__ev_unlock(event);
	}
	const int status = weft__ev_real.event_assign(
	    event, base, fd, events, cb ? (weft__ev_event_cb *)weft_hook_slot(&slots, (void *)cb) : NULL, data);
	struct weft__ev_once *once = weft__ev_get_here()->once;
	if (status == 0 && once) {
		weft__ev_get_here()->once = NULL;
		once->event = event;
		note_added(event, once->timeout, (const void *)once->cb);
	}
	return status;
}

weft__ev_event_cb *weft__event_get_callback(const struct event *event)
{
	return get_user_callback(weft__ev_real.event_get_callback(event));
}

void weft__event_get_assignment(
    const struct event *event, struct event_base **base, int *fd, short *events, weft__ev_event_cb **cb, void **data)
{
	weft__ev_real.event_get_assignment(event, base, fd, events, cb, data);
	if (cb)
		*cb = get_user_callback(*cb);
}

struct event *weft__event_new(struct event_base *base, int fd, short events, weft__ev_event_cb *cb, void *data)
{
	WEFT__EV_CALL;
	struct event *event = weft__ev_real.event_new(base, fd, events, cb, data);
	if (!event || !weft_is_on())
		return event;
	weft__ev_lock(event);
	struct weft__ev_object *object = weft__ev_find(event);
	if (!object)
		object = weft__ev_create(event);
	if (object) {
		object->is_allocated = true;
		object->fd = fd;
		object->function = (const void *)cb;
	}
	weft__ev_unlock(event);
	return event;
}

static void end_event(struct event *event)
{
	if (!weft_is_on())
		return;
	weft__ev_lock(event);
	struct weft__ev_object *object = weft__ev_find(event);
	if (object)
		weft__ev_end(object, weft__hook_get_thread()->running);
	weft__ev_unlock(event);
}

void weft__event_free(struct event *event)
{
	end_event(event);
	weft__ev_real.event_free(event);
}

/* After event_finalize() libevent never calls the event's callback again, but only `cb`. */
int weft__event_finalize(unsigned flags, struct event *event, weft__ev_finalize_cb *cb)
{
	end_event(event);
	return weft__ev_real.event_finalize(flags, event, cb);
}

int weft__event_free_finalize(unsigned flags, struct event *event, weft__ev_finalize_cb *cb)
{
	end_event(event);
	return weft__ev_real.event_free_finalize(flags, event, cb);
}

int weft__event_add(struct event *event, const struct timeval *timeout)
{
	WEFT__EV_CALL;
	/* The events of a bufferevent belong to the bufferevent's promise. */
	if (!weft__ev_should_record() || weft__ev_buffer_id(weft__ev_real.event_get_callback_arg(event)))
		return weft__ev_real.event_add(event, timeout);
	note_added(event, timeout, (const void *)get_user_callback(weft__ev_real.event_get_callback(event)));
	return weft__ev_real.event_add(event, timeout);
}

/* libevent makes the event of this call with event_assign(), adds it without event_add(), and frees it after its callback.  The
 * exit timer of event_base_loopexit() is no event of the program. */
int weft__event_base_once(
    struct event_base *base, int fd, short events, weft__ev_event_cb *cb, void *data, const struct timeval *timeout)
{
	WEFT__EV_CALL;
	struct weft__ev_once once = {cb, timeout, NULL};
	if (weft__ev_should_record() && !weft__ev_is_own((const void *)cb))
		weft__ev_get_here()->once = &once;
	const int status = weft__ev_real.event_base_once(base, fd, events, cb, data, timeout);
	weft__ev_get_here()->once = NULL;
	if (status && once.event)
		end_event(once.event);
	return status;
}

static void mark_deleted(struct weft__ev_object *object)
{
	object->is_added = false;
	weft_hook_fd_mark_idle(object->fd, object->id);
	if (!object->is_allocated) {
		weft__ev_end_later(object);
	} else if (object->awaited_by) {
		weft_awaits_no_more(object->awaited_by, object->id);
		object->awaited_by = 0;
	}
}

int weft__event_del(struct event *event)
{
	if (weft_is_on()) {
		weft__ev_lock(event);
		struct weft__ev_object *object = weft__ev_find(event);
		if (object && object->is_added)
			mark_deleted(object);
		weft__ev_unlock(event);
	}
	const void *before = weft__hook_outer_caller;
	weft__hook_outer_caller = weft__ev_get_here()->caller ? weft__ev_get_here()->caller : __builtin_return_address(0);
	const int status = weft__ev_real.event_del(event); /* event_del() waits while another thread runs the event's callback */
	weft__hook_outer_caller = before;
	return status;
}

void weft__event_active(struct event *event, int what, short calls)
{
	WEFT__EV_CALL;
	if (weft__ev_should_record()) {
		weft_hook_thread();
		weft__ev_lock(event);
		struct weft__ev_object *object = weft__ev_find(event);
		if (!object && (object = weft__ev_create(event)))
			object->function = (const void *)get_user_callback(weft__ev_real.event_get_callback(event));
		if (object && !object->id)
			begin_event(object, event, NULL, weft__ev_get_here()->caller);
		/* An event that activates itself again and again would fill the ring. */
		if (object && object->id && !weft_hook_is_spinning(&object->calls))
			weft_signal_only(weft_hook_current_promise(), object->id);
		weft__ev_unlock(event);
	}
	weft__ev_real.event_active(event, what, calls);
}

/* ---- Callbacks ---- */

/* Returns the event whose callback the loop runs; NULL if no event's callback is the caller. */
static const struct event *get_running_event(void)
{
	const struct weft__ev_here *here = weft__ev_get_here();
	return here->epoch == weft__hook_epoch && here->depth > 0
		   ? weft__ev_real.event_base_get_running_event(here->runs[here->depth - 1].base)
		   : NULL;
}

void weft__ev_called(int fd, short what, void *data, unsigned slot)
{
	weft__ev_event_cb *user = (weft__ev_event_cb *)__atomic_load_n(&slot_users[slot], __ATOMIC_ACQUIRE);
	const struct event *event = weft_is_on() ? get_running_event() : NULL;
	weft_id id = 0;
	const void *called = (const void *)user;
	bool should_probe = false;
	if (event) {
		weft_id buffer = weft__ev_buffer_id(weft__ev_real.event_get_callback_arg(event));
		weft__ev_lock(event);
		struct weft__ev_object *object = weft__ev_find(event);
		if (buffer) {
			id = buffer;
			weft_hook_record_signal(id);
		} else if (object && object->id) {
			id = object->id;
			called = object->function ? object->function : called;
			object->owner_thread = weft__hook_get_thread();
			attach_fd(object, event);
			/* A dispatch repeats if it has no external cause, as that of a timer or of an activated event. */
			bool repeats = object->fd < 0 ? !(what & EV_IS_SIGNAL) : object->is_untouched;
			if (object->fd >= 0 && !repeats)
				weft_hook_count_call(&object->calls);
			should_probe = object->fd >= 0 && weft_hook_should_probe_fd(&object->calls);
			if (!repeats || weft_hook_count_repeat(&object->calls, id, true))
				weft_hook_record_signal(id);
			if (!(weft__ev_real.event_get_events(event) & EV_IS_PERSISTENT))
				mark_deleted(object);
		}
		weft__ev_unlock(event);
	}
	int before = should_probe ? weft_hook_probe_fd(fd) : 0;
	{
		WEFT__EV_FRAME(id);
		weft_hook_set_called(called);
		user(fd, what, data);
	}
	if (should_probe) {
		bool untouched = weft_hook_is_fd_untouched(fd, what & EV_IS_READ ? POLLIN : POLLOUT, before);
		weft__ev_lock(event);
		struct weft__ev_object *object = weft__ev_find(event);
		if (object && object->id == id)
			object->is_untouched = untouched;
		weft__ev_unlock(event);
	}
}
