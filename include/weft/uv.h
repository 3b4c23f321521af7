/* uv.h: promises on a libuv loop.
 *
 *	struct weft_uv *uv = weft_uv_create(NULL);
 *	struct weft_promise *p = weft_promise_bind(weft_uv_sleep(uv, 100), next, NULL, NULL);
 *	weft_uv_run(uv, p, 0);
 *	weft_promise_unref(p);
 *	weft_uv_destroy(uv);
 *
 * Each iteration of the loop resumes the promises that paused, whether weft_uv_run() or uv_run() runs the loop.  The trace shows
 * when the program slept.
 *
 * Ownership is as in promise.h.  Streams, files, sockets and processes are counted references too.  The reference that a callback
 * gets belongs to the promise; weft_uv_stream_ref() keeps it longer.  A call borrows its stream, and holds a reference until the
 * operation has ended.  A stream without references is closed, so a cancelled program leaves nothing open.
 *
 * System errors have libuv's codes, such as UV_ECONNREFUSED, and libuv's texts.  All objects belong to the OS thread of their
 * loop.  SPDX-License-Identifier: ISC */
#ifndef WEFT_UV_H
#define WEFT_UV_H

#include <uv.h>
#include <weft/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The loop ---- */

struct weft_uv;

/* Adds promises to a loop, which stays the caller's and must outlive the result; NULL: makes a loop.  An OS thread can have one
 * such loop.  From now on the process ignores SIGPIPE, unless it handles the signal: a write to a closed connection then fails
 * with UV_EPIPE.  Returns NULL without memory, or if libuv cannot make a loop. */
WEFT__API struct weft_uv *weft_uv_create(uv_loop_t *loop);

/* Closes all open objects.  Promises that wait here stay pending, and child processes keep running.  Runs the loop until
 * everything is closed and every job on the thread pool has ended.  Must not be called in a callback of the loop.  NULL does
 * nothing. */
WEFT__API void weft_uv_destroy(struct weft_uv *uv);

WEFT__API uv_loop_t *weft_uv_loop(struct weft_uv *uv);

/* Runs the loop until p, which stays the caller's, has ended.  Without a limit, p should resolve, as after
 * weft_promise_should_resolve().  Returns WEFT_OK; WEFT_EBUSY: p is pending after limit_ms (0: no limit); WEFT_ENOTFOUND: the
 * loop has nothing left that could end p; WEFT_ENOMEM: the loop did not run. */
WEFT__API int weft_uv_run(struct weft_uv *uv, const struct weft_promise *p, uint64_t limit_ms);

/* Is resolved after that many ms.  Can be cancelled. */
#define weft_uv_sleep(uv, ms) weft__uv_sleep(WEFT_SITE(), uv, ms)
/* Fails after that many ms, with WEFT_PROMISE_TIMEOUT.  Can be cancelled. */
#define weft_uv_timeout(uv, ms) weft__uv_timeout(WEFT_SITE(), uv, ms)
/* Ends as p does, or fails with WEFT_PROMISE_TIMEOUT after that many ms and cancels p. */
#define weft_uv_with_timeout(uv, ms, p) weft__uv_with_timeout(WEFT_SITE(), uv, ms, p)

/* ---- Streams: tcp connections and pipes ---- */

struct weft_uv_stream;
struct weft_uv_file; /* see below */
struct weft_uv_bytes {
	size_t size;
	char data[];
};

WEFT__API struct weft_uv_stream *weft_uv_stream_ref(struct weft_uv_stream *s);
/* Drops a reference; NULL does nothing.  All unref functions take a void *, so that each can be a destructor. */
WEFT__API void weft_uv_stream_unref(void *s);
/* Returns the handle, for libuv's own calls such as uv_tcp_getsockname(); valid until the stream is closed. */
WEFT__API uv_stream_t *weft_uv_stream_handle(struct weft_uv_stream *s);
/* Makes an unconnected pipe, for a child process; NULL without memory. */
WEFT__API struct weft_uv_stream *weft_uv_pipe_create(struct weft_uv *uv);

/* Listen or connect; the value is a stream.  The promise of a listen has ended when the call returns; with port 0 the system
 * chooses a port.  Connect can be cancelled.  uv_ip4_addr() and uv_ip6_addr() make addresses, weft_uv_getaddrinfo() finds them.
 */
#define weft_uv_tcp_listen(uv, address, backlog) weft__uv_tcp_listen(WEFT_SITE(), uv, address, backlog)
#define weft_uv_pipe_listen(uv, path, backlog) weft__uv_pipe_listen(WEFT_SITE(), uv, path, backlog)
#define weft_uv_tcp_connect(uv, address) weft__uv_tcp_connect(WEFT_SITE(), uv, address)
#define weft_uv_pipe_connect(uv, path) weft__uv_pipe_connect(WEFT_SITE(), uv, path)

/* Accepts the next connection; the value is a stream.  A concurrent second accept fails with UV_EBUSY.  Can be cancelled: no
 * connection is lost. */
#define weft_uv_accept(listener) weft__uv_accept(WEFT_SITE(), listener)

