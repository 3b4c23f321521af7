/* stream.c: connections and listeners, what is read and written; and datagrams.  SPDX-License-Identifier: ISC */
#include "adapters/uv/adapter.h"
#include "adapters/uv/slots.h"

#define INIT(function, handle_type, parameters, arguments)                                                                       \
	int weft__uv_##function(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, handle_type *handle parameters) \
	{                                                                                                                        \
		bool taken = weft__uv_takes(copy, caller);                                                                       \
		int status = WEFT__UV_INSIDE(copy->real.uv_##function(loop, handle arguments));                                  \
		if (status == 0 && taken)                                                                                        \
			weft__uv_handle_init(copy, caller, handle);                                                              \
		return status;                                                                                                   \
	}
#define AND ,
INIT(tcp_init, uv_tcp_t, , )
INIT(tcp_init_ex, uv_tcp_t, AND unsigned flags, AND flags)
INIT(pipe_init, uv_pipe_t, AND int ipc, AND ipc)
INIT(tty_init, uv_tty_t, AND uv_file fd AND int readable, AND fd AND readable)
INIT(udp_init, uv_udp_t, , )
INIT(udp_init_ex, uv_udp_t, AND unsigned flags, AND flags)

struct weft__uv_thing *weft__uv_stream_new(
    struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, const char *prefix)
{
	struct weft__uv_thing *thing = weft__uv_handle(copy, caller, stream);
	if (weft__uv_begin(thing, WEFT_KIND_CONNECTION, caller)) {
		weft__uv_put(thing, prefix);
		weft__uv_put_handle(thing, (uv_handle_t *)stream);
		weft__uv_say(thing);
		weft__uv_carries(thing, (uv_handle_t *)stream);
	}
	return thing;
}

/* ---- What goes through connections ---- */

/* The program writes to a connection itself, as uvloop does; in its own callbacks only, since libuv writes so, too. */
static bool is_own_write(void)
{
	return weft__uv_here.inside == 0 && weft__uv_here.epoch == weft__hook_epoch;
}

void weft__uv_carries(struct weft__uv_thing *thing, const uv_handle_t *handle)
{
	uv_os_fd_t fd;
	if (thing->fd >= 0 || !thing->id || thing->connects || thing->copy->real.uv_fileno(handle, &fd))
		return;
	thing->fd = fd;
	if (handle->type == UV_UDP)
		weft_hook_carries_datagrams(fd, thing->id, is_own_write);
	else if (handle->type == UV_POLL)
		weft_hook_may_carry(fd, thing->id, thing->has_datagrams);
	else
		weft_hook_carries(fd, thing->id, is_own_write);
}

static size_t bytes_of(const uv_buf_t bufs[], unsigned count)
{
	size_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += bufs[i].len;
	return bytes;
}

/* Before the call: libuv may write later, never earlier.  Returns what it was about to write, for falls_short(). */
static size_t goes_out(struct weft__uv_thing *thing, const uv_stream_t *stream, size_t bytes)
{
	if (!thing || !weft_is_on())
		return 0;
	weft__uv_carries(thing, (const uv_handle_t *)stream);
	weft_hook_goes_out(thing->fd, thing->id, bytes);
	return bytes;
}

/* So many of them were not taken. */
static void falls_short(const uv_stream_t *stream, size_t bytes)
{
	const struct weft__uv_thing *thing = bytes ? weft__uv_find_handle(stream) : NULL;
	if (thing)
		weft_hook_fell_short(thing->fd, thing->id, bytes);
}

/* For libweft-uv, which sends files past libuv, and tells of no connection where this function is: so many bytes are about to be
 * written; below 0: so many were not. */
__attribute__((visibility("default"))) void weft_hook_sends_past_libuv(int fd, int64_t bytes);

void weft_hook_sends_past_libuv(int fd, int64_t bytes)
{
	if (bytes < 0)
		weft_hook_fell_short(fd, weft_hook_carrier(fd), (size_t)-bytes);
	else
		weft_hook_goes_out(fd, weft_hook_carrier(fd), (size_t)bytes);
}

/* ---- Beginning ---- */

int weft__uv_listen(struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, int backlog, uv_connection_cb cb)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_listen(stream, backlog, cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_listen(stream, backlog, weft__uv_connection_slot(cb)));
	struct weft__uv_thing *thing = status == 0 ? weft__uv_handle(copy, caller, stream) : NULL;
	if (weft__uv_begin(thing, WEFT_KIND_LISTEN, caller)) {
		weft__uv_put(thing, "listen ");
		weft__uv_put_handle(thing, (uv_handle_t *)stream);
		weft__uv_say(thing);
	}
	return status;
}

