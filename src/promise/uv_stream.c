/* uv_stream.c: makes promises for TCP connections and pipes.  SPDX-License-Identifier: ISC */
#include "promise/loop.h"

#include <string.h>
#include <sys/un.h>

struct weft_uv_stream {
	struct weft__handle h; /* handle, whose waiter waits for a read or a new connection */
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	};
	bool ended;
	/* libuv is reading.  Between two reads libuv keeps reading, because stopping would cost system calls; it stops when
	 * bytes come for which no promise waits. */
	bool reading;
	bool has_pending_connection; /* whether libuv has a connection that can be accepted */
	void *borrower;              /* sendfile that writes to the stream's descriptor */
	void (*borrowed_closed)(void *borrower);
	struct weft__uv_connection connection;
	struct weft_record_site *accept_site; /* call site of the promise that waits for a connection */
	size_t most_bytes;                    /* maximum number of bytes that the waiting read takes */
	struct weft_uv_bytes *buffer;         /* buffer that libuv fills; NULL at other times */
};

static struct weft_uv_bytes end_of_input;

/* ---- Lifetime ---- */

struct weft_uv_stream *weft_uv_stream_ref(struct weft_uv_stream *s)
{
	weft__handle_ref(&s->h);
	return s;
}

void weft_uv_stream_unref(void *s)
{
	weft__handle_unref(s);
}

uv_stream_t *weft_uv_stream_handle(struct weft_uv_stream *s)
{
	return &s->stream;
}

static void on_stream_closing(struct weft__handle *h)
{
	struct weft_uv_stream *s = (struct weft_uv_stream *)h;
	weft__uv_connection_end(&s->connection);
	if (s->borrower)
		s->borrowed_closed(s->borrower);
}

static struct weft_uv_stream *new_stream(struct weft_uv *uv, uv_handle_type type)
{
	struct weft_uv_stream *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	/* Neither can fail. */
	if (type == UV_TCP)
		uv_tcp_init(uv->loop, &s->tcp);
	else
		uv_pipe_init(uv->loop, &s->pipe, 0);
	s->h.on_closing = on_stream_closing;
	weft__handle_add(&s->h, uv, &s->handle);
	return s;
}

struct weft_uv_stream *weft_uv_pipe_create(struct weft_uv *uv)
{
	return new_stream(uv, UV_NAMED_PIPE);
}

struct weft_promise *weft__uv_close(struct weft_record_site *site, struct weft_uv_stream *s)
{
	return weft__handle_close_promise(site, &s->h);
}

/* ---- Lending to sendfile, which writes to the descriptor ---- */

struct weft_uv *weft__stream_lend(struct weft_uv_stream *s, void (*closed)(void *borrower), void *borrower, int *status)
{
	*status = s->h.closing ? WEFT_PROMISE_CLOSED : UV_EBUSY;
	if (s->h.closing || s->borrower || uv_stream_get_write_queue_size(&s->stream) > 0)
		return NULL;
	weft_uv_stream_ref(s);
	s->borrower = borrower;
	s->borrowed_closed = closed;
	return s->h.object.uv;
}

bool weft__stream_is_closing(const struct weft_uv_stream *s)
{
	return s->h.closing;
}

void weft__stream_note_write(struct weft_uv_stream *s, int64_t bytes)
{
	weft__uv_note_awake(s->h.object.uv);
	weft__uv_connection_note_raw_write(&s->connection, &s->handle, bytes);
}

void weft__stream_give_back(struct weft_uv_stream *s)
{
	s->borrower = NULL;
	weft_uv_stream_unref(s);
}

/* ---- Listening ---- */

/* Accepts a waiting connection. */
static void accept_now(struct weft_uv_stream *listener)
{
	struct weft_uv_stream *s = new_stream(listener->h.object.uv, listener->handle.type);
	if (!s) {
		weft__handle_wake(&listener->h, WEFT_PROMISE_ENOMEM, NULL, NULL);
		return;
	}
	listener->has_pending_connection = false;
	const int status = uv_accept(&listener->stream, &s->stream);
	weft__uv_note_awake(s->h.object.uv);
	if (status == 0) {
		weft__uv_connection_begin(
		    &s->connection, &s->h, WEFT__ACCEPTED, listener->accept_site, listener->connection.id, NULL);
		weft__uv_connection_identify(&s->connection);
	}
	weft__handle_wake(&listener->h, status, s, weft_uv_stream_unref);
}