/* Reads the next bytes.  The value is a struct weft_uv_bytes of 1 to most_bytes bytes, or of 0 bytes when the peer has ended its
 * side.  A concurrent second read fails with UV_EBUSY; UV_EINVAL: most_bytes is 0.  Can be cancelled: no byte is lost. */
#define weft_uv_read(s, most_bytes) weft__uv_read(WEFT_SITE(), s, most_bytes)

/* Writes a copy of the bytes, after all earlier writes.  Cancelling closes the stream, since a part may have been sent. */
#define weft_uv_write(s, bytes, size) weft__uv_write(WEFT_SITE(), s, bytes, size)
/* Writes without a copy: takes the bytes, and destroys them when they are written or the write has failed.  If destroy is NULL,
 * the bytes stay the caller's. */
#define weft_uv_write_owned(s, bytes, size, destroy) weft__uv_write_owned(WEFT_SITE(), s, bytes, size, destroy)

/* Sends at most most_bytes bytes of a file, from an offset on, inside the kernel.  The value is a uint64_t: the number of bytes
 * sent, which is smaller if the file ends earlier.  Meanwhile writes and other sendfiles fail with UV_EBUSY; so does this call
 * during a write.  Cancelling closes the stream. */
#define weft_uv_sendfile(s, file, offset, most_bytes) weft__uv_sendfile(WEFT_SITE(), s, file, offset, most_bytes)

/* Waits for all writes, then ends this side of the connection.  Cancelling closes the stream. */
#define weft_uv_shutdown(s) weft__uv_shutdown(WEFT_SITE(), s)

/* Closes the stream: operations in progress fail with UV_ECANCELED, later calls with WEFT_PROMISE_CLOSED.  A second close does
 * nothing.  The reference stays the caller's. */
#define weft_uv_close(s) weft__uv_close(WEFT_SITE(), s)

/* ---- Files and directories ----
 *
 * These operations run on libuv's thread pool, and can be cancelled.  A job that runs already continues to its end, and its
 * result is dropped; a file that it opened is closed. */

/* Counted like a stream: a file without references is closed. */
WEFT__API struct weft_uv_file *weft_uv_file_ref(struct weft_uv_file *file);
/* Drops a reference; NULL does nothing. */
WEFT__API void weft_uv_file_unref(void *file);
/* Returns the descriptor; -1 if the file is closed. */
WEFT__API int weft_uv_file_descriptor(const struct weft_uv_file *file);

/* Opens a file; flags and mode as for open(2).  The value is a struct weft_uv_file.  Child processes do not inherit it. */
#define weft_uv_open(uv, path, flags, mode) weft__uv_open(WEFT_SITE(), uv, path, flags, mode)
/* Reads bytes.  The value is a struct weft_uv_bytes of at most most_bytes bytes, of 0 bytes at the end of the file.  Offset -1:
 * the file's own position. */
#define weft_uv_file_read(file, most_bytes, offset) weft__uv_file_read(WEFT_SITE(), file, most_bytes, offset)
/* Writes a copy of all the bytes.  Offset -1: the file's own position. */
#define weft_uv_file_write(file, bytes, size, offset) weft__uv_file_write(WEFT_SITE(), file, bytes, size, offset)
/* Is resolved when everything written so far is on the disk. */
#define weft_uv_file_sync(file) weft__uv_file_sync(WEFT_SITE(), file)
#define weft_uv_file_truncate(file, size) weft__uv_file_truncate(WEFT_SITE(), file, size)
/* Queries the file; the value is a uv_stat_t. */
#define weft_uv_file_stat(file) weft__uv_file_stat(WEFT_SITE(), file)
/* Closes the file, and fails if that fails, which the last unref cannot report.  UV_EBUSY: an operation is in progress.  Later
 * calls fail with WEFT_PROMISE_CLOSED.  The reference stays the caller's. */
#define weft_uv_file_close(file) weft__uv_file_close(WEFT_SITE(), file)

