/* calls.h: the list of functions of libuv that the adapter wraps or calls.
 *
 * X(since, result, name, (parameters), (arguments)) lists a function that the adapter wraps.  `since` is the first version of
 * libuv that has the function, or 0 for 1.0; a copy may lack the function.  Types are those of <uv.h>, whose public structs are
 * the same in all versions 1.x.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_UV_CALLS_H
#define WEFT_ADAPTERS_UV_CALLS_H

#include <uv.h>

#define WEFT__UV_SINCE(minor) (0x010000 | (minor) << 8)

/* uv_default_loop() is not in this list, because it has no parameters. */
#define WEFT__UV_LOOP_CALLS(X)                                                                                                   \
	X(0, int, uv_loop_init, (uv_loop_t * loop), (loop))                                                                      \
	X(0, int, uv_loop_close, (uv_loop_t * loop), (loop))                                                                     \
	X(0, int, uv_run, (uv_loop_t * loop, uv_run_mode mode), (loop, mode))                                                    \
	X(0, void, uv_ref, (uv_handle_t * handle), (handle))                                                                     \
	X(0, void, uv_unref, (uv_handle_t * handle), (handle))                                                                   \
	X(0, void, uv_close, (uv_handle_t * handle, uv_close_cb cb), (handle, cb))                                               \
	X(0, void, uv_walk, (uv_loop_t * loop, uv_walk_cb cb, void *data), (loop, cb, data))

#define WEFT__UV_STREAM_CALLS(X)                                                                                                 \
	X(0, int, uv_tcp_init, (uv_loop_t * loop, uv_tcp_t * handle), (loop, handle))                                            \
	X(WEFT__UV_SINCE(7), int, uv_tcp_init_ex, (uv_loop_t * loop, uv_tcp_t * handle, unsigned flags), (loop, handle, flags))  \
	X(0, int, uv_pipe_init, (uv_loop_t * loop, uv_pipe_t * handle, int ipc), (loop, handle, ipc))                            \
	X(0, int, uv_tty_init, (uv_loop_t * loop, uv_tty_t * handle, uv_file fd, int readable), (loop, handle, fd, readable))    \
	X(0, int, uv_listen, (uv_stream_t * stream, int backlog, uv_connection_cb cb), (stream, backlog, cb))                    \
	X(0, int, uv_accept, (uv_stream_t * server, uv_stream_t * client), (server, client))                                     \
	X(0, int, uv_tcp_connect, (uv_connect_t * req, uv_tcp_t * handle, const struct sockaddr *to, uv_connect_cb cb),          \
	    (req, handle, to, cb))                                                                                               \
	X(WEFT__UV_SINCE(32), int, uv_tcp_close_reset, (uv_tcp_t * handle, uv_close_cb cb), (handle, cb))                        \
	X(0, void, uv_pipe_connect, (uv_connect_t * req, uv_pipe_t * handle, const char *name, uv_connect_cb cb),                \
	    (req, handle, name, cb))                                                                                             \
	X(WEFT__UV_SINCE(46), int, uv_pipe_connect2,                                                                             \
	    (uv_connect_t * req, uv_pipe_t * handle, const char *name, size_t length, unsigned flags, uv_connect_cb cb),         \
	    (req, handle, name, length, flags, cb))                                                                              \
	X(0, int, uv_read_start, (uv_stream_t * stream, uv_alloc_cb alloc, uv_read_cb cb), (stream, alloc, cb))                  \
	X(0, int, uv_read_stop, (uv_stream_t * stream), (stream))                                                                \
	X(0, int, uv_write, (uv_write_t * req, uv_stream_t * stream, const uv_buf_t bufs[], unsigned count, uv_write_cb cb),     \
	    (req, stream, bufs, count, cb))                                                                                      \
	X(0, int, uv_write2,                                                                                                     \
	    (uv_write_t * req, uv_stream_t * stream, const uv_buf_t bufs[], unsigned count, uv_stream_t *sent, uv_write_cb cb),  \
	    (req, stream, bufs, count, sent, cb))                                                                                \
	X(0, int, uv_try_write, (uv_stream_t * stream, const uv_buf_t bufs[], unsigned count), (stream, bufs, count))            \
	X(WEFT__UV_SINCE(42), int, uv_try_write2,                                                                                \
	    (uv_stream_t * stream, const uv_buf_t bufs[], unsigned count, uv_stream_t *sent), (stream, bufs, count, sent))       \
	X(0, int, uv_shutdown, (uv_shutdown_t * req, uv_stream_t * stream, uv_shutdown_cb cb), (req, stream, cb))