static void on_connection(uv_stream_t *stream, int status)
{
	struct weft_uv_stream *listener = stream->data;
	if (status == 0)
		/* Libuv accepts no further connection until this connection is accepted. */
		listener->has_pending_connection = true;
	if (!listener->h.waiter)
		return;
	if (status < 0)
		weft__handle_wake(&listener->h, status, NULL, NULL);
	else
		accept_now(listener);
}

/* Ends a promise of a listen call, and takes over the reference s. */
static struct weft_promise *listen_now(struct weft_record_site *site, struct weft_uv_stream *s, int status, int backlog)
{
	if (status == 0)
		status = uv_listen(&s->stream, backlog, on_connection);
	if (status == 0)
		weft__uv_connection_begin(&s->connection, &s->h, WEFT__LISTENER, site, 0, NULL);
	return weft__uv_ended(site, WEFT_KIND_LISTEN, status, s, weft_uv_stream_unref);
}

struct weft_promise *weft__uv_tcp_listen(
    struct weft_record_site *site, struct weft_uv *uv, const struct sockaddr *address, int backlog)
{
	struct weft_uv_stream *s = new_stream(uv, UV_TCP);
	return s ? listen_now(site, s, uv_tcp_bind(&s->tcp, address, 0), backlog) : weft__uv_failed(WEFT_PROMISE_ENOMEM);
}

struct weft_promise *weft__uv_pipe_listen(struct weft_record_site *site, struct weft_uv *uv, const char *path, int backlog)
{
	struct weft_uv_stream *s = new_stream(uv, UV_NAMED_PIPE);
	return s ? listen_now(site, s, uv_pipe_bind(&s->pipe, path), backlog) : weft__uv_failed(WEFT_PROMISE_ENOMEM);
}

struct weft_promise *weft__uv_accept(struct weft_record_site *site, struct weft_uv_stream *listener)
{
	struct weft_promise *p;
	listener->accept_site = site;
	if (weft__handle_wait(site, WEFT_KIND_ACCEPT, NULL, &listener->h, &p) && listener->has_pending_connection)
		accept_now(listener);
	return p;
}

/* Starts to record a stream that was neither accepted nor connected, such as a child's standard stream, at its first use. */
static void note_stream(struct weft_record_site *site, struct weft_uv_stream *s)
{
	if (!s->connection.h && !s->h.closing && weft_is_on())
		weft__uv_connection_begin(&s->connection, &s->h, WEFT__INHERITED, site, 0, NULL);
	weft__uv_connection_identify(&s->connection);
}

/* ---- Reading ---- */

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct weft_uv_stream *s = handle->data;
	*buf = uv_buf_init(NULL, 0);
	if (!s->h.waiter || !(s->buffer = malloc(sizeof *s->buffer + s->most_bytes)))
		return;
	buf->base = s->buffer->data;
	buf->len = s->most_bytes;
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
	struct weft_uv_stream *s = stream->data;
	struct weft_uv_bytes *bytes = s->buffer;
	s->buffer = NULL;
	if (size <= 0)
		free(bytes);
	if (size == 0)
		return;
	if (size < 0) {
		uv_read_stop(stream);
		s->reading = false;
		s->ended |= size == UV_EOF;
	}
	if (!s->h.waiter)
		return;
	if (size == UV_EOF) {
		weft__handle_wake(&s->h, 0, &end_of_input, NULL);
	} else if (size < 0) {
		weft__handle_wake(&s->h, size == UV_ENOBUFS ? WEFT_PROMISE_ENOMEM : (int)size, NULL, NULL);
	} else {
		bytes->size = (size_t)size;
		weft__uv_note_awake(s->h.object.uv);
		weft__uv_connection_note_read(&s->connection, bytes->size);
		weft__handle_wake(&s->h, 0, bytes, free);
	}
}

