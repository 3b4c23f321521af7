/* uv.h: promises on a libuv loop.
 *
 *	struct weft_uv *uv = weft_uv_create(NULL);
 *	struct weft_promise *p = weft_promise_bind(weft_uv_sleep(uv, 100), next, NULL, NULL);
 *	weft_uv_run(uv, p, 0);
 *	weft_promise_unref(p);
 *	weft_uv_destroy(uv);
 *
 * While the loop is run, by weft_uv_run() or by uv_run() itself, what pauses goes on once per iteration, and the trace has when
 * the program slept.
 *
 * Ownership is as in promise.h.  Streams and the like are counted references themselves: the one that a callback is given
 * belongs to the promise; to keep it longer, weft_uv_stream_ref() it.  Calls look at the stream that they are given, and keep it
 * for as long as what they start is under way.  Without references it is closed, so nothing is left open, whatever is cancelled.
 *
 * Errors of the system are libuv's codes, as UV_ECONNREFUSED, with their texts.  SPDX-License-Identifier: ISC */
#ifndef WEFT_UV_H
#define WEFT_UV_H

#include <uv.h>
#include <weft/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_uv;

/* Brings promises to a loop, which stays the caller's and must outlive the result; NULL: makes a loop.  One loop for an OS
 * thread.  NULL without memory, or if libuv has none. */
WEFT__API struct weft_uv *weft_uv_create(uv_loop_t *loop);

/* What still waits here stays pending.  Not from a callback of the loop.  Runs the loop until what was closed here is gone. */
WEFT__API void weft_uv_destroy(struct weft_uv *uv);

WEFT__API uv_loop_t *weft_uv_loop(struct weft_uv *uv);

/* Runs the loop until p, which stays the caller's, has ended.  WEFT_OK; WEFT_EBUSY: it has not after limit_ms (0: no limit);
 * WEFT_ENOTFOUND: nothing is left on the loop that could end it; WEFT_ENOMEM: it did not run. */
WEFT__API int weft_uv_run(struct weft_uv *uv, const struct weft_promise *p, uint64_t limit_ms);

/* Resolved after that many ms.  Can be cancelled. */
#define weft_uv_sleep(uv, ms) weft__uv_sleep(WEFT_SITE(), uv, ms)
/* Fails after that many ms, with WEFT_PROMISE_TIMEOUT.  Can be cancelled. */
#define weft_uv_timeout(uv, ms) weft__uv_timeout(WEFT_SITE(), uv, ms)
/* Ends as p, or fails with WEFT_PROMISE_TIMEOUT after that many ms; then p is cancelled.  A pick of both. */
#define weft_uv_with_timeout(uv, ms, p) weft__uv_with_timeout(WEFT_SITE(), uv, ms, p)

/* ---- Streams: tcp connections and pipes ---- */

struct weft_uv_stream;
struct weft_uv_bytes {
	size_t size;
	char data[];
};

WEFT__API struct weft_uv_stream *weft_uv_stream_ref(struct weft_uv_stream *s);
/* NULL is nothing. */
WEFT__API void weft_uv_stream_unref(struct weft_uv_stream *s);
/* For libuv's own calls, as uv_tcp_getsockname(); until it is closed. */
WEFT__API uv_stream_t *weft_uv_stream_handle(struct weft_uv_stream *s);
/* A pipe that is not connected, for a child process; NULL without memory. */
WEFT__API struct weft_uv_stream *weft_uv_pipe_create(struct weft_uv *uv);

/* Each has a stream as its value.  Listen has ended when it returns; port 0: the system chooses one.  Connect can be cancelled.
 */
#define weft_uv_tcp_listen(uv, address, backlog) weft__uv_tcp_listen(WEFT_SITE(), uv, address, backlog)
#define weft_uv_pipe_listen(uv, path, backlog) weft__uv_pipe_listen(WEFT_SITE(), uv, path, backlog)
#define weft_uv_tcp_connect(uv, address) weft__uv_tcp_connect(WEFT_SITE(), uv, address)
#define weft_uv_pipe_connect(uv, path) weft__uv_pipe_connect(WEFT_SITE(), uv, path)

/* The next connection, a stream.  One at a time, or UV_EBUSY; can be cancelled, and nothing is lost. */
#define weft_uv_accept(listener) weft__uv_accept(WEFT_SITE(), listener)

/* The next bytes, a struct weft_uv_bytes of 1 to most_bytes; of size 0: the other side has ended.  One at a time, or UV_EBUSY;
 * UV_EINVAL: most_bytes is 0.  Can be cancelled, and nothing is lost. */
#define weft_uv_read(s, most_bytes) weft__uv_read(WEFT_SITE(), s, most_bytes)

/* Writes a copy of the bytes after all that was written before.  To cancel it closes the stream, as half of it may be sent. */
#define weft_uv_write(s, bytes, size) weft__uv_write(WEFT_SITE(), s, bytes, size)
/* The same without the copy: the bytes are taken, and destroyed (NULL: they stay) when they are written or never will be. */
#define weft_uv_write_owned(s, bytes, size, destroy) weft__uv_write_owned(WEFT_SITE(), s, bytes, size, destroy)

/* Tells the other side that no more will be written, when all is.  To cancel it closes the stream. */
#define weft_uv_shutdown(s) weft__uv_shutdown(WEFT_SITE(), s)

/* Closes it; what is under way fails with UV_ECANCELED, later calls with WEFT_PROMISE_CLOSED.  To close it twice is fine. The
 * reference stays yours. */
#define weft_uv_close(s) weft__uv_close(WEFT_SITE(), s)

/* ---- What the macros call ---- */

WEFT__API struct weft_promise *weft__uv_sleep(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms);
WEFT__API struct weft_promise *weft__uv_timeout(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms);
WEFT__API struct weft_promise *weft__uv_with_timeout(
    struct weft_record_site *site, struct weft_uv *uv, uint64_t ms, struct weft_promise *p);
WEFT__API struct weft_promise *weft__uv_tcp_listen(
    struct weft_record_site *site, struct weft_uv *uv, const struct sockaddr *address, int backlog);
WEFT__API struct weft_promise *weft__uv_pipe_listen(
    struct weft_record_site *site, struct weft_uv *uv, const char *path, int backlog);
WEFT__API struct weft_promise *weft__uv_tcp_connect(
    struct weft_record_site *site, struct weft_uv *uv, const struct sockaddr *address);
WEFT__API struct weft_promise *weft__uv_pipe_connect(struct weft_record_site *site, struct weft_uv *uv, const char *path);
WEFT__API struct weft_promise *weft__uv_accept(struct weft_record_site *site, struct weft_uv_stream *listener);
WEFT__API struct weft_promise *weft__uv_read(struct weft_record_site *site, struct weft_uv_stream *s, size_t most_bytes);
WEFT__API struct weft_promise *weft__uv_write(
    struct weft_record_site *site, struct weft_uv_stream *s, const void *bytes, size_t size);
WEFT__API struct weft_promise *weft__uv_write_owned(
    struct weft_record_site *site, struct weft_uv_stream *s, void *bytes, size_t size, weft_destroy_fn *destroy);
WEFT__API struct weft_promise *weft__uv_shutdown(struct weft_record_site *site, struct weft_uv_stream *s);
WEFT__API struct weft_promise *weft__uv_close(struct weft_record_site *site, struct weft_uv_stream *s);

#ifdef __cplusplus
}
#endif
#endif
