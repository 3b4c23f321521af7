/* stream.c: records connections, listeners and datagrams of libuv.  SPDX-License-Identifier: ISC */
#include "adapters/uv/callback.h"
#include "adapters/uv/promise.h"
#include "adapters/uv/question.h"
#include "adapters/uv/slots.h"

#define STREAM_INIT(function, handle_type, parameters, arguments)                                                                \
	int weft__uv_##function(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, handle_type *handle parameters) \
	{                                                                                                                        \
		bool is_recorded = weft__uv_should_record(copy, caller);                                                         \
		int status = WEFT__UV_INSIDE(copy->real.uv_##function(loop, handle arguments));                                  \
		if (status == 0 && is_recorded)                                                                                  \
			weft__uv_handle_create(copy, caller, handle);                                                            \
		return status;                                                                                                   \
	}
#define COMMA ,
STREAM_INIT(tcp_init, uv_tcp_t, , )
STREAM_INIT(tcp_init_ex, uv_tcp_t, COMMA unsigned flags, COMMA flags)
STREAM_INIT(pipe_init, uv_pipe_t, COMMA int ipc, COMMA ipc)
STREAM_INIT(tty_init, uv_tty_t, COMMA uv_file fd COMMA int readable, COMMA fd COMMA readable)
STREAM_INIT(udp_init, uv_udp_t, , )
STREAM_INIT(udp_init_ex, uv_udp_t, COMMA unsigned flags, COMMA flags)

static struct weft__uv_object *create_stream(
    struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, const char *prefix)
{
	struct weft__uv_object *object = weft__uv_handle(copy, caller, stream);
	if (weft__uv_begin(object, WEFT_KIND_CONNECTION, caller)) {
		weft__uv_append(object, prefix);
		weft__uv_append_handle(object, (uv_handle_t *)stream);
		weft__uv_record_label(object);
		weft__uv_attach_fd(object, (uv_handle_t *)stream);
	}
	return object;
}

/* Returns the stream's object, whose promise begins with its first use; `prefix` precedes the address in the label. */
static inline struct weft__uv_object *get_stream(
    struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, const char *prefix)
{
	struct weft__uv_object *object = weft__uv_find_handle(stream);
	return __builtin_expect(object && object->id, 1) ? object : create_stream(copy, caller, stream, prefix);
}

/* ---- Positions in connections ---- */

static size_t count_bytes(const uv_buf_t bufs[], unsigned count)
{
	size_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += bufs[i].len;
	return bytes;
}

/* Records a write; call it before the original function, because libuv may write at once.  Returns the number of recorded bytes,
 * for retract_write(). */
static size_t record_write(struct weft__uv_object *object, const uv_stream_t *stream, size_t bytes)
{
	if (!object || !weft_is_on())
		return 0;
	weft__uv_attach_fd(object, (const uv_handle_t *)stream);
	weft_hook_fd_record_write(object->fd, object->id, bytes);
	return bytes;
}

/* Retracts recorded bytes that were not written. */
static void retract_write(const uv_stream_t *stream, size_t bytes)
{
	const struct weft__uv_object *object = bytes ? weft__uv_find_handle(stream) : NULL;
	if (object)
		weft_hook_fd_retract_write(object->fd, object->id, bytes);
}

/* libweft-uv calls this function when it sends files without libuv; libweft-uv then records no connections itself.  `bytes` is
 * the number of bytes that will be written; a negative number means that so many bytes were not written. */
__attribute__((visibility("default"))) void weft_hook_sends_past_libuv(int fd, int64_t bytes);

void weft_hook_sends_past_libuv(int fd, int64_t bytes)
{
	if (bytes < 0)
		weft_hook_fd_retract_write(fd, weft_hook_fd_promise(fd), (size_t)-bytes);
	else
		weft_hook_fd_record_write(fd, weft_hook_fd_promise(fd), (size_t)bytes);
}

/* ---- Listeners and connects ---- */

int weft__uv_listen(struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, int backlog, uv_connection_cb cb)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_listen(stream, backlog, cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_listen(stream, backlog, weft__uv_connection_slot(cb)));
	struct weft__uv_object *object = status == 0 ? weft__uv_handle(copy, caller, stream) : NULL;
	if (weft__uv_begin(object, WEFT_KIND_LISTEN, caller)) {
		uv_os_fd_t fd;
		weft__uv_append(object, "listen ");
		weft__uv_append_handle(object, (uv_handle_t *)stream);
		weft__uv_record_label(object);
		if (copy->real.uv_fileno((uv_handle_t *)stream, &fd) == 0)
			weft__loop_leave_listener(fd);
	}
	return status;
}