void weft__uv_connection_called(uv_stream_t *stream, int status, unsigned slot)
{
	WEFT__UV_FRAME frame = weft__uv_enter_signalled(stream);
	(void)frame;
	weft__uv_connection_user(slot)(stream, status);
}

int weft__uv_accept(struct weft__uv_copy *copy, const void *caller, uv_stream_t *server, uv_stream_t *client)
{
	bool taken = weft__uv_takes(copy, caller);
	int status = WEFT__UV_INSIDE(copy->real.uv_accept(server, client));
	if (status == 0 && taken && client->type != UV_UDP) {
		struct weft__uv_thing *thing = weft__uv_stream(copy, caller, client, "from ");
		goes_out(thing, client, 0);
	}
	return status;
}

int weft__uv_tcp_connect(struct weft__uv_copy *copy, const void *caller, uv_connect_t *req, uv_tcp_t *handle,
    const struct sockaddr *to, uv_connect_cb cb)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_tcp_connect(req, handle, to, cb);
	struct weft__uv_thing *stream = weft__uv_handle(copy, caller, handle);
	if (weft__uv_begin(stream, WEFT_KIND_CONNECTION, caller)) {
		weft__uv_put(stream, "to ");
		weft__uv_put_address(stream, to);
		weft__uv_say(stream);
	}
	struct weft__uv_thing *thing = weft__uv_request(copy, caller, req, handle->loop, WEFT_KIND_CONNECT, stream);
	if (thing) {
		weft__uv_put_address(thing, to);
		weft__uv_say(thing);
	}
	if (stream)
		stream->connects = true;
	int status = WEFT__UV_INSIDE(copy->real.uv_tcp_connect(req, handle, to, weft__uv_connect_slot_or_none(cb)));
	if (status)
		weft__uv_refused(thing, status);
	return status;
}

static struct weft__uv_thing *pipe_connects(
    struct weft__uv_copy *copy, const void *caller, uv_connect_t *req, uv_pipe_t *handle, const char *name)
{
	struct weft__uv_thing *stream = weft__uv_handle(copy, caller, handle);
	if (weft__uv_begin(stream, WEFT_KIND_CONNECTION, caller)) {
		weft__uv_put(stream, "to ");
		weft__uv_put_path(stream, name);
		weft__uv_say(stream);
	}
	struct weft__uv_thing *thing = weft__uv_request(copy, caller, req, handle->loop, WEFT_KIND_CONNECT, stream);
	if (thing) {
		weft__uv_put_path(thing, name);
		weft__uv_say(thing);
	}
	if (stream)
		stream->connects = true;
	return thing;
}

void weft__uv_pipe_connect(
    struct weft__uv_copy *copy, const void *caller, uv_connect_t *req, uv_pipe_t *handle, const char *name, uv_connect_cb cb)
{
	if (!weft__uv_takes(copy, caller)) {
		copy->real.uv_pipe_connect(req, handle, name, cb);
		return;
	}
	pipe_connects(copy, caller, req, handle, name);
	weft__uv_here.inside++;
	copy->real.uv_pipe_connect(req, handle, name, weft__uv_connect_slot_or_none(cb));
	weft__uv_here.inside--;
}

int weft__uv_pipe_connect2(struct weft__uv_copy *copy, const void *caller, uv_connect_t *req, uv_pipe_t *handle, const char *name,
    size_t length, unsigned flags, uv_connect_cb cb)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_pipe_connect2(req, handle, name, length, flags, cb);
	char text[WEFT_HOOK_LABEL] = ""; /* the name may have no end, and begin with a 0 */
	for (size_t i = 0; i < length && i < sizeof text - 1; i++)
		text[i] = name[i] ? name[i] : '@';
	struct weft__uv_thing *thing = pipe_connects(copy, caller, req, handle, text);
	int status =
	    WEFT__UV_INSIDE(copy->real.uv_pipe_connect2(req, handle, name, length, flags, weft__uv_connect_slot_or_none(cb)));
	if (status)
		weft__uv_refused(thing, status);
	return status;
}

