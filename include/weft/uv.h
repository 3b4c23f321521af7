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
 * thread.  From now on SIGPIPE is ignored, unless the program handles it: writing to who has gone is an error, UV_EPIPE.  NULL
 * without memory, or if libuv has none. */
WEFT__API struct weft_uv *weft_uv_create(uv_loop_t *loop);

/* What still waits here stays pending, what is open is closed, child processes run on.  Runs the loop until all that is gone, and
 * what runs on the thread pool too.  Not from a callback of the loop.  NULL is nothing. */
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
struct weft_uv_file; /* see below */
struct weft_uv_bytes {
	size_t size;
	char data[];
};

WEFT__API struct weft_uv_stream *weft_uv_stream_ref(struct weft_uv_stream *s);
/* NULL is nothing.  Here as below it takes a void *, so that it can be a destructor. */
WEFT__API void weft_uv_stream_unref(void *s);
/* For libuv's own calls, as uv_tcp_getsockname(); until it is closed. */
WEFT__API uv_stream_t *weft_uv_stream_handle(struct weft_uv_stream *s);
/* A pipe that is not connected, for a child process; NULL without memory. */
WEFT__API struct weft_uv_stream *weft_uv_pipe_create(struct weft_uv *uv);

/* Each has a stream as its value.  Listen has ended when it returns; port 0: the system chooses one.  Connect can be cancelled.
 * Addresses are made by uv_ip4_addr() and uv_ip6_addr(), found by weft_uv_getaddrinfo(). */
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

/* Sends at most that many bytes of a file from an offset on, in the kernel; a uint64_t, how many: fewer where the file ends.
 * Meanwhile nothing else can be written: UV_EBUSY, also here while a write is under way.  To cancel it closes the stream. */
#define weft_uv_sendfile(s, file, offset, most_bytes) weft__uv_sendfile(WEFT_SITE(), s, file, offset, most_bytes)

/* Tells the other side that no more will be written, when all is.  To cancel it closes the stream. */
#define weft_uv_shutdown(s) weft__uv_shutdown(WEFT_SITE(), s)

/* Closes it; what is under way fails with UV_ECANCELED, later calls with WEFT_PROMISE_CLOSED.  To close it twice is fine. The
 * reference stays yours. */
#define weft_uv_close(s) weft__uv_close(WEFT_SITE(), s)

/* ---- Files and directories ----
 *
 * Done on libuv's thread pool.  All can be cancelled; what runs already runs to its end, and what it results in is dropped, a
 * file that was opened is closed. */

/* Counted, as a stream is: without references it is closed. */
WEFT__API struct weft_uv_file *weft_uv_file_ref(struct weft_uv_file *file);
/* NULL is nothing. */
WEFT__API void weft_uv_file_unref(void *file);
/* -1 when it is closed. */
WEFT__API int weft_uv_file_descriptor(const struct weft_uv_file *file);

/* A file; flags and mode as for open(2).  Child processes do not inherit it. */
#define weft_uv_open(uv, path, flags, mode) weft__uv_open(WEFT_SITE(), uv, path, flags, mode)
/* A struct weft_uv_bytes of at most most_bytes, of size 0 at the end.  Offset -1: where the file stands. */
#define weft_uv_file_read(file, most_bytes, offset) weft__uv_file_read(WEFT_SITE(), file, most_bytes, offset)
/* Writes a copy of all the bytes.  Offset as above. */
#define weft_uv_file_write(file, bytes, size, offset) weft__uv_file_write(WEFT_SITE(), file, bytes, size, offset)
/* Resolved when all that was written is on the disk. */
#define weft_uv_file_sync(file) weft__uv_file_sync(WEFT_SITE(), file)
#define weft_uv_file_truncate(file, size) weft__uv_file_truncate(WEFT_SITE(), file, size)
/* A uv_stat_t. */
#define weft_uv_file_stat(file) weft__uv_file_stat(WEFT_SITE(), file)
/* Tells what the last unref would not: whether it could be closed.  UV_EBUSY: something is under way; later calls fail with
 * WEFT_PROMISE_CLOSED.  The reference stays yours. */
#define weft_uv_file_close(file) weft__uv_file_close(WEFT_SITE(), file)

/* A uv_stat_t; of a link itself, by lstat. */
#define weft_uv_stat(uv, path) weft__uv_stat(WEFT_SITE(), uv, path)
#define weft_uv_lstat(uv, path) weft__uv_lstat(WEFT_SITE(), uv, path)
/* A char *, the path without links and dots. */
#define weft_uv_realpath(uv, path) weft__uv_realpath(WEFT_SITE(), uv, path)
/* A struct weft_uv_entries, without "." and "..". */
#define weft_uv_scandir(uv, path) weft__uv_scandir(WEFT_SITE(), uv, path)
struct weft_uv_entry {
	uv_dirent_type_t type; /* as UV_DIRENT_FILE; some file systems do not tell */
	char name[256];
};
struct weft_uv_entries {
	size_t count;
	struct weft_uv_entry entry[]; /* sorted by name */
};
#define weft_uv_mkdir(uv, path, mode) weft__uv_mkdir(WEFT_SITE(), uv, path, mode)
#define weft_uv_rmdir(uv, path) weft__uv_rmdir(WEFT_SITE(), uv, path)
#define weft_uv_unlink(uv, path) weft__uv_unlink(WEFT_SITE(), uv, path)
#define weft_uv_rename(uv, from, to) weft__uv_rename(WEFT_SITE(), uv, from, to)