void weft__uv_connection_called(uv_stream_t *stream, int status, unsigned slot)
{
	WEFT__UV_FRAME frame = weft__uv_enter_signalled_handle(stream);
	(void)frame;
	weft__uv_connection_user(slot)(stream, status);
}

int weft__uv_accept(struct weft__uv_copy *copy, const void *caller, uv_stream_t *server, uv_stream_t *client)
{
	bool is_recorded = weft__uv_should_record(copy, caller);
	int status = WEFT__UV_INSIDE(copy->real.uv_accept(server, client));
	if (status == 0 && is_recorded && client->type != UV_UDP) {
		const struct weft__uv_object *listener = weft__uv_find_handle(server);
		struct weft__uv_object *object = weft__uv_handle(copy, caller, client);
		if (object && listener && !object->line)
			object->line = listener->line;
		object = get_stream(copy, caller, client, "from ");
		record_write(object, client, 0);
		if (object)
			object->is_accepted = true;
	}
	return status;
}

int weft__uv_tcp_connect(struct weft__uv_copy *copy, const void *caller, uv_connect_t *req, uv_tcp_t *handle,
    const struct sockaddr *to, uv_connect_cb cb)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_tcp_connect(req, handle, to, cb);
	struct weft__uv_object *stream = weft__uv_handle(copy, caller, handle);
	if (weft__uv_begin(stream, WEFT_KIND_CONNECTION, caller)) {
		weft__uv_append(stream, "to ");
		weft__uv_append_address(stream, to);
		weft__uv_record_label(stream);
	}
	struct weft__uv_object *object = weft__uv_request(copy, caller, req, handle->loop, WEFT_KIND_CONNECT, stream);
	if (object) {
		weft__uv_append_address(object, to);
		weft__uv_record_label(object);
	}
	if (stream)
		stream->connects = stream->asks = true;
	int status = WEFT__UV_INSIDE(copy->real.uv_tcp_connect(req, handle, to, weft__uv_connect_slot_or_none(cb)));
	if (status)
		weft__uv_fail_request(object, status);
	return status;
}

static struct weft__uv_object *begin_pipe_connect(
    struct weft__uv_copy *copy, const void *caller, uv_connect_t *req, uv_pipe_t *handle, const char *name)
{
	struct weft__uv_object *stream = weft__uv_handle(copy, caller, handle);
	if (weft__uv_begin(stream, WEFT_KIND_CONNECTION, caller)) {
		weft__uv_append(stream, "to ");
		weft__uv_append_path(stream, name);
		weft__uv_record_label(stream);
	}
	struct weft__uv_object *object = weft__uv_request(copy, caller, req, handle->loop, WEFT_KIND_CONNECT, stream);
	if (object) {
		weft__uv_append_path(object, name);
		weft__uv_record_label(object);
	}
	if (stream)
		stream->connects = stream->asks = true;
	return object;
}

void weft__uv_pipe_connect(
    struct weft__uv_copy *copy, const void *caller, uv_connect_t *req, uv_pipe_t *handle, const char *name, uv_connect_cb cb)
{
	if (!weft__uv_should_record(copy, caller)) {
		copy->real.uv_pipe_connect(req, handle, name, cb);
		return;
	}
	begin_pipe_connect(copy, caller, req, handle, name);
	weft__uv_get_here()->nested_calls++;
	copy->real.uv_pipe_connect(req, handle, name, weft__uv_connect_slot_or_none(cb));
	weft__uv_get_here()->nested_calls--;
}

int weft__uv_pipe_connect2(struct weft__uv_copy *copy, const void *caller, uv_connect_t *req, uv_pipe_t *handle, const char *name,
    size_t length, unsigned flags, uv_connect_cb cb)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_pipe_connect2(req, handle, name, length, flags, cb);
	char text[WEFT_HOOK_LABEL_BYTES] = ""; /* the name may lack a terminating NUL, and may start with a NUL */
	for (size_t i = 0; i < length && i < sizeof text - 1; i++)
		text[i] = name[i] ? name[i] : '@';
	struct weft__uv_object *object = begin_pipe_connect(copy, caller, req, handle, text);
	int status =
	    WEFT__UV_INSIDE(copy->real.uv_pipe_connect2(req, handle, name, length, flags, weft__uv_connect_slot_or_none(cb)));
	if (status)
		weft__uv_fail_request(object, status);
	return status;
}

