/* libc_io.c: wraps the functions of libc that read, write, send, receive and accept.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "adapters/hook/callers.h"
#include "adapters/hook/connect.h"
#include "adapters/hook/fd_table.h"
#include "adapters/hook/libc.h"
#include "adapters/hook/state.h"
#include "adapters/hook/thread.h"
#include "adapters/loop/loop.h"

/* poll() is called in this file, but not wrapped. */
#define CALLS(X)                                                                                                                 \
	X(poll, int, (struct pollfd *, nfds_t, int), NULL)                                                                       \
	X(read, ssize_t, (int, void *, size_t), NULL)                                                                            \
	X(__read_chk, ssize_t, (int, void *, size_t, size_t), NULL)                                                              \
	X(__recv_chk, ssize_t, (int, void *, size_t, size_t, int), NULL)                                                         \
	X(recv, ssize_t, (int, void *, size_t, int), NULL)                                                                       \
	X(recvfrom, ssize_t, (int, void *, size_t, int, struct sockaddr *, socklen_t *), NULL)                                   \
	X(__recvfrom_chk, ssize_t, (int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *), NULL)                     \
	X(recvmsg, ssize_t, (int, struct msghdr *, int), NULL)                                                                   \
	X(recvmmsg, int, (int, struct mmsghdr *, unsigned, int, struct timespec *), NULL)                                        \
	X(readv, ssize_t, (int, const struct iovec *, int), NULL)                                                                \
	X(write, ssize_t, (int, const void *, size_t), NULL)                                                                     \
	X(writev, ssize_t, (int, const struct iovec *, int), NULL)                                                               \
	X(send, ssize_t, (int, const void *, size_t, int), NULL)                                                                 \
	X(sendto, ssize_t, (int, const void *, size_t, int, const struct sockaddr *, socklen_t), NULL)                           \
	X(sendmsg, ssize_t, (int, const struct msghdr *, int), NULL)                                                             \
	X(sendmmsg, int, (int, struct mmsghdr *, unsigned, int), NULL)                                                           \
	X(accept, int, (int, struct sockaddr *, socklen_t *), NULL)                                                              \
	X(accept4, int, (int, struct sockaddr *, socklen_t *, int), NULL)                                                        \
	X(sendfile64, ssize_t, (int, int, off64_t *, size_t), NULL)                                                              \
	X(splice, ssize_t, (int, off64_t *, int, off64_t *, size_t, unsigned), NULL)

/* The original functions. */
static struct {
	CALLS(LIBC_POINTER)
} real;

static struct {
	CALLS(LIBC_TEXT)
} texts = {CALLS(LIBC_TEXT_VALUE)};

__attribute__((constructor(101))) static void resolve_calls(void)
{
	if (real.splice)
		return;
	int saved = errno;
	CALLS(LIBC_RESOLVE)
	errno = saved;
}

/* ---- Input: waits for input, and reads from connections ---- */

/* Returns whether a read would wait now. */
static bool would_read_block(int fd)
{
	if (weft__hook_fd_never_waits(fd) || __atomic_load_n(&weft__hook_has_filter, __ATOMIC_RELAXED))
		return false;
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	struct stat what;
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return false;
	if (flags & O_NONBLOCK || fstat(fd, &what) || S_ISREG(what.st_mode) || S_ISDIR(what.st_mode)) {
		weft__hook_fd_note_no_waits(fd);
		return false;
	}
	return real.poll && real.poll(&ready, 1, 0) == 0;
}

/* Returns whether a write may wait now.  A descriptor that is writable according to poll() takes at least CHECKED_BYTES, so
 * several small writes need only one check.  A pipe may take fewer bytes than a large write has. */
