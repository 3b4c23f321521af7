/* uv.h: promises on a libuv loop.
 *
 *	struct weft_uv *uv = weft_uv_create(NULL);
 *	struct weft_promise *p = weft_promise_bind(weft_uv_sleep(uv, 100), next, NULL, NULL);
 *	weft_uv_run(uv, p, 0);
 *	weft_promise_unref(p);
 *	weft_uv_destroy(uv);
 *
 * Each iteration of the loop resolves the promises of weft_promise_pause(), whether weft_uv_run() or uv_run() runs the loop.  The
 * trace shows when the program slept in the loop.
 *
 * Ownership of promises is as in promise.h.  Streams, files, sockets and processes are counted references too.  A stream that is
 * the value of a promise belongs to the promise; weft_uv_stream_ref() keeps the stream longer.  A stream that is an argument
 * stays the caller's, and the operation holds a reference to the stream until its end.  A stream without references is closed, so
 * a cancelled operation leaves nothing open.
 *
 * Promises that fail by a system error have libuv's codes, such as UV_ECONNREFUSED, and libuv's texts.  All objects must be used
 * on the OS thread of their loop.  SPDX-License-Identifier: ISC */
#ifndef WEFT_UV_H
#define WEFT_UV_H

#include <uv.h>
#include <weft/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The loop ---- */

struct weft_uv;

/* Returns an object with which this header's calls use `loop`; NULL stands for a new loop.  The loop stays the caller's, and must
 * exist until weft_uv_destroy().  An OS thread can have one struct weft_uv.  The process ignores SIGPIPE from now on, unless it
 * handles this signal, so that a write to a closed connection fails with UV_EPIPE.  Returns NULL without memory, or if libuv
 * cannot make a loop. */
WEFT__API struct weft_uv *weft_uv_create(uv_loop_t *loop);

/* Closes all objects that were made with uv.  Promises that wait for these objects stay pending, and child processes keep
 * running.  Runs the loop until all objects are closed and every job on the thread pool has ended.  Must not be called in a
 * callback of the loop. uv may be NULL. */
WEFT__API void weft_uv_destroy(struct weft_uv *uv);

/* Returns the libuv loop of uv. */
WEFT__API uv_loop_t *weft_uv_loop(struct weft_uv *uv);

/* Runs the loop until p has ended; p stays the caller's.  If limit_ms is 0 (no limit), does weft_promise_should_resolve() for p
 * first.  Returns WEFT_OK when p has ended.  Returns WEFT_EBUSY if p is pending after limit_ms, WEFT_ENOTFOUND if the loop has
 * nothing left that could end p, or WEFT_ENOMEM if the loop could not run. */
WEFT__API int weft_uv_run(struct weft_uv *uv, const struct weft_promise *p, uint64_t limit_ms);

/* Returns a promise that is resolved after `ms` milliseconds, and that can be cancelled. */
#define weft_uv_sleep(uv, ms) weft__uv_sleep(WEFT_SITE(), uv, ms)
/* Returns a promise that fails with WEFT_PROMISE_TIMEOUT after `ms` milliseconds, and that can be cancelled. */
#define weft_uv_timeout(uv, ms) weft__uv_timeout(WEFT_SITE(), uv, ms)
/* Returns a promise that ends as p does.  If p is pending after `ms` milliseconds, cancels p, and the returned promise fails with
 * WEFT_PROMISE_TIMEOUT. */
#define weft_uv_with_timeout(uv, ms, p) weft__uv_with_timeout(WEFT_SITE(), uv, ms, p)

/* ---- Streams: tcp connections and pipes ---- */

struct weft_uv_stream;
struct weft_uv_file; /* a file; see weft_uv_open() */
struct weft_uv_bytes {
	size_t size;
	char data[];
};

/* Returns the stream with one more reference, which the caller owns. */
WEFT__API struct weft_uv_stream *weft_uv_stream_ref(struct weft_uv_stream *s);
/* Drops a reference to a stream; s may be NULL.  The parameter of each unref function is a void *, so that the function can be a
 * destructor. */
WEFT__API void weft_uv_stream_unref(void *s);
/* Returns libuv's handle of the stream, for calls such as uv_tcp_getsockname().  The handle is valid until the stream is
 * closed. */
WEFT__API uv_stream_t *weft_uv_stream_handle(struct weft_uv_stream *s);
/* Makes an unconnected pipe for the standard input or output of a child process; returns NULL without memory. */
WEFT__API struct weft_uv_stream *weft_uv_pipe_create(struct weft_uv *uv);