void weft__uv_connect_called(uv_connect_t *req, int status, unsigned slot)
{
	uv_connect_cb user = weft__uv_connect_user(slot);
	WEFT__UV_FRAME frame = weft__uv_enter_request(req, status);
	(void)frame;
	struct weft__uv_object *stream = weft_is_on() ? weft__uv_find_handle(req->handle) : NULL;
	if (stream) {
		stream->connects = false;
		/* Writes that were queued before the connect ended start now. */
		if (status == 0)
			record_write(stream, req->handle, req->handle->write_queue_size);
	}
	if (user)
		user(req, status);
}

/* ---- Reading ---- */

/* Begins a read, which is pending until the next data arrives. */
static void await_input(struct weft__uv_object *object)
{
	if (object->input || !object->id)
		return;
	if (object->line) {
		object->input = weft_create(object->id, WEFT_KIND_STREAM_READ, object->line);
		weft_await(object->id, object->input);
	} else
		object->input = weft__create_awaited(object->id, WEFT_KIND_STREAM_READ, object->read_site, object->id, NULL, 0);
	object->input_since = weft_is_on() ? weft__stream->last : 0;
}

int weft__uv_read_start(struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, uv_alloc_cb alloc, uv_read_cb cb)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_read_start(stream, alloc, cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_read_start(stream, alloc, weft__uv_read_slot(cb)));
	struct weft__uv_object *object = status == 0 ? get_stream(copy, caller, stream, "") : NULL;
	if (object) {
		object->read_site = weft__uv_site(caller);
		object->reads = true;
		await_input(object);
	}
	return status;
}

int weft__uv_read_stop(struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream)
{
	int status = WEFT__UV_INSIDE(copy->real.uv_read_stop(stream));
	struct weft__uv_object *object = weft__uv_should_record(copy, caller) ? weft__uv_find_handle(stream) : NULL;
	if (object) {
		object->reads = false;
		weft__uv_drop_input(object);
		weft__uv_mark_loop_dirty();
	}
	return status;
}

static void end_input(struct weft__uv_object *object, ssize_t got)
{
	weft_id input = object->input;
	object->input = 0;
	object->reads = object->reads && got > 0;
	weft__uv_own(object);
	if (!input) {
		weft_hook_record_running(object->id);
		return;
	}
	if (got == UV_EOF)
		WEFT_LABEL(input, "end of input");
	if (got < 0 && got != UV_EOF) {
		weft_fail(WEFT_SYSTEM_ID, input, object->copy->real.uv_strerror((int)got));
		weft_read(object->id, input);
	} else {
		weft__resolve_read(WEFT_SYSTEM_ID, input, object->id);
	}
	weft__hook_get_thread()->recorded_running = object->id;
}

/* Returns whether a read begins with a record of TLS's handshake. */
static bool begins_handshake(const uv_buf_t *buf, ssize_t got)
{
	enum { HANDSHAKE = 22, VERSION = 3, RECORD_BYTES = 6 };
	return got >= RECORD_BYTES && buf->base[0] == HANDSHAKE && buf->base[1] == VERSION;
}

void weft__uv_read_called(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf, unsigned slot)
{
	uv_read_cb user = weft__uv_read_user(slot);
	struct weft__uv_object *object = got != 0 && weft_is_on() ? weft__uv_find_handle(stream) : NULL;
	if (!object || !object->id) {
		user(stream, got, buf);
		return;
	}
	weft__uv_tag tag = weft__uv_tag_of(object);
	const weft_id input = object->input;
	end_input(object, got);
	weft__uv_get_here()->read = input;
	const bool has_questions = object->is_accepted || object->asks, is_readable = !object->is_encrypted || got < 0;
	weft__uv_tag actor = tag;
	const weft_id id = object->is_accepted && is_readable ? weft__uv_question_read(object, input, buf, got)
			   : object->asks && is_readable      ? weft__uv_question_get_answer(object, buf->base, got, &actor)
							      : object->id;
	weft__uv_get_here()->encrypted = has_questions && begins_handshake(buf, got) ? tag : 0;
	WEFT__UV_FRAME frame = weft__uv_enter_callback(id, actor);
	(void)frame;
	weft__uv_get_here()->line = object->line;
	user(stream, got, buf);
	weft__uv_get_here()->encrypted = 0;
	weft__uv_get_here()->read = 0;
	object = weft__uv_find(tag); /* the stream may be freed; its object says whether it still reads */
	if (has_questions && object && weft_is_on())
		weft__uv_question_leave(object);
	if (object && object->reads && !object->is_closing && weft_is_on())
		await_input(object);
}