void weft__uv_connect_called(uv_connect_t *req, int status, unsigned slot)
{
	uv_connect_cb user = weft__uv_connect_user(slot);
	WEFT__UV_FRAME frame = weft__uv_enter_request(req, status);
	(void)frame;
	struct weft__uv_thing *stream = weft_is_on() ? weft__uv_find_handle(req->handle) : NULL;
	if (stream) {
		stream->connects = false;
		/* What it was asked to write before it was connected goes out from now on. */
		if (status == 0)
			goes_out(stream, req->handle, req->handle->write_queue_size);
	}
	if (user)
		user(req, status);
}

/* ---- Reading ---- */

/* From the start, or the last data, to the next data. */
static void awaits_input(struct weft__uv_thing *thing)
{
	if (thing->input || !thing->id)
		return;
	thing->input = weft__create_awaited(thing->id, WEFT_KIND_STREAM_READ, thing->read_site, thing->id, NULL, 0);
	thing->input_since = weft_is_on() ? weft__stream->last : 0;
}

void weft__uv_reads_already(struct weft__uv_thing *thing)
{
	thing->input_since = thing->since;
	thing->input = weft_pending_at(thing->id, 0, WEFT_KIND_STREAM_READ, NULL, thing->since, NULL);
	weft_still_awaits(thing->id, thing->input);
}

int weft__uv_read_start(struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, uv_alloc_cb alloc, uv_read_cb cb)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_read_start(stream, alloc, cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_read_start(stream, alloc, weft__uv_read_slot(cb)));
	struct weft__uv_thing *thing = status == 0 ? weft__uv_stream(copy, caller, stream, "") : NULL;
	if (thing) {
		thing->read_site = weft__uv_site(caller);
		thing->reads = true;
		awaits_input(thing);
	}
	return status;
}

int weft__uv_read_stop(struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream)
{
	int status = WEFT__UV_INSIDE(copy->real.uv_read_stop(stream));
	struct weft__uv_thing *thing = weft__uv_takes(copy, caller) ? weft__uv_find_handle(stream) : NULL;
	if (thing) {
		thing->reads = false;
		weft__uv_drop_input(thing);
		weft__uv_dirty();
	}
	return status;
}

static void input_comes(struct weft__uv_thing *thing, ssize_t got)
{
	struct weft__uv_here *here = &weft__uv_here;
	weft_id input = thing->input;
	thing->input = 0;
	thing->reads = thing->reads && got > 0;
	thing->home = here;
	if (!input) {
		weft_hook_show(thing->id);
		return;
	}
	if (got == UV_EOF)
		WEFT_LABEL(input, "end of input");
	if (got < 0 && got != UV_EOF) {
		weft_fail(WEFT_SYSTEM_ID, input, thing->copy->real.uv_strerror((int)got));
		weft_read(thing->id, input);
	} else {
		weft__resolve_read(WEFT_SYSTEM_ID, input, thing->id);
	}
	weft__hook_thread.shown = thing->id;
}

void weft__uv_read_called(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf, unsigned slot)
{
	uv_read_cb user = weft__uv_read_user(slot);
	struct weft__uv_thing *thing = got != 0 && weft_is_on() ? weft__uv_find_handle(stream) : NULL;
	if (!thing || !thing->id) {
		user(stream, got, buf);
		return;
	}
	weft__uv_tag tag = weft__uv_tag_of(thing);
	input_comes(thing, got);
	WEFT__UV_FRAME frame = weft__uv_enter(thing->id, tag);
	(void)frame;
	user(stream, got, buf);
	thing = weft__uv_find(tag); /* its memory may be gone: only the thing says that it still reads */
	if (thing && thing->reads && !thing->is_closing && weft_is_on())
		awaits_input(thing);
}

/* ---- Writing ---- */

