/* event.c: events: descriptors, timers, signals, and those that a program activates by itself.
 *
 * An event's promise begins when it is added.  event_new() has event_free() to tell the end.  Other events lie in the program's
 * structs, and nobody says when such memory goes: their promise ends when they are not added at the end of a turn of the loop,
 * so that one that is deleted, changed and added again stays one promise.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <poll.h>

#include "adapters/event/adapter.h"

enum { SLOTS = 256 };

static void *users[SLOTS];
void weft__ev_called(int fd, short what, void *data, unsigned slot);
WEFT_HOOK_CODE(weft__ev_called, 3, 256);
static const struct weft_hook_slots slots = {weft__ev_called_code, users, SLOTS};

static weft__ev_event_cb *user_of(weft__ev_event_cb *given)
{
	return (weft__ev_event_cb *)weft_hook_user(&slots, (void *)given);
}

/* ---- What an event is ---- */

static enum weft_kind kind_of(struct weft_hook_label *label, const struct event *event, bool has_time, bool *has_datagrams)
{
	const int fd = weft__ev_real.event_get_fd(event);
	const short events = weft__ev_real.event_get_events(event);
	*has_datagrams = false;
	if (events & EV_IS_SIGNAL) {
		weft_hook_put(label, "signal ");
		weft_hook_put_number(label, (unsigned)fd);
		return WEFT_KIND_OS_SIGNAL;
	}
	if (fd >= 0) {
		const enum weft_kind kind = weft_hook_put_watched(label, fd, events & EV_IS_READ, has_datagrams);
		if (kind != WEFT_KIND_POLL || !weft_hook_may_connect(fd))
			return kind;
		*label = (struct weft_hook_label){0}; /* once it is connected it has a name */
		return WEFT_KIND_CONNECTION;
	}
	if (!has_time)
		weft_hook_put(label, "event");
	else if (events & EV_IS_PERSISTENT)
		weft_hook_put(label, "every ");
	return has_time ? WEFT_KIND_TIMER : WEFT_KIND_CONDITION;
}

static void begin(struct weft__ev_thing *thing, const struct event *event, const struct timeval *timeout, const void *caller)
{
	const int kept = errno, fd = weft__ev_real.event_get_fd(event);
	const bool is_signal = weft__ev_real.event_get_events(event) & EV_IS_SIGNAL;
	thing->fd = is_signal ? -1 : fd;
	const enum weft_kind kind = kind_of(&thing->label, event, timeout, &thing->has_datagrams);
	weft__ev_begin(thing, kind, caller);
	if (kind == WEFT_KIND_TIMER && timeout)
		weft_hook_put_ms(&thing->label, (uint64_t)timeout->tv_sec * 1000 + (uint64_t)timeout->tv_usec / 1000);
	if (thing->fd < 0 && !is_signal)
		weft_hook_put_function(&thing->label, (const void *)user_of(weft__ev_real.event_get_callback(event)));
	weft__ev_say(thing);
	errno = kept;
}

/* Of libevent's own only those at which something comes from outside: what listens, what has datagrams, and connections of
 * bufferevents, which are known by these.  The others are how it wakes itself. */
static const void *key_of_older(
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
	const int kept = errno;
	const void *function = (const void *)user_of(weft__ev_real.event_get_callback(event));
	struct weft_hook_label label = {0};
	bool is_buffer, has_datagrams;
	const short events = weft__ev_real.event_get_events(event);
	const enum weft_kind kind = kind_of(&label, event, true, &has_datagrams);
	const void *key = key_of_older(event, function, kind, has_datagrams, &is_buffer);
	weft__ev_lock(key);
	struct weft__ev_thing *thing = key && !weft__ev_find(key) ? weft__ev_make(key) : NULL;
	if (thing) {
		weft_hook_things_begin_older(&thing->thing, kind);
		thing->fd = events & EV_IS_SIGNAL ? -1 : weft__ev_real.event_get_fd(event);
		thing->function = function;
		thing->base = weft__ev_real.event_get_base(event);
		thing->is_added = true;
		thing->is_buffer = is_buffer;
		thing->has_datagrams = has_datagrams;
		if (is_buffer)
			weft_hook_carries(thing->fd, thing->id, NULL);
		thing->label = label;
		if (kind == WEFT_KIND_TIMER) { /* of what time is not known any longer */
			thing->label = (struct weft_hook_label){0};
			weft_hook_put(&thing->label, "timer");
			weft_hook_put_function(&thing->label, function);
		}
		weft__ev_say(thing);
	}
	weft__ev_unlock(key);
	errno = kept;
}