#define WEFT__UV_UDP_CALLS(X)                                                                                                    \
	X(0, int, uv_udp_init, (uv_loop_t * loop, uv_udp_t * handle), (loop, handle))                                            \
	X(WEFT__UV_SINCE(7), int, uv_udp_init_ex, (uv_loop_t * loop, uv_udp_t * handle, unsigned flags), (loop, handle, flags))  \
	X(0, int, uv_udp_recv_start, (uv_udp_t * handle, uv_alloc_cb alloc, uv_udp_recv_cb cb), (handle, alloc, cb))             \
	X(0, int, uv_udp_recv_stop, (uv_udp_t * handle), (handle))                                                               \
	X(0, int, uv_udp_send,                                                                                                   \
	    (uv_udp_send_t * req, uv_udp_t * handle, const uv_buf_t bufs[], unsigned count, const struct sockaddr *to,           \
		uv_udp_send_cb cb),                                                                                              \
	    (req, handle, bufs, count, to, cb))                                                                                  \
	X(0, int, uv_udp_try_send, (uv_udp_t * handle, const uv_buf_t bufs[], unsigned count, const struct sockaddr *to),        \
	    (handle, bufs, count, to))                                                                                           \
	X(WEFT__UV_SINCE(50), int, uv_udp_try_send2,                                                                             \
	    (uv_udp_t * handle, unsigned count, uv_buf_t *bufs[], unsigned counts[], struct sockaddr *to[], unsigned flags),     \
	    (handle, count, bufs, counts, to, flags))

#define WEFT__UV_HANDLE_CALLS(X)                                                                                                 \
	X(0, int, uv_timer_init, (uv_loop_t * loop, uv_timer_t * handle), (loop, handle))                                        \
	X(0, int, uv_timer_start, (uv_timer_t * handle, uv_timer_cb cb, uint64_t after_ms, uint64_t every_ms),                   \
	    (handle, cb, after_ms, every_ms))                                                                                    \
	X(0, int, uv_timer_stop, (uv_timer_t * handle), (handle))                                                                \
	X(0, int, uv_timer_again, (uv_timer_t * handle), (handle))                                                               \
	X(0, int, uv_idle_init, (uv_loop_t * loop, uv_idle_t * handle), (loop, handle))                                          \
	X(0, int, uv_idle_start, (uv_idle_t * handle, uv_idle_cb cb), (handle, cb))                                              \
	X(0, int, uv_idle_stop, (uv_idle_t * handle), (handle))                                                                  \
	X(0, int, uv_check_init, (uv_loop_t * loop, uv_check_t * handle), (loop, handle))                                        \
	X(0, int, uv_check_start, (uv_check_t * handle, uv_check_cb cb), (handle, cb))                                           \
	X(0, int, uv_check_stop, (uv_check_t * handle), (handle))                                                                \
	X(0, int, uv_prepare_init, (uv_loop_t * loop, uv_prepare_t * handle), (loop, handle))                                    \
	X(0, int, uv_prepare_start, (uv_prepare_t * handle, uv_prepare_cb cb), (handle, cb))                                     \
	X(0, int, uv_prepare_stop, (uv_prepare_t * handle), (handle))                                                            \
	X(0, int, uv_async_init, (uv_loop_t * loop, uv_async_t * handle, uv_async_cb cb), (loop, handle, cb))                    \
	X(0, int, uv_async_send, (uv_async_t * handle), (handle))                                                                \
	X(0, int, uv_poll_init, (uv_loop_t * loop, uv_poll_t * handle, int fd), (loop, handle, fd))                              \
	X(0, int, uv_poll_init_socket, (uv_loop_t * loop, uv_poll_t * handle, uv_os_sock_t fd), (loop, handle, fd))              \
	X(0, int, uv_poll_start, (uv_poll_t * handle, int events, uv_poll_cb cb), (handle, events, cb))                          \
	X(0, int, uv_poll_stop, (uv_poll_t * handle), (handle))                                                                  \
	X(0, int, uv_signal_init, (uv_loop_t * loop, uv_signal_t * handle), (loop, handle))                                      \
	X(0, int, uv_signal_start, (uv_signal_t * handle, uv_signal_cb cb, int number), (handle, cb, number))                    \
	X(WEFT__UV_SINCE(12), int, uv_signal_start_oneshot, (uv_signal_t * handle, uv_signal_cb cb, int number),                 \
	    (handle, cb, number))                                                                                                \
	X(0, int, uv_signal_stop, (uv_signal_t * handle), (handle))                                                              \
	X(0, int, uv_fs_event_init, (uv_loop_t * loop, uv_fs_event_t * handle), (loop, handle))                                  \
	X(0, int, uv_fs_event_start, (uv_fs_event_t * handle, uv_fs_event_cb cb, const char *path, unsigned flags),              \
	    (handle, cb, path, flags))                                                                                           \
	X(0, int, uv_fs_event_stop, (uv_fs_event_t * handle), (handle))                                                          \
	X(0, int, uv_fs_poll_init, (uv_loop_t * loop, uv_fs_poll_t * handle), (loop, handle))                                    \
	X(0, int, uv_fs_poll_start, (uv_fs_poll_t * handle, uv_fs_poll_cb cb, const char *path, unsigned every_ms),              \
	    (handle, cb, path, every_ms))                                                                                        \
	X(0, int, uv_fs_poll_stop, (uv_fs_poll_t * handle), (handle))                                                            \
	X(0, int, uv_spawn, (uv_loop_t * loop, uv_process_t * handle, const uv_process_options_t *options),                      \
	    (loop, handle, options))