static bool may_write_block(int fd, const struct msghdr *message)
{
	enum { CHECKED_BYTES = 4096 };
	static uint32_t free_bytes[WEFT__HOOK_MAX_FDS]; /* number of bytes that each descriptor certainly takes without a wait */
	size_t size;
	if (weft__hook_fd_never_waits(fd) || __atomic_load_n(&weft__hook_has_filter, __ATOMIC_RELAXED) ||
	    (unsigned)fd >= WEFT__HOOK_MAX_FDS || !weft__hook_count_bytes(message->msg_iov, message->msg_iovlen, &size))
		return false;
	const uint32_t left = __atomic_load_n(&free_bytes[fd], __ATOMIC_RELAXED);
	if (size <= left) {
		__atomic_store_n(&free_bytes[fd], left - (uint32_t)size, __ATOMIC_RELAXED);
		return false;
	}
	struct stat what;
	const int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return false;
	if (flags & O_NONBLOCK || fstat(fd, &what) || S_ISREG(what.st_mode) || S_ISDIR(what.st_mode)) {
		weft__hook_fd_note_no_waits(fd);
		return false;
	}
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	int filled = 0;
	if (!real.poll || real.poll(&ready, 1, 0) == 0)
		return true;
	__atomic_store_n(&free_bytes[fd], size < CHECKED_BYTES ? CHECKED_BYTES - (uint32_t)size : 0, __ATOMIC_RELAXED);
	return size > CHECKED_BYTES && S_ISFIFO(what.st_mode) && ioctl(fd, FIONREAD, &filled) == 0 &&
	       (size_t)filled + size > (size_t)fcntl(fd, F_GETPIPE_SZ);
}

/* Names that programs call which are compiled with _FORTIFY_SOURCE.  NOLINTBEGIN(bugprone-reserved-identifier) */
ssize_t __read_chk(int fd, void *to, size_t bytes, size_t buffer_bytes);
ssize_t __recv_chk(int fd, void *to, size_t bytes, size_t buffer_bytes, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t bytes, size_t buffer_bytes, int flags, struct sockaddr *from, socklen_t *size);
/* NOLINTEND(bugprone-reserved-identifier) */

/* Records the result of a read.  If a datagram (maybe empty) was received, returns the descriptor's entry, so that the caller
 * can record the datagram's memory; else NULL. */
static const struct weft__hook_fd_info *note_read(int fd, ssize_t result)
{
	struct weft__hook_fd_info *fd_entry = result >= 0 ? weft__hook_fd_find(fd) : NULL;
	weft__hook_connect_check_io(fd, result, errno);
	if (result > 0)
		weft_hook_mark_fd_used(fd);
	if (fd_entry && result > 0 && !weft__hook_fd_is_datagram(fd_entry))
		weft__hook_fd_after_read(fd_entry, fd, (size_t)result);
	return fd_entry && weft__hook_fd_is_datagram(fd_entry) ? fd_entry : NULL;
}

static void note_messages(int fd, const struct mmsghdr *messages, int count, int flags)
{
	if (count <= 0 || (flags & (MSG_PEEK | MSG_ERRQUEUE)))
		weft__hook_connect_check_io(fd, count, errno);
	else
		for (int i = 0; i < count; i++) {
			const struct weft__hook_fd_info *of_datagram = note_read(fd, (ssize_t)messages[i].msg_len);
			if (of_datagram)
				weft__hook_fd_after_datagram(of_datagram, fd, &messages[i].msg_hdr, messages[i].msg_len);
		}
}

static void note_accept(int fd, int result, const void *caller)
{
	if (result >= 0)
		weft_hook_mark_fd_used(fd);
	weft__hook_fd_reset(result);
	if (!weft__loop_is_watched())
		return;
	if (result >= 0)
		weft__loop_accepted(fd, result, caller);
	else if (errno == EMFILE || errno == ENFILE)
		weft__loop_accept_failed(fd, caller);
}

#define PIECES(FROM, COUNT) .msg_iov = (struct iovec *)(uintptr_t)(FROM), .msg_iovlen = (size_t)(COUNT)
#define ONE_PIECE(FROM, SIZE) PIECES((&(struct iovec){(void *)(uintptr_t)(FROM), SIZE}), 1)

/* THEN contains statements that use `result`. */
#define INPUT(NAME, RESULT, PARAMETERS, ARGUMENTS, MAY_WAIT, THEN)                                                               \
	WRAP(NAME, RESULT, PARAMETERS, ARGUMENTS, false)                                                                         \
	{                                                                                                                        \
		RESULT result;                                                                                                   \
		int saved = errno;                                                                                               \
		bool waits = (MAY_WAIT) && !weft__hook_is_recorder(caller) && would_read_block(fd);                              \
		errno = saved;                                                                                                   \
		if (!waits) {                                                                                                    \
			result = real.NAME ARGUMENTS;                                                                            \
			THEN;                                                                                                    \
			return result;                                                                                           \
		}                                                                                                                \
		BEGIN_SLEEP(NAME, IO, -1, true, 0);                                                                              \
		result = real.NAME ARGUMENTS;                                                                                    \
		THEN;                                                                                                            \
		END_SLEEP;                                                                                                       \
	}
