/* buffer.c: bufferevents.  A bufferevent, which is a connection with buffers and two events, has one promise.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <string.h>

#include "adapters/event/common.h"

enum { SLOT_COUNT = 256, BEV_IS_CONNECTED = 0x80, BEV_IS_ERROR = 0x20 };

static void *data_users[SLOT_COUNT], *state_users[SLOT_COUNT];
void weft__ev_data_called(struct bufferevent *buffer, void *data, unsigned slot);
void weft__ev_state_called(struct bufferevent *buffer, short what, void *data, unsigned slot);
WEFT_HOOK_CODE(weft__ev_data_called, 2, 256);
WEFT_HOOK_CODE(weft__ev_state_called, 3, 256);
static const struct weft_hook_slots data_slots = {weft__ev_data_called_code, data_users, SLOT_COUNT};
static const struct weft_hook_slots state_slots = {weft__ev_state_called_code, state_users, SLOT_COUNT};

/* Call this function without the adapter's lock: libevent holds its own lock of the bufferevent when it calls the program's
 * callbacks. */
static int get_fd(struct bufferevent *buffer)
{
	const int saved_errno = errno, fd = weft__ev_real.bufferevent_getfd(buffer);
	errno = saved_errno;
	return fd;
}

/* Call it with the object's lock held. */
static struct weft__ev_object *find_or_create(struct bufferevent *buffer, int fd, const void *caller)
{
	struct weft__ev_object *object = weft__ev_find(buffer);
	if (object || !(object = weft__ev_create(buffer)))
		return object;
	int saved_errno = errno;
	object->is_buffer = true;
	object->fd = fd;
	weft__ev_begin(object, WEFT_KIND_CONNECTION, caller);
	if (fd >= 0)
		weft_hook_append_fd(&object->label, fd);
	weft__ev_record_label(object);
	weft_hook_fd_attach(fd, object->id, NULL);
	errno = saved_errno;
	return object;
}

struct bufferevent *weft__bufferevent_socket_new(struct event_base *base, int fd, int options)
{
	WEFT__EV_CALL;
	struct bufferevent *buffer = weft__ev_real.bufferevent_socket_new(base, fd, options);
	if (buffer && weft__ev_should_record()) {
		weft_hook_thread();
		const int got = get_fd(buffer);
		weft__ev_lock(buffer);
		find_or_create(buffer, got, weft__ev_get_here()->caller);
		weft__ev_unlock(buffer);
	}
	return buffer;
}

static void *get_slot(const struct weft_hook_slots *slots, void *user)
{
	return user ? weft_hook_slot(slots, user) : NULL;
}

void weft__bufferevent_setcb(
    struct bufferevent *buffer, weft__ev_data_cb *read, weft__ev_data_cb *write, weft__ev_state_cb *state, void *data)
{
	WEFT__EV_CALL;
	/* libevent itself removes the callbacks of a bufferevent that it frees, so its own calls are ignored. */
	if (!weft__ev_is_own(__builtin_return_address(0)) && weft__ev_should_record()) {
		weft_hook_thread();
		const int fd = get_fd(buffer);
		weft__ev_lock(buffer);
		find_or_create(buffer, fd, weft__ev_get_here()->caller);
		weft__ev_unlock(buffer);
	}
	weft__ev_real.bufferevent_setcb(buffer, (weft__ev_data_cb *)get_slot(&data_slots, (void *)read),
	    (weft__ev_data_cb *)get_slot(&data_slots, (void *)write), (weft__ev_state_cb *)get_slot(&state_slots, (void *)state),
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
		struct weft__ev_object *object = weft__ev_find(buffer);
		if (object)
			weft__ev_end(object, weft__hook_get_thread()->running);
		weft__ev_unlock(buffer);
	}
	weft__ev_real.bufferevent_free(buffer);
}

/* A connection ends with its descriptor: a bufferevent that loses it, as evhttp does before it connects again, may get another,
 * for another promise. */
static void end_connection(struct bufferevent *buffer, int fd)
{
	weft__ev_lock(buffer);
	struct weft__ev_object *object = weft__ev_find(buffer);
	if (object && object->fd >= 0 && object->fd != fd)
		weft__ev_end(object, weft__hook_get_thread()->running);
	weft__ev_unlock(buffer);
}