struct weft_promise *weft__uv_read(struct weft_record_site *site, struct weft_uv_stream *s, size_t most_bytes)
{
	struct weft_promise *p;
	if (most_bytes == 0)
		return weft__uv_failed(UV_EINVAL);
	if (!weft__handle_wait(site, WEFT_KIND_STREAM_READ, NULL, &s->h, &p))
		return p;
	s->most_bytes = most_bytes;
	note_stream(site, s);
	weft__uv_connection_await_read(&s->connection, p);
	if (s->ended) {
		weft__handle_wake(&s->h, 0, &end_of_input, NULL);
		return p;
	}
	int status = s->reading ? 0 : uv_read_start(&s->stream, give_buffer, on_read);
	s->reading = status == 0;
	if (status < 0)
		weft__handle_wake(&s->h, status, NULL, NULL);
	return p;
}

/* ---- Connecting, writing, shutting down: operations that end once, by a request ---- */

struct request {
	union {
		uv_connect_t connect;
		uv_write_t write;
		uv_shutdown_t shutdown;
	};
	struct weft_uv_stream *stream; /* counted */
	struct weft_resolver *resolver;
	void *bytes; /* bytes to write */
	weft_destroy_fn *destroy;
	char copied[];
};

/* Makes a request, and takes over the reference `counted`, even without memory. */
static struct request *new_request(struct weft_uv_stream *counted, size_t copied_bytes)
{
	struct request *r = calloc(1, sizeof *r + copied_bytes);
	if (r)
		r->stream = counted;
	else
		weft_uv_stream_unref(counted);
	return r;
}

/* Frees the request, and returns its stream, whose reference the caller drops. */
static struct weft_uv_stream *free_request(struct request *r)
{
	struct weft_uv_stream *counted = r->stream;
	if (r->destroy)
		r->destroy(r->bytes);
	free(r);
	return counted;
}

static void on_connected(uv_connect_t *connect, int status)
{
	struct request *r = connect->data;
	struct weft_resolver *resolver = r->resolver;
	struct weft_uv_stream *s = free_request(r);
	weft__uv_note_awake(s->h.object.uv);
	if (status == 0)
		weft__uv_connection_identify(&s->connection);
	weft__uv_wakeup(s->h.object.uv, resolver, status, s, weft_uv_stream_unref);
}

/* Starts a request on a new stream, whose reference is taken over; if the result is NULL, the caller returns *p. */
static struct request *start_connect(struct weft_record_site *site, struct weft_uv_stream *s, struct weft_promise **p)
{
	struct request *r = s ? new_request(s, 0) : NULL;
	if (!r) {
		*p = weft__uv_failed(WEFT_PROMISE_ENOMEM);
		return NULL;
	}
	r->connect.data = r;
	*p = weft__uv_promise(site, WEFT_KIND_CONNECT, NULL, weft__handle_close, s, &r->resolver);
	if (r->resolver)
		return r;
	weft_uv_stream_unref(free_request(r));
	return NULL;
}

struct weft_promise *weft__uv_tcp_connect(struct weft_record_site *site, struct weft_uv *uv, const struct sockaddr *address)
{
	struct weft_promise *p;
	struct weft_uv_stream *s = new_stream(uv, UV_TCP);
	struct request *r = start_connect(site, s, &p);
	if (!r)
		return p;
	weft__uv_connection_begin(&s->connection, &s->h, WEFT__CONNECTED, site, 0, address);
	int status = uv_tcp_connect(&r->connect, &s->tcp, address, on_connected);
	if (status < 0)
		on_connected(&r->connect, status);
	return p;
}

struct weft_promise *weft__uv_pipe_connect(struct weft_record_site *site, struct weft_uv *uv, const char *path)
{
	struct weft_promise *p;
	struct weft_uv_stream *s = new_stream(uv, UV_NAMED_PIPE);
	struct request *r = start_connect(site, s, &p);
	if (r) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		strncpy(address.sun_path, path, sizeof address.sun_path - 1);
		weft__uv_connection_begin(&s->connection, &s->h, WEFT__CONNECTED, site, 0, (const struct sockaddr *)&address);
		uv_pipe_connect(&r->connect, &s->pipe, path, on_connected);
	}
	return p;
}

static void end_request(struct request *r, int status)
{
	struct weft_resolver *resolver = r->resolver;
	struct weft_uv_stream *s = free_request(r);
	weft__uv_wakeup(s->h.object.uv, resolver, status, NULL, NULL);
	weft_uv_stream_unref(s); /* dropped as late as here, because the woken promise often uses the stream next */
}