/* Query a path; the value is a uv_stat_t.  lstat queries a symbolic link itself. */
#define weft_uv_stat(uv, path) weft__uv_stat(WEFT_SITE(), uv, path)
#define weft_uv_lstat(uv, path) weft__uv_lstat(WEFT_SITE(), uv, path)
/* Resolves links and dots in a path; the value is a char *. */
#define weft_uv_realpath(uv, path) weft__uv_realpath(WEFT_SITE(), uv, path)
/* Lists a directory without "." and ".."; the value is a struct weft_uv_entries. */
#define weft_uv_scandir(uv, path) weft__uv_scandir(WEFT_SITE(), uv, path)
struct weft_uv_entry {
	uv_dirent_type_t type; /* UV_DIRENT_FILE and so on; UV_DIRENT_UNKNOWN on some file systems */
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

/* ---- Host names, and functions, on the thread pool ----
 *
 * Both can be cancelled, as above. */

/* Looks a host name up; the value is a struct addrinfo list, as for getaddrinfo(3). */
#define weft_uv_getaddrinfo(uv, node, service, hints) weft__uv_getaddrinfo(WEFT_SITE(), uv, node, service, hints)

/* Runs f on another OS thread; the value is the one that f returns.  f must not use promises of this OS thread.  Events that f
 * records go into the stream of its OS thread, where the promise runs meanwhile.  The ctx is destroyed on this OS thread. */
typedef struct weft_value weft_uv_work_fn(void *ctx);
#define weft_uv_work(uv, f, ctx, destroy) weft__uv_work(WEFT_SITE(), uv, f, ctx, destroy)

/* ---- Datagrams ---- */

struct weft_uv_udp; /* counted, as a stream is */
WEFT__API struct weft_uv_udp *weft_uv_udp_ref(struct weft_uv_udp *udp);
/* Drops a reference; NULL does nothing. */
WEFT__API void weft_uv_udp_unref(void *udp);
/* Returns the handle, for libuv's own calls such as uv_udp_set_membership(); valid until the socket is closed. */
WEFT__API uv_udp_t *weft_uv_udp_handle(struct weft_uv_udp *udp);

/* Opens a socket; the value is a struct weft_uv_udp, and the promise has ended when the call returns.  With port 0 the system
 * chooses a port; with address NULL it chooses one at the first send. */
#define weft_uv_udp_open(uv, address) weft__uv_udp_open(WEFT_SITE(), uv, address)
struct weft_uv_datagram {
	struct sockaddr_storage from;
	bool cut; /* the datagram was longer than most_bytes */
	size_t size;
	char data[];
};
/* Receives the next datagram; the value is a struct weft_uv_datagram of at most most_bytes bytes.  A concurrent second receive
 * fails with UV_EBUSY; UV_EINVAL: most_bytes is 0.  Can be cancelled without losing a datagram. */
#define weft_uv_udp_receive(udp, most_bytes) weft__uv_udp_receive(WEFT_SITE(), udp, most_bytes)
/* Sends a datagram; is resolved when the system has taken it.  `to` NULL: the address to which the socket is connected.  A
 * cancelled datagram may still be sent. */
#define weft_uv_udp_send(udp, bytes, size, to) weft__uv_udp_send(WEFT_SITE(), udp, bytes, size, to)
/* Closes the socket, as weft_uv_close() closes a stream. */
#define weft_uv_udp_close(udp) weft__uv_udp_close(WEFT_SITE(), udp)

/* ---- Child processes ---- */

/* Standard input, output or error of a child; zeroed: inherited from this process. */
struct weft_uv_stdio {
	struct weft_uv_stream *stream; /* made by weft_uv_pipe_create(); the child gets the other end */
	struct weft_uv_file *file;
	bool none; /* /dev/null */
};
/* Options.  Set the arguments; zero selects the default for every other field.  Everything in it stays the caller's. */
struct weft_uv_spawn_options {
	const char *const *arguments;   /* the program, which is searched in PATH, and its arguments; ends with NULL */
	const char *const *environment; /* "NAME=value", ends with NULL; pointer NULL: as this process */
	const char *directory;          /* the working directory; NULL: that of this process */
	struct weft_uv_stdio input, output, errors;
	int cancel_signal; /* the signal that cancelling sends; 0: SIGKILL */
	bool own_session;  /* ^C at the terminal does not reach the child */
};
struct weft_uv_exit {
	int code;   /* the exit status */
	int signal; /* the signal that ended the process, or 0 */
};
struct weft_uv_process; /* counted, as a stream is */
WEFT__API struct weft_uv_process *weft_uv_process_ref(struct weft_uv_process *process);
/* Drops a reference; NULL does nothing.  The process keeps running. */
WEFT__API void weft_uv_process_unref(void *process);
WEFT__API int weft_uv_process_id(const struct weft_uv_process *process);
/* Sends a signal.  Returns 0 or an error of libuv; UV_ESRCH: the process has exited. */
WEFT__API int weft_uv_process_kill(struct weft_uv_process *process, int signal);
/* Starts a program; is resolved with a struct weft_uv_exit when the program exits.  *process becomes the caller's reference, or
 * NULL if the program did not start; `process` may be NULL.  Cancelling sends the cancel_signal. */
#define weft_uv_spawn(uv, options, process) weft__uv_spawn(WEFT_SITE(), uv, options, process)

/* ---- Signals ---- */

/* Is resolved by the next signal of that number.  Can be cancelled.  After the end of the promise the signal has its previous
 * effect again. */
#define weft_uv_signal(uv, number) weft__uv_signal(WEFT_SITE(), uv, number)

/* A series of signals; none is lost.  The value of weft_uv_signals() is a struct weft_uv_signals; its promise has ended
 * when the call returns. */
struct weft_uv_signals; /* counted, as a stream is; without references the signal has its previous effect again */
WEFT__API struct weft_uv_signals *weft_uv_signals_ref(struct weft_uv_signals *signals);
/* Drops a reference; NULL does nothing. */
WEFT__API void weft_uv_signals_unref(void *signals);
#define weft_uv_signals(uv, number) weft__uv_signals(WEFT_SITE(), uv, number)
/* Is resolved when the signal comes; at once if it came since the last call, once or more often.  A concurrent second call fails
 * with UV_EBUSY.  Can be cancelled: no signal is lost. */
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
