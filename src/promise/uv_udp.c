/* uv_udp.c: datagrams as promises.  SPDX-License-Identifier: ISC */
#include "promise/loop.h"

#include <string.h>

struct weft_uv_udp {
	struct weft__handle h; /* libuv receives for it */
	uv_udp_t udp;
	struct weft__uv_connection connection;
	size_t most_bytes;               /* maximum number of bytes that the waiting receive takes */
	struct weft_uv_datagram *buffer; /* datagram that libuv fills; NULL at other times */
};

struct sending {
	uv_udp_send_t request;
	struct weft_uv_udp *udp; /* counted */
	struct weft_resolver *resolver;
	char bytes[];
};

struct weft_uv_udp *weft_uv_udp_ref(struct weft_uv_udp *udp)
{
	weft__handle_ref(&udp->h);
	return udp;
}

void weft_uv_udp_unref(void *udp)
{
	weft__handle_unref(udp);
}

uv_udp_t *weft_uv_udp_handle(struct weft_uv_udp *udp)
{
	return &udp->udp;
}

static void on_udp_closing(struct weft__handle *h)
{
	weft__uv_connection_end(&((struct weft_uv_udp *)h)->connection);
}

struct weft_promise *weft__uv_udp_open(struct weft_record_site *site, struct weft_uv *uv, const struct sockaddr *address)
{
	struct weft_uv_udp *udp = calloc(1, sizeof *udp);
	if (!udp)
		return weft__uv_failed(WEFT_PROMISE_ENOMEM);
	uv_udp_init(uv->loop, &udp->udp); /* cannot fail */
	weft__handle_add(&udp->h, uv, (uv_handle_t *)&udp->udp);
	udp->h.on_closing = on_udp_closing;
	int status = address ? uv_udp_bind(&udp->udp, address, 0) : 0;
	if (status == 0)
		weft__uv_connection_begin(&udp->connection, &udp->h, WEFT__DATAGRAM_SOCKET, site, 0, NULL);
	return weft__uv_ended(site, WEFT_KIND_LISTEN, status, udp, weft_uv_udp_unref);
}

struct weft_promise *weft__uv_udp_close(struct weft_record_site *site, struct weft_uv_udp *udp)
{
	return weft__handle_close_promise(site, &udp->h);
}

/* ---- Receiving ---- */

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct weft_uv_udp *udp = handle->data;
	*buf = uv_buf_init(NULL, 0);
	if (!udp->h.waiter || !(udp->buffer = malloc(sizeof *udp->buffer + udp->most_bytes)))
		return;
	buf->base = udp->buffer->data;
	buf->len = udp->most_bytes;
}

static void on_received(uv_udp_t *handle, ssize_t size, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
	struct weft_uv_udp *udp = handle->data;
	struct weft_uv_datagram *datagram = udp->buffer;
	udp->buffer = NULL;
	/* There was no datagram (an empty datagram has a sender), or no promise waits for a datagram. */
	if ((size == 0 && !from) || !udp->h.waiter) {
		free(datagram);
		if (!udp->h.waiter)
			uv_udp_recv_stop(handle); /* later datagrams stay in the socket's buffer */
		return;
	}
	if (size < 0) {
		free(datagram);
		weft__handle_wake(&udp->h, size == UV_ENOBUFS ? WEFT_PROMISE_ENOMEM : (int)size, NULL, NULL);
		return;
	}
	memset(&datagram->from, 0, sizeof datagram->from);
	memcpy(&datagram->from, from, from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	datagram->cut = flags & UV_UDP_PARTIAL;
	datagram->size = (size_t)size;
	weft__uv_note_awake(udp->h.object.uv);
	weft__uv_connection_note_receive(&udp->connection, datagram->data, datagram->size);
	weft__handle_wake(&udp->h, 0, datagram, free);
}

struct weft_promise *weft__uv_udp_receive(struct weft_record_site *site, struct weft_uv_udp *udp, size_t most_bytes)
{
	struct weft_promise *p;
	if (most_bytes == 0)
		return weft__uv_failed(UV_EINVAL);
	if (!weft__handle_wait(site, WEFT_KIND_STREAM_READ, NULL, &udp->h, &p))
		return p;
	udp->most_bytes = most_bytes;
	weft__uv_connection_await_read(&udp->connection, p);
	int status = uv_udp_recv_start(&udp->udp, give_buffer, on_received);
	if (status < 0 && status != UV_EALREADY)
		weft__handle_wake(&udp->h, status, NULL, NULL);
	return p;
}

/* ---- Sending ---- */

/* Ignores the cancellation, because a datagram that is being sent cannot be recalled. */
static void ignore_cancel(void *ctx)
{
}

static void end_sending(struct sending *sending, int status)
{
	struct weft_uv_udp *udp = sending->udp;
	struct weft_resolver *resolver = sending->resolver;
	free(sending);
	weft__uv_wakeup(udp->h.object.uv, resolver, status, NULL, NULL);
	weft_uv_udp_unref(udp);
}

static void on_sent(uv_udp_send_t *request, int status)
{
	end_sending(request->data, status);
}

/* Sends a datagram later, because the socket's buffer is full. */
static struct weft_promise *send_later(
    struct weft_record_site *site, struct weft_uv_udp *udp, const void *bytes, size_t size, const struct sockaddr *to)
{
	struct sending *sending = malloc(sizeof *sending + size);
	if (!sending)
		return weft__uv_failed(WEFT_PROMISE_ENOMEM);
	struct weft_promise *p = weft__uv_promise(site, WEFT_KIND_STREAM_WRITE, NULL, ignore_cancel, NULL, &sending->resolver);
	if (!sending->resolver) {
		free(sending);
		return p;
	}
	sending->udp = weft_uv_udp_ref(udp);
	sending->request.data = sending;
	uv_buf_t buf = {.base = memcpy(sending->bytes, bytes, size), .len = size};
	int status = uv_udp_send(&sending->request, &udp->udp, &buf, 1, to, on_sent);
	if (status < 0)
		end_sending(sending, status);
	return p;
}

struct weft_promise *weft__uv_udp_send(
    struct weft_record_site *site, struct weft_uv_udp *udp, const void *bytes, size_t size, const struct sockaddr *to)
{
	uv_buf_t buf = {.base = size > 0 ? (char *)(uintptr_t)bytes : "", .len = size};
	if (!udp->h.closing)
		weft__uv_connection_note_send(&udp->connection, to, buf.base, size);
	int status = udp->h.closing ? WEFT_PROMISE_CLOSED : uv_udp_try_send(&udp->udp, &buf, 1, to);
	if (status == UV_EAGAIN)
		return send_later(site, udp, buf.base, size, to);
	return weft__uv_ended(site, WEFT_KIND_STREAM_WRITE, status, NULL, NULL);
}