static void on_written(uv_write_t *write, int status)
{
	end_request(write->data, status);
}

static void on_shut_down(uv_shutdown_t *shutdown, int status)
{
	end_request(shutdown->data, status);
}

/* Queues the rest of a write in libuv.  The bytes are copied or, if they have an owner, taken over in any case. */
static struct weft_promise *write_later(
    struct weft_record_site *site, struct weft_uv_stream *s, const char *rest, size_t size, bool copy, struct weft_value owner)
{
	struct weft_promise *p = NULL;
	struct request *r = new_request(weft_uv_stream_ref(s), copy ? size : 0);
	if (r)
		p = weft__uv_promise(site, WEFT_KIND_STREAM_WRITE, NULL, weft__handle_close, s, &r->resolver);
	if (!r || !r->resolver) {
		if (r)
			weft_uv_stream_unref(free_request(r));
		if (owner.destroy)
			owner.destroy(owner.pointer);
		return r ? p : weft__uv_failed(WEFT_PROMISE_ENOMEM);
	}
	r->write.data = r;
	r->bytes = owner.pointer;
	r->destroy = owner.destroy;
	if (copy)
		rest = memcpy(r->copied, rest, size);
	uv_buf_t buf = {.base = (char *)(uintptr_t)rest, .len = size};
	int status = uv_write(&r->write, &s->stream, &buf, 1, on_written);
	if (status < 0)
		end_request(r, status);
	return p;
}

static struct weft_promise *write_bytes(
    struct weft_record_site *site, struct weft_uv_stream *s, const char *bytes, size_t size, bool copy, struct weft_value owner)
{
	int status = s->h.closing ? WEFT_PROMISE_CLOSED : s->borrower ? UV_EBUSY : 0;
	if (status == 0 && size > 0) {
		uv_buf_t buf = {.base = (char *)(uintptr_t)bytes, .len = size};
		note_stream(site, s);
		weft__uv_connection_note_write(&s->connection, (int64_t)size);
		status = uv_try_write(&s->stream, &buf, 1);
		if (status < 0 && status != UV_EAGAIN)
			weft__uv_connection_note_write(&s->connection, -(int64_t)size);
	}
	size_t done = status > 0 ? (size_t)status : 0;
	if (status == UV_EAGAIN || (status >= 0 && done < size)) {
		weft_uv_stream_ref(s);
		struct weft_promise *p = write_later(site, s, bytes + done, size - done, copy, owner);
		if (done > 0 && !weft__is_pending(p)) /* it failed at once */
			/* A part of the bytes was sent already, so the stream cannot be used any more. */
			weft__handle_close(s);
		weft_uv_stream_unref(s);
		return p;
	}
	struct weft_promise *p = weft__uv_ended(site, WEFT_KIND_STREAM_WRITE, status, NULL, NULL);
	if (owner.destroy)
		owner.destroy(owner.pointer);
	return p;
}

struct weft_promise *weft__uv_write(struct weft_record_site *site, struct weft_uv_stream *s, const void *bytes, size_t size)
{
	return write_bytes(site, s, bytes, size, true, (struct weft_value){NULL, NULL});
}

struct weft_promise *weft__uv_write_owned(
    struct weft_record_site *site, struct weft_uv_stream *s, void *bytes, size_t size, weft_destroy_fn *destroy)
{
	return write_bytes(site, s, bytes, size, false, (struct weft_value){bytes, destroy});
}

struct weft_promise *weft__uv_shutdown(struct weft_record_site *site, struct weft_uv_stream *s)
{
	if (s->h.closing || s->borrower)
		return weft__uv_failed(s->h.closing ? WEFT_PROMISE_CLOSED : UV_EBUSY);
	struct request *r = new_request(weft_uv_stream_ref(s), 0);
	if (!r)
		return weft__uv_failed(WEFT_PROMISE_ENOMEM);
	struct weft_promise *p = weft__uv_promise(site, WEFT_KIND_SHUTDOWN, NULL, weft__handle_close, s, &r->resolver);
	if (!r->resolver) {
		weft_uv_stream_unref(free_request(r));
		return p;
	}
	r->shutdown.data = r;
	int status = uv_shutdown(&r->shutdown, &s->stream, on_shut_down);
	if (status < 0)
		end_request(r, status);
	return p;
}