/* evhttp makes a bufferevent without a descriptor, and sets that of the accepted connection. */
static void begin_connection(struct bufferevent *buffer, int fd)
{
	weft__ev_lock(buffer);
	struct weft__ev_object *object = find_or_create(buffer, fd, weft__ev_get_here()->caller);
	if (object && object->fd < 0) {
		const int saved_errno = errno;
		object->fd = fd;
		weft_hook_append_fd(&object->label, fd);
		weft__ev_record_label(object);
		weft_hook_fd_attach(fd, object->id, NULL);
		errno = saved_errno;
	}
	weft__ev_unlock(buffer);
}

int weft__bufferevent_setfd(struct bufferevent *buffer, int fd)
{
	WEFT__EV_CALL;
	if (weft_is_on())
		end_connection(buffer, fd);
	const int status = weft__ev_real.bufferevent_setfd(buffer, fd);
	if (status == 0 && fd >= 0 && weft__ev_should_record()) {
		weft_hook_thread();
		begin_connection(buffer, fd);
	}
	return status;
}

/* Without an address, libevent resolves a host name and calls this function again. */
int weft__bufferevent_socket_connect(struct bufferevent *buffer, const struct sockaddr *address, int size)
{
	WEFT__EV_CALL;
	if (weft__ev_should_record()) {
		weft_hook_thread();
		const int fd = get_fd(buffer);
		weft__ev_lock(buffer);
		struct weft__ev_object *object = find_or_create(buffer, fd, weft__ev_get_here()->caller);
		if (object && !object->connect) {
			struct weft_hook_label label = {0};
			object->connect = weft_create_at(
			    weft__hook_get_thread()->running, WEFT_KIND_CONNECT, weft_hook_site(weft__ev_get_here()->caller));
			if (address)
				weft_hook_append_address(&label, address);
			weft_hook_record_label(&label, object->connect);
			if (object->label.length == 0 && label.length > 0) {
				object->label = label;
				weft__ev_record_label(object);
			}
			weft_await(object->id, object->connect);
		}
		weft__ev_unlock(buffer);
	}
	const int status = weft__ev_real.bufferevent_socket_connect(buffer, address, size);
	if (status == 0 && weft_is_on()) {
		const int fd = get_fd(buffer);
		weft__ev_lock(buffer);
		struct weft__ev_object *object = weft__ev_find(buffer);
		if (object && object->fd != fd)
			weft_hook_fd_attach(object->fd = fd, object->id, NULL);
		weft__ev_unlock(buffer);
	}
	return status;
}

/* ---- Callbacks ---- */

void weft__ev_data_called(struct bufferevent *buffer, void *data, unsigned slot)
{
	weft__ev_data_cb *user = (weft__ev_data_cb *)__atomic_load_n(&data_users[slot], __ATOMIC_ACQUIRE);
	weft_id id = 0;
	if (weft_is_on()) {
		weft__ev_lock(buffer);
		struct weft__ev_object *object = weft__ev_find(buffer);
		id = object ? object->id : 0;
		/* If data flows and the program has no callback for events, the connect has succeeded. */
		if (object && object->connect) {
			weft_resolve(WEFT_SYSTEM_ID, object->connect);
			weft_read(id, object->connect);
			weft__hook_get_thread()->recorded_running = id;
			object->connect = 0;
		}
		weft__ev_unlock(buffer);
	}
	if (id)
		weft_hook_record_running(id);
	WEFT__EV_FRAME(id);
	weft_hook_set_called((const void *)user);
	user(buffer, data);
}

void weft__ev_state_called(struct bufferevent *buffer, short what, void *data, unsigned slot)
{
	weft__ev_state_cb *user = (weft__ev_state_cb *)__atomic_load_n(&state_users[slot], __ATOMIC_ACQUIRE);
	const int error = errno; /* libevent sets errno to the cause of a failed connect */
	const char *description = error ? strerrordesc_np(error) : NULL, *why = description ? description : "cannot connect";
	weft_id id = 0;
	if (weft_is_on()) {
		weft__ev_lock(buffer);
		struct weft__ev_object *object = weft__ev_find(buffer);
		id = object ? object->id : 0;
		if (object && object->connect) {
			if (what & BEV_IS_CONNECTED)
				weft_resolve(WEFT_SYSTEM_ID, object->connect);
			else
				weft_fail(WEFT_SYSTEM_ID, object->connect, what & BEV_IS_ERROR ? why : "no answer in time");
			weft_read(id, object->connect);
			weft__hook_get_thread()->recorded_running = id;
			object->connect = 0;
		}
		weft__ev_unlock(buffer);
	}
	if (id)
		weft_hook_record_running(id);
	WEFT__EV_FRAME(id);
	errno = error;
	weft_hook_set_called((const void *)user);
	user(buffer, what, data);
}