/* ---- Names of hosts, and functions, on the thread pool ----
 *
 * Both can be cancelled, as above. */

/* A struct addrinfo list, as for getaddrinfo(3). */
#define weft_uv_getaddrinfo(uv, node, service, hints) weft__uv_getaddrinfo(WEFT_SITE(), uv, node, service, hints)

/* What f returns, called on another OS thread: it may use no promises of this one.  What it records is in the trace of that
 * OS thread, where the promise runs meanwhile.  The ctx is destroyed on this one. */
typedef struct weft_value weft_uv_work_fn(void *ctx);
#define weft_uv_work(uv, f, ctx, destroy) weft__uv_work(WEFT_SITE(), uv, f, ctx, destroy)

/* ---- Datagrams ---- */

struct weft_uv_udp; /* counted, as a stream is */
WEFT__API struct weft_uv_udp *weft_uv_udp_ref(struct weft_uv_udp *udp);
/* NULL is nothing. */
WEFT__API void weft_uv_udp_unref(void *udp);
/* For libuv's own calls, as uv_udp_set_membership(); until it is closed. */
WEFT__API uv_udp_t *weft_uv_udp_handle(struct weft_uv_udp *udp);

/* A struct weft_uv_udp; it has ended when it returns.  Port 0: the system chooses one; address NULL: it does with the first
 * send. */
#define weft_uv_udp_open(uv, address) weft__uv_udp_open(WEFT_SITE(), uv, address)
struct weft_uv_datagram {
	struct sockaddr_storage from;
	bool cut; /* it was longer */
	size_t size;
	char data[];
};
/* The next datagram, a struct weft_uv_datagram of at most most_bytes.  One at a time, or UV_EBUSY; UV_EINVAL: most_bytes is 0.
 * Can be cancelled, and nothing is lost here. */
#define weft_uv_udp_receive(udp, most_bytes) weft__uv_udp_receive(WEFT_SITE(), udp, most_bytes)
/* Resolved when the system has it.  To NULL: to whom it is connected.  Cancelled, it may be sent yet. */
#define weft_uv_udp_send(udp, bytes, size, to) weft__uv_udp_send(WEFT_SITE(), udp, bytes, size, to)
/* As weft_uv_close. */
#define weft_uv_udp_close(udp) weft__uv_udp_close(WEFT_SITE(), udp)

/* ---- Child processes ---- */

/* What the child has there; zeroed: what we have. */
struct weft_uv_stdio {
	struct weft_uv_stream *stream; /* one of weft_uv_pipe_create(): its other end, so that it can be written or read here */
	struct weft_uv_file *file;
	bool none; /* what is written is lost, nothing is read */
};
/* Zeroed, but for the arguments, it is a good choice.  All stays yours. */
struct weft_uv_spawn_options {
	const char *const *arguments;   /* the program, looked for in PATH, and its arguments; ends with NULL */
	const char *const *environment; /* as "NAME=value", ends with NULL; NULL: ours */
	const char *directory;          /* where it runs; NULL: here */
	struct weft_uv_stdio input, output, errors;
	int cancel_signal; /* what cancelling sends; 0: SIGKILL */
	bool own_session;  /* so that ^C at the terminal does not reach it */
};
struct weft_uv_exit {
	int code;   /* what it returned */
	int signal; /* that ended it; 0: none */
};
struct weft_uv_process; /* counted */
WEFT__API struct weft_uv_process *weft_uv_process_ref(struct weft_uv_process *process);
/* NULL is nothing.  The process runs on. */
WEFT__API void weft_uv_process_unref(void *process);
WEFT__API int weft_uv_process_id(const struct weft_uv_process *process);
/* 0, or an error of libuv's; UV_ESRCH: it has exited. */
WEFT__API int weft_uv_process_kill(struct weft_uv_process *process, int signal);
/* Starts a program; a struct weft_uv_exit when it exits.  *process (process may be NULL) is yours, NULL if it did not start.  To
 * cancel it sends the signal. */
#define weft_uv_spawn(uv, options, process) weft__uv_spawn(WEFT_SITE(), uv, options, process)

/* ---- Signals ---- */

/* The next signal of that number from now on.  Can be cancelled; then, and when it has come, it does again what it did before. */
#define weft_uv_signal(uv, number) weft__uv_signal(WEFT_SITE(), uv, number)