/* Listen at an address or connect to an address; the value of the returned promise is a stream.  The promise of a listen has
 * ended when the call returns; port 0 stands for any free port.  The promise of a connect can be cancelled. uv_ip4_addr() and
 * uv_ip6_addr() make addresses, weft_uv_getaddrinfo() looks up the addresses of a name.
 */
#define weft_uv_tcp_listen(uv, address, backlog) weft__uv_tcp_listen(WEFT_SITE(), uv, address, backlog)
#define weft_uv_pipe_listen(uv, path, backlog) weft__uv_pipe_listen(WEFT_SITE(), uv, path, backlog)
#define weft_uv_tcp_connect(uv, address) weft__uv_tcp_connect(WEFT_SITE(), uv, address)
#define weft_uv_pipe_connect(uv, path) weft__uv_pipe_connect(WEFT_SITE(), uv, path)

/* Accepts the next connection; the value of the returned promise is a stream.  An accept fails with UV_EBUSY while another accept
 * of the same listener is pending.  Cancelling the promise loses no connection. */
#define weft_uv_accept(listener) weft__uv_accept(WEFT_SITE(), listener)

/* Reads the next bytes of a stream.  The value of the returned promise is a struct weft_uv_bytes of 1 to most_bytes bytes, or of
 * 0 bytes when the peer has ended its side.  The read fails with UV_EBUSY while another read of the stream is pending, and with
 * UV_EINVAL if most_bytes is 0.  Cancelling the promise loses no byte. */
#define weft_uv_read(s, most_bytes) weft__uv_read(WEFT_SITE(), s, most_bytes)

/* Writes a copy of the bytes to a stream, after all earlier writes.  Cancelling the promise closes the stream, since some of the
 * bytes may have been sent. */
#define weft_uv_write(s, bytes, size) weft__uv_write(WEFT_SITE(), s, bytes, size)
/* Does weft_uv_write() without a copy, and calls `destroy` with the bytes when they are written or the write has failed.  If
 * destroy is NULL, the bytes stay the caller's. */
#define weft_uv_write_owned(s, bytes, size, destroy) weft__uv_write_owned(WEFT_SITE(), s, bytes, size, destroy)

/* Sends at most most_bytes bytes of a file, from an offset on, without a copy in the program.  The value of the returned promise
 * is a uint64_t: the number of bytes sent, below most_bytes if the file ends earlier.  Writes and other sendfiles of the stream
 * fail with UV_EBUSY while a sendfile is pending.  A sendfile fails with UV_EBUSY while a write is pending.  Cancelling the
 * promise closes the stream. */
#define weft_uv_sendfile(s, file, offset, most_bytes) weft__uv_sendfile(WEFT_SITE(), s, file, offset, most_bytes)

/* Waits for all writes of the stream, then ends this side of the connection.  Cancelling the promise closes the stream. */
#define weft_uv_shutdown(s) weft__uv_shutdown(WEFT_SITE(), s)

/* Closes the stream: pending operations fail with UV_ECANCELED, later operations with WEFT_PROMISE_CLOSED.  A second close of a
 * stream does nothing.  The reference to the stream stays the caller's. */
#define weft_uv_close(s) weft__uv_close(WEFT_SITE(), s)

/* ---- Files and directories ----
 *
 * Operations on files and directories run on libuv's thread pool, and their promises can be cancelled.  If an operation was
 * running when its promise was cancelled, the operation runs to its end, its result is dropped, and a file that was opened is
 * closed. */

/* Returns the file with one more reference, which the caller owns.  A file without references is closed. */
WEFT__API struct weft_uv_file *weft_uv_file_ref(struct weft_uv_file *file);
/* Drops a reference to a file; the pointer may be NULL. */
WEFT__API void weft_uv_file_unref(void *file);
/* Returns the file descriptor of the file; -1 if the file is closed. */
WEFT__API int weft_uv_file_descriptor(const struct weft_uv_file *file);

/* Opens a file with flags and mode of open(2).  The value of the returned promise is a struct weft_uv_file.  Child processes do
 * not inherit the file. */
#define weft_uv_open(uv, path, flags, mode) weft__uv_open(WEFT_SITE(), uv, path, flags, mode)
/* Reads bytes of a file.  The value of the returned promise is a struct weft_uv_bytes of at most most_bytes bytes, of 0 bytes at
 * the end of the file.  Offset -1 stands for the file's own position. */