/* ---- Writing ---- */

/* Call it before the original function, because libuv may write at once. */
static void record_question(const uv_stream_t *stream, const uv_buf_t bufs[], unsigned count)
{
	struct weft__uv_object *object = weft__uv_find_handle(stream);
	if (object && object->asks && !object->is_encrypted && weft_is_on())
		weft__uv_question_ask(object, bufs, count);
}

static void record_answer(const uv_stream_t *stream, const uv_buf_t bufs[], unsigned count)
{
	const struct weft__uv_object *object = weft__uv_find_handle(stream);
	if (object && object->is_accepted && !object->is_encrypted && weft_is_on())
		weft__uv_question_answer(object, bufs, count);
}

static struct weft__uv_object *begin_write(struct weft__uv_copy *copy, const void *caller, const uv_write_t *req,
    uv_stream_t *stream, const uv_buf_t bufs[], unsigned count)
{
	struct weft__uv_object *owner = get_stream(copy, caller, stream, "");
	record_question(stream, bufs, count);
	return owner ? weft__uv_write_request(copy, caller, req, owner, bufs, count) : NULL;
}

int weft__uv_write(struct weft__uv_copy *copy, const void *caller, uv_write_t *req, uv_stream_t *stream, const uv_buf_t bufs[],
    unsigned count, uv_write_cb cb)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_write(req, stream, bufs, count, cb);
	struct weft__uv_object *object = begin_write(copy, caller, req, stream, bufs, count);
	const size_t bytes = record_write(weft__uv_find_handle(stream), stream, count_bytes(bufs, count));
	int status = WEFT__UV_INSIDE(copy->real.uv_write(req, stream, bufs, count, weft__uv_write_slot_or_none(cb)));
	if (status) {
		weft__uv_fail_request(object, status);
		retract_write(stream, bytes);
	} else if (object) {
		record_answer(stream, bufs, count);
	}
	return status;
}