/* One after the other, and what comes meanwhile is kept: the value of weft_uv_signals() is a struct weft_uv_signals, it has
 * ended when it returns. */
struct weft_uv_signals; /* counted; without references the signal does again what it did before */
WEFT__API struct weft_uv_signals *weft_uv_signals_ref(struct weft_uv_signals *signals);
/* NULL is nothing. */
WEFT__API void weft_uv_signals_unref(void *signals);
#define weft_uv_signals(uv, number) weft__uv_signals(WEFT_SITE(), uv, number)
/* Resolved when it comes, or has come since the last time, however often.  One at a time, or UV_EBUSY; can be cancelled, and
 * nothing is lost. */
#define weft_uv_signals_next(signals) weft__uv_signals_next(WEFT_SITE(), signals)

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
WEFT__API struct weft_promise *weft__uv_sendfile(
    struct weft_record_site *site, struct weft_uv_stream *s, struct weft_uv_file *file, int64_t offset, uint64_t most_bytes);
WEFT__API struct weft_promise *weft__uv_shutdown(struct weft_record_site *site, struct weft_uv_stream *s);
WEFT__API struct weft_promise *weft__uv_close(struct weft_record_site *site, struct weft_uv_stream *s);
WEFT__API struct weft_promise *weft__uv_open(
    struct weft_record_site *site, struct weft_uv *uv, const char *path, int flags, int mode);
WEFT__API struct weft_promise *weft__uv_file_read(
    struct weft_record_site *site, struct weft_uv_file *file, size_t most_bytes, int64_t offset);
WEFT__API struct weft_promise *weft__uv_file_write(
    struct weft_record_site *site, struct weft_uv_file *file, const void *bytes, size_t size, int64_t offset);
WEFT__API struct weft_promise *weft__uv_file_sync(struct weft_record_site *site, struct weft_uv_file *file);
WEFT__API struct weft_promise *weft__uv_file_truncate(struct weft_record_site *site, struct weft_uv_file *file, int64_t size);
WEFT__API struct weft_promise *weft__uv_file_stat(struct weft_record_site *site, struct weft_uv_file *file);
WEFT__API struct weft_promise *weft__uv_file_close(struct weft_record_site *site, struct weft_uv_file *file);
WEFT__API struct weft_promise *weft__uv_stat(struct weft_record_site *site, struct weft_uv *uv, const char *path);
WEFT__API struct weft_promise *weft__uv_lstat(struct weft_record_site *site, struct weft_uv *uv, const char *path);
WEFT__API struct weft_promise *weft__uv_realpath(struct weft_record_site *site, struct weft_uv *uv, const char *path);
WEFT__API struct weft_promise *weft__uv_scandir(struct weft_record_site *site, struct weft_uv *uv, const char *path);
WEFT__API struct weft_promise *weft__uv_mkdir(struct weft_record_site *site, struct weft_uv *uv, const char *path, int mode);
WEFT__API struct weft_promise *weft__uv_rmdir(struct weft_record_site *site, struct weft_uv *uv, const char *path);
WEFT__API struct weft_promise *weft__uv_unlink(struct weft_record_site *site, struct weft_uv *uv, const char *path);
WEFT__API struct weft_promise *weft__uv_rename(
    struct weft_record_site *site, struct weft_uv *uv, const char *from, const char *to);
WEFT__API struct weft_promise *weft__uv_getaddrinfo(
    struct weft_record_site *site, struct weft_uv *uv, const char *node, const char *service, const struct addrinfo *hints);
WEFT__API struct weft_promise *weft__uv_work(
    struct weft_record_site *site, struct weft_uv *uv, weft_uv_work_fn *f, void *ctx, weft_destroy_fn *destroy);

WEFT__API struct weft_promise *weft__uv_udp_open(
    struct weft_record_site *site, struct weft_uv *uv, const struct sockaddr *address);
WEFT__API struct weft_promise *weft__uv_udp_receive(struct weft_record_site *site, struct weft_uv_udp *udp, size_t most_bytes);
WEFT__API struct weft_promise *weft__uv_udp_send(
    struct weft_record_site *site, struct weft_uv_udp *udp, const void *bytes, size_t size, const struct sockaddr *to);
WEFT__API struct weft_promise *weft__uv_udp_close(struct weft_record_site *site, struct weft_uv_udp *udp);
WEFT__API struct weft_promise *weft__uv_spawn(struct weft_record_site *site, struct weft_uv *uv,
    const struct weft_uv_spawn_options *options, struct weft_uv_process **process);
WEFT__API struct weft_promise *weft__uv_signal(struct weft_record_site *site, struct weft_uv *uv, int number);
WEFT__API struct weft_promise *weft__uv_signals(struct weft_record_site *site, struct weft_uv *uv, int number);
WEFT__API struct weft_promise *weft__uv_signals_next(struct weft_record_site *site, struct weft_uv_signals *signals);

#ifdef __cplusplus
}
#endif
#endif