#define WEFT__UV_POOL_CALLS(X)                                                                                                   \
	X(0, int, uv_queue_work, (uv_loop_t * loop, uv_work_t * req, uv_work_cb work, uv_after_work_cb after),                   \
	    (loop, req, work, after))                                                                                            \
	X(0, int, uv_getaddrinfo,                                                                                                \
	    (uv_loop_t * loop, uv_getaddrinfo_t * req, uv_getaddrinfo_cb cb, const char *node, const char *service,              \
		const struct addrinfo *hints),                                                                                   \
	    (loop, req, cb, node, service, hints))                                                                               \
	X(0, int, uv_getnameinfo,                                                                                                \
	    (uv_loop_t * loop, uv_getnameinfo_t * req, uv_getnameinfo_cb cb, const struct sockaddr *address, int flags),         \
	    (loop, req, cb, address, flags))                                                                                     \
	X(WEFT__UV_SINCE(33), int, uv_random,                                                                                    \
	    (uv_loop_t * loop, uv_random_t * req, void *bytes, size_t size, unsigned flags, uv_random_cb cb),                    \
	    (loop, req, bytes, size, flags, cb))                                                                                 \
	X(0, int, uv_cancel, (uv_req_t * req), (req))

/* F(since, name, file, (parameters), (arguments)) lists a file operation; the loop and request before, and the callback behind,
 * are left out.  `file` is what the label shows: PATH for the parameter `path`, FD for the parameter `fd`, or NONE. */
#define WEFT__UV_FS_CALLS(F)                                                                                                     \
	F(0, open, PATH, (const char *path, int flags, int mode), (path, flags, mode))                                           \
	F(0, close, FD, (uv_file fd), (fd))                                                                                      \
	F(0, read, FD, (uv_file fd, const uv_buf_t bufs[], unsigned count, int64_t at), (fd, bufs, count, at))                   \
	F(0, write, FD, (uv_file fd, const uv_buf_t bufs[], unsigned count, int64_t at), (fd, bufs, count, at))                  \
	F(0, unlink, PATH, (const char *path), (path))                                                                           \
	F(WEFT__UV_SINCE(14), copyfile, PATH, (const char *path, const char *to, int flags), (path, to, flags))                  \
	F(0, mkdir, PATH, (const char *path, int mode), (path, mode))                                                            \
	F(0, mkdtemp, PATH, (const char *path), (path))                                                                          \
	F(WEFT__UV_SINCE(34), mkstemp, PATH, (const char *path), (path))                                                         \
	F(0, rmdir, PATH, (const char *path), (path))                                                                            \
	F(0, scandir, PATH, (const char *path, int flags), (path, flags))                                                        \
	F(WEFT__UV_SINCE(28), opendir, PATH, (const char *path), (path))                                                         \
	F(WEFT__UV_SINCE(28), readdir, NONE, (uv_dir_t * dir), (dir))                                                            \
	F(WEFT__UV_SINCE(28), closedir, NONE, (uv_dir_t * dir), (dir))                                                           \
	F(0, stat, PATH, (const char *path), (path))                                                                             \
	F(0, lstat, PATH, (const char *path), (path))                                                                            \
	F(0, fstat, FD, (uv_file fd), (fd))                                                                                      \
	F(0, rename, PATH, (const char *path, const char *to), (path, to))                                                       \
	F(0, fsync, FD, (uv_file fd), (fd))                                                                                      \
	F(0, fdatasync, FD, (uv_file fd), (fd))                                                                                  \
	F(0, ftruncate, FD, (uv_file fd, int64_t size), (fd, size))                                                              \
	F(0, sendfile, FD, (uv_file fd, uv_file from, int64_t at, size_t size), (fd, from, at, size))                            \
	F(0, access, PATH, (const char *path, int mode), (path, mode))                                                           \
	F(0, chmod, PATH, (const char *path, int mode), (path, mode))                                                            \
	F(0, fchmod, FD, (uv_file fd, int mode), (fd, mode))                                                                     \
	F(0, utime, PATH, (const char *path, double atime, double mtime), (path, atime, mtime))                                  \
	F(0, futime, FD, (uv_file fd, double atime, double mtime), (fd, atime, mtime))                                           \
	F(WEFT__UV_SINCE(36), lutime, PATH, (const char *path, double atime, double mtime), (path, atime, mtime))                \
	F(0, link, PATH, (const char *path, const char *to), (path, to))                                                         \
	F(0, symlink, PATH, (const char *path, const char *to, int flags), (path, to, flags))                                    \
	F(0, readlink, PATH, (const char *path), (path))                                                                         \
	F(WEFT__UV_SINCE(8), realpath, PATH, (const char *path), (path))                                                         \
	F(0, chown, PATH, (const char *path, uv_uid_t uid, uv_gid_t gid), (path, uid, gid))                                      \
	F(WEFT__UV_SINCE(21), lchown, PATH, (const char *path, uv_uid_t uid, uv_gid_t gid), (path, uid, gid))                    \
	F(0, fchown, FD, (uv_file fd, uv_uid_t uid, uv_gid_t gid), (fd, uid, gid))                                               \
	F(WEFT__UV_SINCE(31), statfs, PATH, (const char *path), (path))