/* Of several events of one connection one stands for it, at a time. */
static void carry(struct weft__ev_thing *thing, const struct event *event)
{
	if (!thing->id || thing->kind != WEFT_KIND_CONNECTION)
		return;
	if (!thing->label.length && thing->fd >= 0) {
		kind_of(&thing->label, event, false, &thing->has_datagrams);
		weft__ev_say(thing);
	}
	weft_hook_may_carry(thing->fd, thing->id, thing->has_datagrams);
}

/* ---- Calls ---- */

/* What was known of the memory is void, unless it is the same event that is to wait for something else. */
int weft__event_assign(struct event *event, struct event_base *base, int fd, short events, weft__ev_event_cb *cb, void *data)
{
	if (weft_is_on()) {
		weft__ev_lock(event);
		struct weft__ev_thing *thing = weft__ev_find(event);
		if (thing && (thing->fd != fd || thing->function != (const void *)cb))
			weft__ev_end(thing, weft__hook_thread.running);
		weft__ev_unlock(event);
	}
	return weft__ev_real.event_assign(
	    event, base, fd, events, cb ? (weft__ev_event_cb *)weft_hook_slot(&slots, (void *)cb) : NULL, data);
}

weft__ev_event_cb *weft__event_get_callback(const struct event *event)
{
	return user_of(weft__ev_real.event_get_callback(event));
}

void weft__event_get_assignment(
    const struct event *event, struct event_base **base, int *fd, short *events, weft__ev_event_cb **cb, void **data)
{
	weft__ev_real.event_get_assignment(event, base, fd, events, cb, data);
	if (cb)
		*cb = user_of(*cb);
}

struct event *weft__event_new(struct event_base *base, int fd, short events, weft__ev_event_cb *cb, void *data)
{
	WEFT__EV_CALL;
	struct event *event = weft__ev_real.event_new(base, fd, events, cb, data);
	if (!event || !weft_is_on())
		return event;
	weft__ev_lock(event);
	struct weft__ev_thing *thing = weft__ev_find(event);
	if (!thing)
		thing = weft__ev_make(event);
	if (thing) {
		thing->is_allocated = true;
		thing->fd = fd;
		thing->function = (const void *)cb;
	}
	weft__ev_unlock(event);
	return event;
}

static void ends(struct event *event)
{
	if (!weft_is_on())
		return;
	weft__ev_lock(event);
	struct weft__ev_thing *thing = weft__ev_find(event);
	if (thing)
		weft__ev_end(thing, weft__hook_thread.running);
	weft__ev_unlock(event);
}

void weft__event_free(struct event *event)
{
	ends(event);
	weft__ev_real.event_free(event);
}

/* The callback given here is the last that concerns the event, which is never called again. */
int weft__event_finalize(unsigned flags, struct event *event, weft__ev_finalize_cb *cb)
{
	ends(event);
	return weft__ev_real.event_finalize(flags, event, cb);
}

int weft__event_free_finalize(unsigned flags, struct event *event, weft__ev_finalize_cb *cb)
{
	ends(event);
	return weft__ev_real.event_free_finalize(flags, event, cb);
}

int weft__event_add(struct event *event, const struct timeval *timeout)
{
	WEFT__EV_CALL;
	/* Those of a bufferevent are its own: one promise stands for all. */
	if (!weft__ev_takes() || weft__ev_buffer_id(weft__ev_real.event_get_callback_arg(event)))
		return weft__ev_real.event_add(event, timeout);
	weft_hook_thread();
	const struct event_base *base = weft__ev_real.event_get_base(event);
	weft_id loop = weft__ev_id(base);
	weft__ev_lock(event);
	struct weft__ev_thing *thing = weft__ev_find(event);
	if (!thing && (thing = weft__ev_make(event)))
		thing->function = (const void *)user_of(weft__ev_real.event_get_callback(event));
	if (thing && !thing->id)
		begin(thing, event, timeout, weft__ev_here.caller);
	if (thing)
		carry(thing, event);
	if (thing) {
		thing->is_added = true;
		thing->base = base;
		if (loop && thing->kept != loop)
			weft_await(thing->kept = loop, thing->id);
	}
	weft__ev_unlock(event);
	return weft__ev_real.event_add(event, timeout);
}