int weft__uv_write2(struct weft__uv_copy *copy, const void *caller, uv_write_t *req, uv_stream_t *stream, const uv_buf_t bufs[],
    unsigned count, uv_stream_t *sent, uv_write_cb cb)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_write2(req, stream, bufs, count, sent, cb);
	struct weft__uv_object *object = begin_write(copy, caller, req, stream, bufs, count);
	const size_t bytes = record_write(weft__uv_find_handle(stream), stream, count_bytes(bufs, count));
	int status = WEFT__UV_INSIDE(copy->real.uv_write2(req, stream, bufs, count, sent, weft__uv_write_slot_or_none(cb)));
	if (status) {
		weft__uv_fail_request(object, status);
		retract_write(stream, bytes);
	} else if (object) {
		record_answer(stream, bufs, count);
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

/* Records a write of the socket that has ended at once. */
static void record_finished_write(const void *caller, int bytes, const struct sockaddr *to, struct weft__uv_object *socket)
{
	if (!socket)
		return;
	struct weft__uv_object text = {.copy = socket->copy};
	text.kind = WEFT_KIND_STREAM_WRITE;
	text.by = weft__hook_get_thread()->running;
	text.site = weft__uv_site(caller);
	text.line = weft__uv_find_line(false);
	text.line = text.line ? text.line : socket->line;
	text.id = weft__uv_create_promise(&text);
	weft__uv_append_number(&text, (unsigned)bytes);
	weft__uv_append(&text, to ? " bytes to " : " bytes");
	if (to)
		weft__uv_append_address(&text, to);
	weft__uv_record_label(&text);
	weft_resolve(WEFT_SYSTEM_ID, text.id);
	weft_read_later(socket->id, text.id);
}

static void record_try_write(
    const void *caller, const uv_stream_t *stream, struct weft__uv_object *object, size_t bytes, int status)
{
	if (bytes > (size_t)(status > 0 ? status : 0))
		retract_write(stream, bytes - (size_t)(status > 0 ? status : 0));
	if (object && status > 0)
		record_finished_write(caller, status, NULL, object);
}

int weft__uv_try_write(struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, const uv_buf_t bufs[], unsigned count)
{
	struct weft__uv_object *object = weft__uv_should_record(copy, caller) ? get_stream(copy, caller, stream, "") : NULL;
	if (object)
		record_question(stream, bufs, count);
	const size_t bytes = record_write(object, stream, count_bytes(bufs, count));
	int status = WEFT__UV_INSIDE(copy->real.uv_try_write(stream, bufs, count));
	record_try_write(caller, stream, object, bytes, status);
	if (object && status > 0)
		record_answer(stream, bufs, count);
	return status;
}

int weft__uv_try_write2(
    struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, const uv_buf_t bufs[], unsigned count, uv_stream_t *sent)
{
	struct weft__uv_object *object = weft__uv_should_record(copy, caller) ? get_stream(copy, caller, stream, "") : NULL;
	if (object)
		record_question(stream, bufs, count);
	const size_t bytes = record_write(object, stream, count_bytes(bufs, count));
	int status = WEFT__UV_INSIDE(copy->real.uv_try_write2(stream, bufs, count, sent));
	record_try_write(caller, stream, object, bytes, status);
	if (object && status > 0)
		record_answer(stream, bufs, count);
	return status;
}

int weft__uv_shutdown(struct weft__uv_copy *copy, const void *caller, uv_shutdown_t *req, uv_stream_t *stream, uv_shutdown_cb cb)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_shutdown(req, stream, cb);
	struct weft__uv_object *owner = get_stream(copy, caller, stream, "");
	struct weft__uv_object *object = weft__uv_request(copy, caller, req, stream->loop, WEFT_KIND_SHUTDOWN, owner);
	int status = WEFT__UV_INSIDE(copy->real.uv_shutdown(req, stream, weft__uv_shutdown_slot_or_none(cb)));
	if (status)
		weft__uv_fail_request(object, status);
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

/* Records a datagram that is sent; call it before the original function. */
static void record_datagram_sent(const struct weft__uv_object *object, weft_id promise, const uv_udp_t *handle,
    const uv_buf_t bufs[], unsigned count, const struct sockaddr *to)
{
	uv_os_fd_t fd;
	if (!promise || (!to && object->copy->real.uv_fileno((const uv_handle_t *)handle, &fd)))
		return;
	/* uv_buf_t has the same layout as struct iovec. */
	const struct weft_digest digest = weft_hook_digest((const struct iovec *)(const void *)bufs, count);
	weft_datagram_sent(promise, to ? -1 : fd, to, &digest);
}

static void record_datagram_received(
    const struct weft__uv_object *socket, weft_id promise, const uv_udp_t *handle, const void *bytes, size_t count)
{
	struct weft_digest digest = {0};
	uv_os_fd_t fd;
	if (socket->copy->real.uv_fileno((const uv_handle_t *)handle, &fd))
		return;
	weft_digest(&digest, bytes, count);
	weft_datagram_received(promise, fd, &digest);
}

/* Begins the promise of a UDP socket.  A socket without an address of its own is labelled by its first destination. */
static struct weft__uv_object *begin_udp_socket(
    struct weft__uv_copy *copy, const void *caller, const uv_udp_t *handle, const struct sockaddr *to)
{
	struct weft__uv_object *object = weft__uv_handle(copy, caller, handle);
	if (weft__uv_begin(object, WEFT_KIND_CONNECTION, caller)) {
		weft__uv_append(object, "udp ");
		const unsigned unnamed = object->label.length;
		weft__uv_append_handle(object, (const uv_handle_t *)handle);
		if (to && object->label.length == unnamed) {
			weft__uv_append(object, "to ");
			weft__uv_append_address(object, to);
		}
		weft__uv_record_label(object);
	}
	if (object)
		weft__uv_attach_fd(object, (const uv_handle_t *)handle);
	return object;
}

int weft__uv_udp_recv_start(
    struct weft__uv_copy *copy, const void *caller, uv_udp_t *handle, uv_alloc_cb alloc, uv_udp_recv_cb cb)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_udp_recv_start(handle, alloc, cb);
	int status = WEFT__UV_INSIDE(copy->real.uv_udp_recv_start(handle, alloc, weft__uv_udp_recv_slot(cb)));
	struct weft__uv_object *object = status == 0 ? begin_udp_socket(copy, caller, handle, NULL) : NULL;
	if (object)
		object->read_site = weft__uv_site(caller);
	return status;
}