#define WEFT__UV_SYNC_CALLS(X)                                                                                                   \
	X(0, void, uv_mutex_lock, (uv_mutex_t * mutex), (mutex))                                                                 \
	X(0, void, uv_rwlock_rdlock, (uv_rwlock_t * lock), (lock))                                                               \
	X(0, void, uv_rwlock_wrlock, (uv_rwlock_t * lock), (lock))                                                               \
	X(0, void, uv_cond_wait, (uv_cond_t * condition, uv_mutex_t * mutex), (condition, mutex))                                \
	X(0, void, uv_cond_signal, (uv_cond_t * condition), (condition))                                                         \
	X(0, void, uv_cond_broadcast, (uv_cond_t * condition), (condition))                                                      \
	X(0, void, uv_sem_wait, (uv_sem_t * semaphore), (semaphore))                                                             \
	X(0, void, uv_sem_post, (uv_sem_t * semaphore), (semaphore))                                                             \
	X(0, int, uv_barrier_wait, (uv_barrier_t * barrier), (barrier))

#define WEFT__UV_LIST(...) __VA_ARGS__

/* Converts an entry of WEFT__UV_FS_CALLS into an entry of the other lists. */
#define WEFT__UV_FS_AS_X(X, since, name, file, parameters, arguments)                                                            \
	X(since, int, uv_fs_##name, (uv_loop_t * loop, uv_fs_t * req, WEFT__UV_LIST parameters, uv_fs_cb cb),                    \
	    (loop, req, WEFT__UV_LIST arguments, cb))

/* Lists all wrapped functions; F(since, name, file, parameters, arguments) is for file operations. */
#define WEFT__UV_CALLS(X, F)                                                                                                     \
	WEFT__UV_LOOP_CALLS(X)                                                                                                   \
	WEFT__UV_STREAM_CALLS(X)                                                                                                 \
	WEFT__UV_UDP_CALLS(X)                                                                                                    \
	WEFT__UV_HANDLE_CALLS(X)                                                                                                 \
	WEFT__UV_POOL_CALLS(X)                                                                                                   \
	WEFT__UV_SYNC_CALLS(X)                                                                                                   \
	WEFT__UV_FS_CALLS(F)

/* Y(result, name, (parameters)) lists a function that the adapter calls and does not wrap. */
#define WEFT__UV_ONLY_CALLED(Y)                                                                                                  \
	Y(int, uv_is_active, (const uv_handle_t *handle))                                                                        \
	Y(int, uv_is_closing, (const uv_handle_t *handle))                                                                       \
	Y(int, uv_has_ref, (const uv_handle_t *handle))                                                                          \
	Y(int, uv_fileno, (const uv_handle_t *handle, uv_os_fd_t *fd))                                                           \
	Y(int, uv_backend_fd, (const uv_loop_t *loop))                                                                           \
	Y(const char *, uv_strerror, (int status))

#endif