static struct weft__uv_thing *writes(struct weft__uv_copy *copy, const void *caller, const uv_write_t *req, uv_stream_t *stream,
    const uv_buf_t bufs[], unsigned count)
{
	struct weft__uv_thing *owner = weft__uv_stream(copy, caller, stream, "");
	return owner ? weft__uv_write_request(copy, caller, req, owner, bufs, count) : NULL;
}

int weft__uv_write(struct weft__uv_copy *copy, const void *caller, uv_write_t *req, uv_stream_t *stream, const uv_buf_t bufs[],
    unsigned count, uv_write_cb cb)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_write(req, stream, bufs, count, cb);
	struct weft__uv_thing *thing = writes(copy, caller, req, stream, bufs, count);
	const size_t bytes = goes_out(weft__uv_find_handle(stream), stream, bytes_of(bufs, count));
	int status = WEFT__UV_INSIDE(copy->real.uv_write(req, stream, bufs, count, weft__uv_write_slot_or_none(cb)));
	if (status) {
		weft__uv_refused(thing, status);
		falls_short(stream, bytes);
	}
	return status;
}

int weft__uv_write2(struct weft__uv_copy *copy, const void *caller, uv_write_t *req, uv_stream_t *stream, const uv_buf_t bufs[],
    unsigned count, uv_stream_t *sent, uv_write_cb cb)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_write2(req, stream, bufs, count, sent, cb);
	struct weft__uv_thing *thing = writes(copy, caller, req, stream, bufs, count);
	const size_t bytes = goes_out(weft__uv_find_handle(stream), stream, bytes_of(bufs, count));
	int status = WEFT__UV_INSIDE(copy->real.uv_write2(req, stream, bufs, count, sent, weft__uv_write_slot_or_none(cb)));
	if (status) {
		weft__uv_refused(thing, status);
		falls_short(stream, bytes);
	}
	return status;
}

void weft__uv_write_called(uv_write_t *req, int status, unsigned slot)
{
	uv_write_cb user = weft__uv_write_user(slot);
	WEFT__UV_FRAME frame = weft__uv_enter_request(req, status);
	(void)frame;
	if (user)
		user(req, status);
}

/* A write that has ended when it begins, whoever runs: it is the socket that wrote. */
static void wrote(const void *caller, int bytes, const struct sockaddr *to, struct weft__uv_thing *socket)
{
	if (!socket)
		return;
	struct weft__uv_thing text = {.copy = socket->copy};
	text.id = weft_create_at(weft__hook_thread.running, WEFT_KIND_STREAM_WRITE, weft__uv_site(caller));
	weft__uv_put_number(&text, (unsigned)bytes);
	weft__uv_put(&text, to ? " bytes to " : " bytes");
	if (to)
		weft__uv_put_address(&text, to);
	weft__uv_say(&text);
	weft_resolve(WEFT_SYSTEM_ID, text.id);
	weft_read_later(socket->id, text.id);
}

static void tried(const void *caller, const uv_stream_t *stream, struct weft__uv_thing *thing, size_t bytes, int status)
{
	if (bytes > (size_t)(status > 0 ? status : 0))
		falls_short(stream, bytes - (size_t)(status > 0 ? status : 0));
	if (thing && status > 0)
		wrote(caller, status, NULL, thing);
}

int weft__uv_try_write(struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, const uv_buf_t bufs[], unsigned count)
{
	struct weft__uv_thing *thing = weft__uv_takes(copy, caller) ? weft__uv_stream(copy, caller, stream, "") : NULL;
	const size_t bytes = goes_out(thing, stream, bytes_of(bufs, count));
	int status = WEFT__UV_INSIDE(copy->real.uv_try_write(stream, bufs, count));
	tried(caller, stream, thing, bytes, status);
	return status;
}

int weft__uv_try_write2(
    struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, const uv_buf_t bufs[], unsigned count, uv_stream_t *sent)
{
	struct weft__uv_thing *thing = weft__uv_takes(copy, caller) ? weft__uv_stream(copy, caller, stream, "") : NULL;
	const size_t bytes = goes_out(thing, stream, bytes_of(bufs, count));
	int status = WEFT__UV_INSIDE(copy->real.uv_try_write2(stream, bufs, count, sent));
	tried(caller, stream, thing, bytes, status);
	return status;
}