/* MESSAGE describes the memory that was read into. */
#define READ(MESSAGE)                                                                                                            \
	do {                                                                                                                     \
		const bool is_watched = result >= 0 && weft__loop_is_watched();                                                  \
		if (is_watched)                                                                                                  \
			weft__loop_before_read(fd, caller);                                                                      \
		const struct weft__hook_fd_info *of_datagram = note_read(fd, result);                                            \
		if (of_datagram)                                                                                                 \
			weft__hook_fd_after_datagram(of_datagram, fd, MESSAGE, (size_t)result);                                  \
		if (is_watched)                                                                                                  \
			weft__loop_after_read(fd, MESSAGE, result, caller);                                                      \
	} while (0)
/* With MSG_PEEK the data stays in the socket, and the error queue (MSG_ERRQUEUE) contains data that was sent, so neither counts
 * as received. */
#define RECEIVED(MESSAGE)                                                                                                        \
	if (flags & (MSG_PEEK | MSG_ERRQUEUE))                                                                                   \
		weft__hook_connect_check_io(fd, 0, 0);                                                                           \
	else                                                                                                                     \
		READ(MESSAGE)
INPUT(read, ssize_t, (int fd, void *to, size_t bytes), (fd, to, bytes), true, READ((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(readv, ssize_t, (int fd, const struct iovec *pieces, int count), (fd, pieces, count), true,
    READ((&(struct msghdr){PIECES(pieces, count)})))
INPUT(__read_chk, ssize_t, (int fd, void *to, size_t bytes, size_t buffer_bytes), (fd, to, bytes, buffer_bytes), true,
    READ((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(__recv_chk, ssize_t, (int fd, void *to, size_t bytes, size_t buffer_bytes, int flags), (fd, to, bytes, buffer_bytes, flags),
    !(flags & MSG_DONTWAIT), RECEIVED((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(recv, ssize_t, (int fd, void *to, size_t bytes, int flags), (fd, to, bytes, flags), !(flags & MSG_DONTWAIT),
    RECEIVED((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(recvfrom, ssize_t, (int fd, void *to, size_t bytes, int flags, struct sockaddr *from, socklen_t *size),
    (fd, to, bytes, flags, from, size), !(flags & MSG_DONTWAIT), RECEIVED((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(__recvfrom_chk, ssize_t,
    (int fd, void *to, size_t bytes, size_t buffer_bytes, int flags, struct sockaddr *from, socklen_t *size),
    (fd, to, bytes, buffer_bytes, flags, from, size), !(flags & MSG_DONTWAIT), RECEIVED((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(recvmsg, ssize_t, (int fd, struct msghdr *message, int flags), (fd, message, flags), !(flags & MSG_DONTWAIT),
    RECEIVED(message))
INPUT(recvmmsg, int, (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout),
    (fd, messages, count, flags, timeout), !(flags & MSG_DONTWAIT), note_messages(fd, messages, result, flags))
INPUT(accept, int, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size), true, note_accept(fd, result, caller))
INPUT(accept4, int, (int fd, struct sockaddr *from, socklen_t *size, int flags), (fd, from, size, flags), true,
    note_accept(fd, result, caller))

/* ---- Output to connections ---- */

/* Writes are recorded before the call, so that no byte is sent earlier than the trace says.  A send with MSG_FASTOPEN also
 * connects; the kernel then knows the byte positions. */
#define OUTPUT(NAME, PARAMETERS, ARGUMENTS, FLAGS, CAN_BE_READ, MESSAGE)                                                         \
	static ssize_t wait_in_##NAME(const void *caller, LIST PARAMETERS)                                                       \
	{                                                                                                                        \
		BEGIN_SLEEP(NAME, IO, -1, true, 0);                                                                              \
		const ssize_t result = real.NAME ARGUMENTS;                                                                      \
		END_SLEEP;                                                                                                       \
	}                                                                                                                        \
	WRAP(NAME, ssize_t, PARAMETERS, ARGUMENTS, false)                                                                        \
	{                                                                                                                        \
		const bool opens = ((FLAGS)&MSG_FASTOPEN) && (CAN_BE_READ);                                                      \
		const bool is_watched = (CAN_BE_READ) && weft__loop_is_watched();                                                \
		if (is_watched)                                                                                                  \
			weft__loop_before_write(fd, MESSAGE, caller);                                                            \
		struct weft__hook_fd_info *fd_info = weft__hook_fd_find(fd);                                                     \
		if (opens)                                                                                                       \
			weft__hook_fd_mark_client(fd);                                                                           \
		const size_t recorded =                                                                                          \
		    fd_info && !opens && (CAN_BE_READ) ? weft__hook_fd_before_write(fd_info, fd, MESSAGE) : 0;                   \
		int saved = errno;                                                                                               \
		const bool waits =                                                                                               \
		    (CAN_BE_READ) && !((FLAGS)&MSG_DONTWAIT) && !weft__hook_is_recorder(caller) && may_write_block(fd, MESSAGE); \
		errno = saved;                                                                                                   \
		const ssize_t result = waits ? wait_in_##NAME(caller, LIST ARGUMENTS) : real.NAME ARGUMENTS;                     \
		const size_t accepted = result > 0 ? (size_t)result : 0;                                                         \
		weft__hook_connect_check_io(fd, result, errno);                                                                  \
		if (opens)                                                                                                       \
			weft__hook_connect_returned(fd, (MESSAGE)->msg_name, (MESSAGE)->msg_namelen, result < 0 ? -1 : 0,        \
			    weft_hook_fd_promise(fd), caller);                                                                   \
		if (accepted > 0)                                                                                                \
			weft_hook_mark_fd_used(fd);                                                                              \
		if (accepted < recorded)                                                                                         \
			weft__hook_fd_short_write(fd_info, recorded - accepted);                                                 \
		if (is_watched)                                                                                                  \
			weft__loop_after_write(fd, MESSAGE, recorded, result);                                                   \
		return result;                                                                                                   \
	}
OUTPUT(write, (int fd, const void *from, size_t size), (fd, from, size), 0, true, (&(struct msghdr){ONE_PIECE(from, size)}))
OUTPUT(writev, (int fd, const struct iovec *pieces, int count), (fd, pieces, count), 0, count > 0,
    (&(struct msghdr){PIECES(pieces, count)}))
OUTPUT(send, (int fd, const void *from, size_t size, int flags), (fd, from, size, flags), flags &MSG_DONTWAIT, true,
    (&(struct msghdr){ONE_PIECE(from, size)}))
OUTPUT(sendto, (int fd, const void *from, size_t size, int flags, const struct sockaddr *to, socklen_t bytes_of_to),
    (fd, from, size, flags, to, bytes_of_to), flags, true,
    (&(struct msghdr){.msg_name = (void *)(uintptr_t)to, .msg_namelen = bytes_of_to, ONE_PIECE(from, size)}))
OUTPUT(sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), flags,
    weft_hook_is_readable(message, sizeof *message), message)

OUTPUT(sendfile64, (int fd, int from, off64_t *at, size_t size), (fd, from, at, size), 0, true,
    (&(struct msghdr){ONE_PIECE(NULL, size)}))
ALIAS(sendfile64, "sendfile");

WRAP(splice, ssize_t, (int from, off64_t *from_at, int fd, off64_t *at, size_t size, unsigned flags),
    (from, from_at, fd, at, size, flags), false)
{
	(void)caller;
	struct weft__hook_fd_info *fd_info = weft__hook_fd_find(fd);
	const size_t recorded = fd_info ? weft__hook_fd_before_write(fd_info, fd, &(struct msghdr){ONE_PIECE(NULL, size)}) : 0;
	const ssize_t result = real.splice(from, from_at, fd, at, size, flags);
	const size_t accepted = result > 0 ? (size_t)result : 0;
	note_read(from, result);
	if (accepted > 0)
		weft_hook_mark_fd_used(fd);
	if (accepted < recorded)
		weft__hook_fd_short_write(fd_info, recorded - accepted);
	return result;
}

WRAP(sendmmsg, int, (int fd, struct mmsghdr *messages, unsigned count, int flags), (fd, messages, count, flags), false)
{
	(void)caller;
	struct weft__hook_fd_info *fd_info = weft__hook_fd_find(fd);
	size_t recorded = 0, accepted = 0;
	unsigned at = 0;
	for (; fd_info && at < count && weft_hook_is_readable(&messages[at], sizeof messages[at]); at++)
		recorded += weft__hook_fd_before_write(fd_info, fd, &messages[at].msg_hdr);
	const int result = real.sendmmsg(fd, messages, count, flags);
	if (result > 0)
		weft_hook_mark_fd_used(fd);
	for (unsigned i = 0; recorded > 0 && i < at && result > 0 && i < (unsigned)result; i++)
		accepted += messages[i].msg_len;
	if (accepted < recorded)
		weft__hook_fd_short_write(fd_info, recorded - accepted);
	return result;
}