static void is_deleted(struct weft__ev_thing *thing)
{
	thing->is_added = false;
	weft_hook_gives_way(thing->fd, thing->id);
	if (!thing->is_allocated) {
		weft__ev_ends_later(thing);
	} else if (thing->kept) {
		weft_awaits_no_more(thing->kept, thing->id);
		thing->kept = 0;
	}
}

int weft__event_del(struct event *event)
{
	if (weft_is_on()) {
		weft__ev_lock(event);
		struct weft__ev_thing *thing = weft__ev_find(event);
		if (thing && thing->is_added)
			is_deleted(thing);
		weft__ev_unlock(event);
	}
	return weft__ev_real.event_del(event);
}

void weft__event_active(struct event *event, int what, short calls)
{
	WEFT__EV_CALL;
	if (weft__ev_takes()) {
		weft_hook_thread();
		weft__ev_lock(event);
		struct weft__ev_thing *thing = weft__ev_find(event);
		if (!thing && (thing = weft__ev_make(event)))
			thing->function = (const void *)user_of(weft__ev_real.event_get_callback(event));
		if (thing && !thing->id)
			begin(thing, event, NULL, weft__ev_here.caller);
		if (thing && thing->id)
			weft_signal_only(weft_hook_sender(), thing->id);
		weft__ev_unlock(event);
	}
	weft__ev_real.event_active(event, what, calls);
}

/* ---- Callbacks ---- */

/* Which event's callback this is; NULL: it is called by somebody else than the loop. */
static const struct event *running_event(void)
{
	const struct weft__ev_here *here = &weft__ev_here;
	return here->epoch == weft__hook_epoch && here->depth > 0
		   ? weft__ev_real.event_base_get_running_event(here->runs[here->depth - 1].base)
		   : NULL;
}

void weft__ev_called(int fd, short what, void *data, unsigned slot)
{
	weft__ev_event_cb *user = (weft__ev_event_cb *)__atomic_load_n(&users[slot], __ATOMIC_ACQUIRE);
	const struct event *event = weft_is_on() ? running_event() : NULL;
	weft_id id = 0;
	bool looks = false;
	if (event) {
		weft_id buffer = weft__ev_buffer_id(weft__ev_real.event_get_callback_arg(event));
		weft__ev_lock(event);
		struct weft__ev_thing *thing = weft__ev_find(event);
		if (buffer) {
			id = buffer;
			weft_hook_signal(id);
		} else if (thing && thing->id) {
			id = thing->id;
			thing->home = &weft__hook_thread;
			carry(thing, event);
			/* Nothing came to a timer without a time, nor to one that a program activates all the time. */
			bool repeats = thing->fd < 0 ? !(what & EV_IS_SIGNAL) : thing->is_untouched;
			if (thing->fd >= 0 && !repeats)
				weft_hook_count(&thing->calls);
			looks = thing->fd >= 0 && weft_hook_looks(&thing->calls);
			if (!repeats || weft_hook_called(&thing->calls, id, true))
				weft_hook_signal(id);
			if (!(weft__ev_real.event_get_events(event) & EV_IS_PERSISTENT))
				is_deleted(thing);
		}
		weft__ev_unlock(event);
	}
	int before = looks ? weft_hook_waiting(fd) : 0;
	{
		WEFT__EV_FRAME(id);
		weft_hook_calls((const void *)user);
		user(fd, what, data);
	}
	if (looks) {
		bool untouched = weft_hook_is_untouched(fd, what & EV_IS_READ ? POLLIN : POLLOUT, before);
		weft__ev_lock(event);
		struct weft__ev_thing *thing = weft__ev_find(event);
		if (thing && thing->id == id)
			thing->is_untouched = untouched;
		weft__ev_unlock(event);
	}
}