int weft__uv_shutdown(struct weft__uv_copy *copy, const void *caller, uv_shutdown_t *req, uv_stream_t *stream, uv_shutdown_cb cb)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_shutdown(req, stream, cb);
	struct weft__uv_thing *owner = weft__uv_stream(copy, caller, stream, "");
	struct weft__uv_thing *thing = weft__uv_request(copy, caller, req, stream->loop, WEFT_KIND_SHUTDOWN, owner);
	int status = WEFT__UV_INSIDE(copy->real.uv_shutdown(req, stream, weft__uv_shutdown_slot_or_none(cb)));
	if (status)
		weft__uv_refused(thing, status);
	return status;
}

void weft__uv_shutdown_called(uv_shutdown_t *req, int status, unsigned slot)
{
	uv_shutdown_cb user = weft__uv_shutdown_user(slot);
	WEFT__UV_FRAME frame = weft__uv_enter_request(req, status);
	(void)frame;
	if (user)
		user(req, status);
}

/* ---- Datagrams ---- */

/* Before the call. */
static void sends(const struct weft__uv_thing *thing, weft_id promise, const uv_udp_t *handle, const uv_buf_t bufs[],
    unsigned count, const struct sockaddr *to)
{
	uv_os_fd_t fd;
	if (!promise || (!to && thing->copy->real.uv_fileno((const uv_handle_t *)handle, &fd)))
		return;
	/* libuv's buffers are laid out as an iovec is. */
	const struct weft_digest digest = weft_hook_digest((const struct iovec *)(const void *)bufs, count);
	weft_datagram_sent(promise, to ? -1 : fd, to, &digest);
}

static void came(const struct weft__uv_thing *socket, weft_id promise, const uv_udp_t *handle, const void *bytes, size_t count)
{
	struct weft_digest digest = {0};
	uv_os_fd_t fd;
	if (socket->copy->real.uv_fileno((const uv_handle_t *)handle, &fd))
		return;
	weft_digest(&digest, bytes, count);
	weft_datagram_received(promise, fd, &digest);
}

/* One that is known by no address of its own when it first sends is called by whom it asks. */
static struct weft__uv_thing *udp(
    struct weft__uv_copy *copy, const void *caller, const uv_udp_t *handle, const struct sockaddr *to)
{
	struct weft__uv_thing *thing = weft__uv_handle(copy, caller, handle);
	if (weft__uv_begin(thing, WEFT_KIND_CONNECTION, caller)) {
		weft__uv_put(thing, "udp ");
		const unsigned unnamed = thing->label.length;
		weft__uv_put_handle(thing, (const uv_handle_t *)handle);
		if (to && thing->label.length == unnamed) {
			weft__uv_put(thing, "to ");
			weft__uv_put_address(thing, to);
		}
		weft__uv_say(thing);
	}
	if (thing)
		weft__uv_carries(thing, (const uv_handle_t *)handle);
	return thing;
}

int weft__uv_udp_recv_start(
    struct weft__uv_copy *copy, const void *caller, uv_udp_t *handle, uv_alloc_cb alloc, uv_udp_recv_cb cb)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_udp_recv_start(handle, alloc, cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_udp_recv_start(handle, alloc, weft__uv_udp_recv_slot(cb)));
	struct weft__uv_thing *thing = status == 0 ? udp(copy, caller, handle, NULL) : NULL;
	if (thing)
		thing->read_site = weft__uv_site(caller);
	return status;
}

int weft__uv_udp_recv_stop(struct weft__uv_copy *copy, const void *caller, uv_udp_t *handle)
{
	int status = WEFT__UV_INSIDE(copy->real.uv_udp_recv_stop(handle));
	weft__uv_dirty();
	return status;
}

void weft__uv_datagram_release(weft__uv_tag tag)
{
	struct weft__uv_thing *thing = tag ? weft__uv_find(tag) : NULL;
	if (!thing || !thing->is_datagram || --thing->children > 0)
		return;
	if (weft_is_on())
		weft_resolve(thing->id, thing->id);
	weft__uv_thing_free(thing);
}

/* Each datagram is a request of its own, whose handling goes on until all that it started has ended: its handler is the first of
 * its children.  Nothing got and no address: libuv says that there is no more for now. */