#define weft_uv_file_read(file, most_bytes, offset) weft__uv_file_read(WEFT_SITE(), file, most_bytes, offset)
/* Writes a copy of all the bytes to a file.  Offset -1 stands for the file's own position. */
#define weft_uv_file_write(file, bytes, size, offset) weft__uv_file_write(WEFT_SITE(), file, bytes, size, offset)
/* Returns a promise that is resolved when all bytes written to the file so far are on the disk. */
#define weft_uv_file_sync(file) weft__uv_file_sync(WEFT_SITE(), file)
/* Sets the size of a file, in bytes. */
#define weft_uv_file_truncate(file, size) weft__uv_file_truncate(WEFT_SITE(), file, size)
/* Queries the file; the value of the returned promise is a uv_stat_t. */
#define weft_uv_file_stat(file) weft__uv_file_stat(WEFT_SITE(), file)
/* Closes the file.  The returned promise fails if the file cannot be closed; weft_uv_file_unref() cannot report this error.  The
 * promise fails with UV_EBUSY if another operation on the file is pending.  Later operations on the file fail with
 * WEFT_PROMISE_CLOSED.  The reference to the file stays the caller's. */
#define weft_uv_file_close(file) weft__uv_file_close(WEFT_SITE(), file)

/* Query a path; the value of the returned promise is a uv_stat_t. weft_uv_lstat() does not follow a symbolic link. */
#define weft_uv_stat(uv, path) weft__uv_stat(WEFT_SITE(), uv, path)
#define weft_uv_lstat(uv, path) weft__uv_lstat(WEFT_SITE(), uv, path)
/* Resolves symbolic links, "." and ".." in a path; the value of the returned promise is a char *. */
#define weft_uv_realpath(uv, path) weft__uv_realpath(WEFT_SITE(), uv, path)
/* Lists a directory without "." and ".."; the value of the returned promise is a struct weft_uv_entries. */
#define weft_uv_scandir(uv, path) weft__uv_scandir(WEFT_SITE(), uv, path)
struct weft_uv_entry {
	uv_dirent_type_t type; /* type of the file, such as UV_DIRENT_FILE; UV_DIRENT_UNKNOWN on some file systems */
	char name[256];
};
struct weft_uv_entries {
	size_t count;
	struct weft_uv_entry entry[]; /* the entries, sorted by name */
};
/* Make a directory, remove an empty directory, remove a file, or rename a file, as mkdir(2), rmdir(2), unlink(2) and rename(2)
 * do. */
#define weft_uv_mkdir(uv, path, mode) weft__uv_mkdir(WEFT_SITE(), uv, path, mode)
#define weft_uv_rmdir(uv, path) weft__uv_rmdir(WEFT_SITE(), uv, path)
#define weft_uv_unlink(uv, path) weft__uv_unlink(WEFT_SITE(), uv, path)
#define weft_uv_rename(uv, from, to) weft__uv_rename(WEFT_SITE(), uv, from, to)

/* ---- Host names, and functions, on the thread pool ----
 *
 * These promises can be cancelled; a lookup or function that runs already continues to its end, and its result is dropped. */

/* Looks a host name up; the value of the returned promise is the list of struct addrinfo that getaddrinfo(3) finds. */
#define weft_uv_getaddrinfo(uv, node, service, hints) weft__uv_getaddrinfo(WEFT_SITE(), uv, node, service, hints)

/* Runs f on another OS thread; the value of the returned promise is the value that f returns. f must not use promises of the
 * calling OS thread.  Events that f records go into the stream of the other OS thread, which also shows that the promise runs
 * there.  The ctx is destroyed on the calling OS thread. */
typedef struct weft_value weft_uv_work_fn(void *ctx);
#define weft_uv_work(uv, f, ctx, destroy) weft__uv_work(WEFT_SITE(), uv, f, ctx, destroy)

/* ---- Datagrams ---- */

struct weft_uv_udp; /* a UDP socket, which is closed when it has no references */
/* Returns the socket with one more reference, which the caller owns. */
WEFT__API struct weft_uv_udp *weft_uv_udp_ref(struct weft_uv_udp *udp);
/* Drops a reference to a socket; the pointer may be NULL. */
WEFT__API void weft_uv_udp_unref(void *udp);
/* Returns libuv's handle of the socket, for calls such as uv_udp_set_membership(). The handle is valid until the socket is
 * closed. */
WEFT__API uv_udp_t *weft_uv_udp_handle(struct weft_uv_udp *udp);

/* Opens a UDP socket.  The promise has ended when the call returns; its value is a struct weft_uv_udp.  With port 0 the system
 * chooses a port at once; with address NULL the system chooses a port at the first send. */