int weft__uv_udp_recv_stop(struct weft__uv_copy *copy, const void *caller, uv_udp_t *handle)
{
	int status = WEFT__UV_INSIDE(copy->real.uv_udp_recv_stop(handle));
	weft__uv_mark_loop_dirty();
	return status;
}

/* Each datagram is a request that ends when everything that its handler started has ended; the handler counts as the first
 * child. libuv passes got == 0 without an address when there are no more datagrams. */
void weft__uv_udp_recv_called(
    uv_udp_t *handle, ssize_t got, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags, unsigned slot)
{
	uv_udp_recv_cb user = weft__uv_udp_recv_user(slot);
	struct weft__uv_object *socket = (got != 0 || from) && weft_is_on() ? weft__uv_find_handle(handle) : NULL;
	struct weft__uv_object *object = socket && socket->id ? weft__uv_object_of_datagram(socket) : NULL;
	if (!object) {
		user(handle, got, buf, from, flags);
		return;
	}
	object->kind = WEFT_KIND_REQUEST;
	object->by = socket->id;
	object->site = socket->read_site;
	object->children = 1;
	object->line = socket->line;
	object->id = weft__uv_create_promise(object);
	object->since = weft__stream->last;
	if (from) {
		weft__uv_append(object, "from ");
		weft__uv_append_address(object, from);
	} else {
		weft__uv_append(object, "error");
	}
	weft__uv_record_label(object);
	if (got >= 0)
		record_datagram_received(socket, object->id, handle, buf->base, (size_t)got);
	weft_hook_record_running(object->id);
	weft__uv_tag tag = weft__uv_tag_of(object);
	WEFT__UV_FRAME frame = weft__uv_enter_callback(object->id, tag);
	frame.datagram = tag;
	user(handle, got, buf, from, flags);
}

int weft__uv_udp_send(struct weft__uv_copy *copy, const void *caller, uv_udp_send_t *req, uv_udp_t *handle, const uv_buf_t bufs[],
    unsigned count, const struct sockaddr *to, uv_udp_send_cb cb)
{
	if (!weft__uv_should_record(copy, caller))
		return copy->real.uv_udp_send(req, handle, bufs, count, to, cb);
	begin_udp_socket(copy, caller, handle, to);
	struct weft__uv_object *object = weft__uv_request(copy, caller, req, handle->loop, WEFT_KIND_STREAM_WRITE, NULL);
	if (object) {
		weft__uv_append_bytes(object, bufs, count);
		weft__uv_append(object, to ? " to " : "");
		if (to)
			weft__uv_append_address(object, to);
		weft__uv_record_label(object);
		record_datagram_sent(object, object->id, handle, bufs, count, to);
	}
	int status = WEFT__UV_INSIDE(copy->real.uv_udp_send(req, handle, bufs, count, to, weft__uv_udp_send_slot_or_none(cb)));
	if (status)
		weft__uv_fail_request(object, status);
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
	struct weft__uv_object *socket = weft__uv_should_record(copy, caller) ? begin_udp_socket(copy, caller, handle, to) : NULL;
	if (socket)
		record_datagram_sent(socket, socket->id, handle, bufs, count, to);
	int status = WEFT__UV_INSIDE(copy->real.uv_udp_try_send(handle, bufs, count, to));
	if (status > 0 && socket)
		record_finished_write(caller, status, to, socket);
	return status;
}

int weft__uv_udp_try_send2(struct weft__uv_copy *copy, const void *caller, uv_udp_t *handle, unsigned count, uv_buf_t *bufs[],
    unsigned counts[], struct sockaddr *to[], unsigned flags)
{
	bool is_recorded = weft__uv_should_record(copy, caller);
	int sent = WEFT__UV_INSIDE(copy->real.uv_udp_try_send2(handle, count, bufs, counts, to, flags));
	struct weft__uv_object *socket =
	    sent > 0 && is_recorded ? begin_udp_socket(copy, caller, handle, to ? to[0] : NULL) : NULL;
	for (int i = 0; socket && i < sent; i++) {
		size_t bytes = 0;
		for (unsigned j = 0; j < counts[i]; j++)
			bytes += bufs[i][j].len;
		record_finished_write(caller, (int)bytes, to ? to[i] : NULL, socket);
	}
	return sent;
}