void weft__uv_udp_recv_called(
    uv_udp_t *handle, ssize_t got, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags, unsigned slot)
{
	uv_udp_recv_cb user = weft__uv_udp_recv_user(slot);
	struct weft__uv_thing *socket = (got != 0 || from) && weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	struct weft__uv_thing *thing = socket && socket->id ? weft__uv_thing_of_datagram(socket) : NULL;
	if (!thing) {
		user(handle, got, buf, from, flags);
		return;
	}
	thing->kind = WEFT_KIND_REQUEST;
	thing->by = socket->id;
	thing->site = socket->read_site;
	thing->children = 1;
	thing->id = weft_create_at(socket->id, WEFT_KIND_REQUEST, thing->site);
	thing->since = weft__stream->last;
	if (from) {
		weft__uv_put(thing, "from ");
		weft__uv_put_address(thing, from);
	} else {
		weft__uv_put(thing, "error");
	}
	weft__uv_say(thing);
	if (got >= 0)
		came(socket, thing->id, handle, buf->base, (size_t)got);
	weft_hook_show(thing->id);
	weft__uv_tag tag = weft__uv_tag_of(thing);
	WEFT__UV_FRAME frame = weft__uv_enter(thing->id, tag);
	frame.datagram = tag;
	user(handle, got, buf, from, flags);
}

int weft__uv_udp_send(struct weft__uv_copy *copy, const void *caller, uv_udp_send_t *req, uv_udp_t *handle, const uv_buf_t bufs[],
    unsigned count, const struct sockaddr *to, uv_udp_send_cb cb)
{
	if (!weft__uv_takes(copy, caller))
		return copy->real.uv_udp_send(req, handle, bufs, count, to, cb);
	udp(copy, caller, handle, to);
	struct weft__uv_thing *thing = weft__uv_request(copy, caller, req, handle->loop, WEFT_KIND_STREAM_WRITE, NULL);
	if (thing) {
		weft__uv_put_bytes(thing, bufs, count);
		weft__uv_put(thing, to ? " to " : "");
		if (to)
			weft__uv_put_address(thing, to);
		weft__uv_say(thing);
		sends(thing, thing->id, handle, bufs, count, to);
	}
	int status = WEFT__UV_INSIDE(copy->real.uv_udp_send(req, handle, bufs, count, to, weft__uv_udp_send_slot_or_none(cb)));
	if (status)
		weft__uv_refused(thing, status);
	return status;
}

void weft__uv_udp_send_called(uv_udp_send_t *req, int status, unsigned slot)
{
	uv_udp_send_cb user = weft__uv_udp_send_user(slot);
	WEFT__UV_FRAME frame = weft__uv_enter_request(req, status);
	(void)frame;
	if (user)
		user(req, status);
}

int weft__uv_udp_try_send(struct weft__uv_copy *copy, const void *caller, uv_udp_t *handle, const uv_buf_t bufs[], unsigned count,
    const struct sockaddr *to)
{
	struct weft__uv_thing *socket = weft__uv_takes(copy, caller) ? udp(copy, caller, handle, to) : NULL;
	if (socket)
		sends(socket, socket->id, handle, bufs, count, to);
	int status = WEFT__UV_INSIDE(copy->real.uv_udp_try_send(handle, bufs, count, to));
	if (status > 0 && socket)
		wrote(caller, status, to, socket);
	return status;
}

int weft__uv_udp_try_send2(struct weft__uv_copy *copy, const void *caller, uv_udp_t *handle, unsigned count, uv_buf_t *bufs[],
    unsigned counts[], struct sockaddr *to[], unsigned flags)
{
	bool taken = weft__uv_takes(copy, caller);
	int sent = WEFT__UV_INSIDE(copy->real.uv_udp_try_send2(handle, count, bufs, counts, to, flags));
	struct weft__uv_thing *socket = sent > 0 && taken ? udp(copy, caller, handle, to ? to[0] : NULL) : NULL;
	for (int i = 0; socket && i < sent; i++) {
		size_t bytes = 0;
		for (unsigned j = 0; j < counts[i]; j++)
			bytes += bufs[i][j].len;
		wrote(caller, (int)bytes, to ? to[i] : NULL, socket);
	}
	return sent;
}