#define weft_uv_udp_open(uv, address) weft__uv_udp_open(WEFT_SITE(), uv, address)
struct weft_uv_datagram {
	struct sockaddr_storage from;
	bool cut; /* whether the datagram was longer than most_bytes, and was cut */
	size_t size;
	char data[];
};
/* Receives the next datagram; the value of the returned promise is a struct weft_uv_datagram of at most most_bytes bytes.  The
 * promise fails with UV_EBUSY while another receive of the socket is pending, and with UV_EINVAL if most_bytes is 0.  Cancelling
 * the promise loses no datagram. */
#define weft_uv_udp_receive(udp, most_bytes) weft__uv_udp_receive(WEFT_SITE(), udp, most_bytes)
/* Returns a promise that is resolved when the system has accepted the datagram.  If `to` is NULL, the datagram goes to the
 * address to which the socket is connected.  If the promise is cancelled, the datagram may still be sent. */
#define weft_uv_udp_send(udp, bytes, size, to) weft__uv_udp_send(WEFT_SITE(), udp, bytes, size, to)
/* Closes the socket, as weft_uv_close() closes a stream. */
#define weft_uv_udp_close(udp) weft__uv_udp_close(WEFT_SITE(), udp)

/* ---- Child processes ---- */

/* Standard input, output or error of a child process; all members 0: inherited from this process. */
struct weft_uv_stdio {
	struct weft_uv_stream *stream; /* pipe of weft_uv_pipe_create(), whose other end the child gets */
	struct weft_uv_file *file;
	bool none; /* whether the child gets /dev/null */
};
/* Options of weft_uv_spawn().  Set `arguments`; 0 selects the default of every other field.  All objects in the struct stay the
 * caller's. */
struct weft_uv_spawn_options {
	const char *const *arguments;   /* name of the program, which is searched in PATH, and its arguments; ends with NULL */
	const char *const *environment; /* texts "NAME=value", ends with NULL; pointer NULL: the environment of this process */
	const char *directory;          /* the working directory; NULL: that of this process */
	struct weft_uv_stdio input, output, errors;
	int cancel_signal; /* signal that the child gets when the promise is cancelled; 0: SIGKILL */
	bool own_session;  /* whether the child gets a session of its own, so that ^C at the terminal does not reach it */
};
struct weft_uv_exit {
	int code;   /* exit status */
	int signal; /* signal that ended the process, or 0 */
};
struct weft_uv_process; /* a child process; weft_uv_process_unref() drops a reference */
/* Returns the process with one more reference, which the caller owns. */
WEFT__API struct weft_uv_process *weft_uv_process_ref(struct weft_uv_process *process);
/* Drops a reference to a process, which keeps running; the pointer may be NULL. */
WEFT__API void weft_uv_process_unref(void *process);
/* Returns the process id of the child. */
WEFT__API int weft_uv_process_id(const struct weft_uv_process *process);
/* Sends a signal to a process.  Returns 0 or an error of libuv, such as UV_ESRCH if the process has exited. */
WEFT__API int weft_uv_process_kill(struct weft_uv_process *process, int signal);
/* Starts a program, and returns a promise that is resolved with a struct weft_uv_exit when the program exits.  *process becomes a
 * reference that the caller owns, or NULL if the program did not start; `process` may be NULL.  Cancelling the promise sends the
 * options' cancel_signal to the program. */
#define weft_uv_spawn(uv, options, process) weft__uv_spawn(WEFT_SITE(), uv, options, process)

/* ---- Signals ---- */

/* Returns a promise that the next signal of this number resolves, and that can be cancelled.  After the end of the promise the
 * signal has its previous effect again. */
#define weft_uv_signal(uv, number) weft__uv_signal(WEFT_SITE(), uv, number)

/* A receiver of all signals of one number from now on.  The value of weft_uv_signals() is a struct weft_uv_signals; the promise
 * of weft_uv_signals() has ended when the call returns. */
struct weft_uv_signals; /* a receiver of signals; without references the signal has its previous effect again */
/* Returns the receiver with one more reference, which the caller owns. */
WEFT__API struct weft_uv_signals *weft_uv_signals_ref(struct weft_uv_signals *signals);
/* Drops a reference to a receiver of signals; the pointer may be NULL. */
WEFT__API void weft_uv_signals_unref(void *signals);
#define weft_uv_signals(uv, number) weft__uv_signals(WEFT_SITE(), uv, number)
/* Returns a promise that is resolved when the signal comes; at once if the signal came once or more often since the last call.
 * The promise fails with UV_EBUSY while another promise of this receiver is pending.  Cancelling the promise loses no signal. */
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
