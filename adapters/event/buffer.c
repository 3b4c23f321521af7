/* buffer.c: bufferevents: a connection with buffers, which has two events of its own; one promise stands for all.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <string.h>

#include "adapters/event/adapter.h"

enum { SLOTS = 256, CONNECTED = 0x80, FAILED = 0x20 };

static void *data_users[SLOTS], *state_users[SLOTS];
void weft__ev_data_called(struct bufferevent *buffer, void *data, unsigned slot);
void weft__ev_state_called(struct bufferevent *buffer, short what, void *data, unsigned slot);
WEFT_HOOK_CODE(weft__ev_data_called, 2, 256);
WEFT_HOOK_CODE(weft__ev_state_called, 3, 256);
static const struct weft_hook_slots data_slots = {weft__ev_data_called_code, data_users, SLOTS};
static const struct weft_hook_slots state_slots = {weft__ev_state_called_code, state_users, SLOTS};

/* To be asked for before our lock is taken: libevent has one of its own for each, under which it calls us. */
static int fd_of(struct bufferevent *buffer)
{
	const int kept = errno, fd = weft__ev_real.bufferevent_getfd(buffer);
	errno = kept;
	return fd;
}

/* Under the lock. */
static struct weft__ev_thing *thing_of(struct bufferevent *buffer, int fd, const void *caller)
{
	struct weft__ev_thing *thing = weft__ev_find(buffer);
	if (thing || !(thing = weft__ev_make(buffer)))
		return thing;
	int kept = errno;
	thing->is_buffer = true;
	thing->fd = fd;
	weft__ev_begin(thing, WEFT_KIND_CONNECTION, caller);
	if (fd >= 0)
		weft_hook_put_fd(&thing->label, fd);
	weft__ev_say(thing);
	weft_hook_carries(fd, thing->id, NULL);
	errno = kept;
	return thing;
}

struct bufferevent *weft__bufferevent_socket_new(struct event_base *base, int fd, int options)
{
	WEFT__EV_CALL;
	struct bufferevent *buffer = weft__ev_real.bufferevent_socket_new(base, fd, options);
	if (buffer && weft__ev_takes()) {
		weft_hook_thread();
		const int got = fd_of(buffer);
		weft__ev_lock(buffer);
		thing_of(buffer, got, weft__ev_here.caller);
		weft__ev_unlock(buffer);
	}
	return buffer;
}

static void *slot_of(const struct weft_hook_slots *slots, void *user)
{
	return user ? weft_hook_slot(slots, user) : NULL;
}

void weft__bufferevent_setcb(
    struct bufferevent *buffer, weft__ev_data_cb *read, weft__ev_data_cb *write, weft__ev_state_cb *state, void *data)
{
	WEFT__EV_CALL;
	/* libevent itself takes the callbacks away when it frees one. */
	if (!weft__ev_is_own(__builtin_return_address(0)) && weft__ev_takes()) {
		weft_hook_thread();
		const int fd = fd_of(buffer);
		weft__ev_lock(buffer);
		thing_of(buffer, fd, weft__ev_here.caller);
		weft__ev_unlock(buffer);
	}
	weft__ev_real.bufferevent_setcb(buffer, (weft__ev_data_cb *)slot_of(&data_slots, (void *)read),
	    (weft__ev_data_cb *)slot_of(&data_slots, (void *)write), (weft__ev_state_cb *)slot_of(&state_slots, (void *)state),
	    data);
}

void weft__bufferevent_getcb(
    struct bufferevent *buffer, weft__ev_data_cb **read, weft__ev_data_cb **write, weft__ev_state_cb **state, void **data)
{
	weft__ev_real.bufferevent_getcb(buffer, read, write, state, data);
	if (read)
		*read = (weft__ev_data_cb *)weft_hook_user(&data_slots, (void *)*read);
	if (write)
		*write = (weft__ev_data_cb *)weft_hook_user(&data_slots, (void *)*write);
	if (state)
		*state = (weft__ev_state_cb *)weft_hook_user(&state_slots, (void *)*state);
}

void weft__bufferevent_free(struct bufferevent *buffer)
{
	if (weft_is_on()) {
		weft__ev_lock(buffer);
		struct weft__ev_thing *thing = weft__ev_find(buffer);
		if (thing)
			weft__ev_end(thing, weft__hook_thread.running);
		weft__ev_unlock(buffer);
	}
	weft__ev_real.bufferevent_free(buffer);
}

/* With an address, or later with the one that a host name has. */
int weft__bufferevent_socket_connect(struct bufferevent *buffer, const struct sockaddr *address, int size)
{
	WEFT__EV_CALL;
	if (weft__ev_takes()) {
		weft_hook_thread();
		const int fd = fd_of(buffer);
		weft__ev_lock(buffer);
		struct weft__ev_thing *thing = thing_of(buffer, fd, weft__ev_here.caller);
		if (thing && !thing->connect) {
			struct weft_hook_label label = {0};
			thing->connect =
			    weft_create_at(weft__hook_thread.running, WEFT_KIND_CONNECT, weft_hook_place(weft__ev_here.caller));
			if (address)
				weft_hook_put_address(&label, address);
			weft_hook_say(&label, thing->connect);
			if (thing->label.length == 0 && label.length > 0) {
				thing->label = label;
				weft__ev_say(thing);
			}
			weft_await(thing->id, thing->connect);
		}
		weft__ev_unlock(buffer);
	}
	const int status = weft__ev_real.bufferevent_socket_connect(buffer, address, size);
	if (status == 0 && weft_is_on()) {
		const int fd = fd_of(buffer);
		weft__ev_lock(buffer);
		struct weft__ev_thing *thing = weft__ev_find(buffer);
		if (thing && thing->fd != fd)
			weft_hook_carries(thing->fd = fd, thing->id, NULL);
		weft__ev_unlock(buffer);
	}
	return status;
}

/* ---- Callbacks ---- */

void weft__ev_data_called(struct bufferevent *buffer, void *data, unsigned slot)
{
	weft__ev_data_cb *user = (weft__ev_data_cb *)__atomic_load_n(&data_users[slot], __ATOMIC_ACQUIRE);
	weft_id id = weft_is_on() ? weft__ev_id(buffer) : 0;
	if (id)
		weft_hook_show(id);
	WEFT__EV_FRAME(id);
	weft_hook_calls((const void *)user);
	user(buffer, data);
}

void weft__ev_state_called(struct bufferevent *buffer, short what, void *data, unsigned slot)
{
	weft__ev_state_cb *user = (weft__ev_state_cb *)__atomic_load_n(&state_users[slot], __ATOMIC_ACQUIRE);
	const int error = errno; /* libevent says so what went wrong */
	const char *said = error ? strerrordesc_np(error) : NULL, *why = said ? said : "cannot connect";
	weft_id id = 0;
	if (weft_is_on()) {
		weft__ev_lock(buffer);
		struct weft__ev_thing *thing = weft__ev_find(buffer);
		id = thing ? thing->id : 0;
		if (thing && thing->connect) {
			if (what & CONNECTED)
				weft_resolve(WEFT_SYSTEM_ID, thing->connect);
			else
				weft_fail(WEFT_SYSTEM_ID, thing->connect, what & FAILED ? why : "no answer in time");
			weft_read(id, thing->connect);
			weft__hook_thread.shown = id;
			thing->connect = 0;
		}
		weft__ev_unlock(buffer);
	}
	if (id)
		weft_hook_show(id);
	WEFT__EV_FRAME(id);
	errno = error;
	weft_hook_calls((const void *)user);
	user(buffer, what, data);
}
