/* libc_fd.c: wraps the functions of libc that make, connect, duplicate and close descriptors.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adapters/hook/connect.h"
#include "adapters/hook/fd_table.h"
#include "adapters/hook/libc.h"
#include "adapters/hook/state.h"
#include "adapters/loop/loop.h"

#define CALLS(X)                                                                                                                 \
	X(connect, int, (int, const struct sockaddr *, socklen_t), NULL)                                                         \
	X(getsockopt, int, (int, int, int, void *restrict, socklen_t *restrict), NULL)                                           \
	X(socket, int, (int, int, int), NULL)                                                                                    \
	X(close, int, (int), NULL)                                                                                               \
	X(close_range, int, (unsigned, unsigned, int), NULL)                                                                     \
	X(closefrom, void, (int), NULL)                                                                                          \
	X(dup, int, (int), NULL)                                                                                                 \
	X(dup2, int, (int, int), NULL)                                                                                           \
	X(dup3, int, (int, int, int), NULL)                                                                                      \
	X(ioctl, int, (int, unsigned long, ...), NULL)                                                                           \
	X(prctl, int, (int, ...), NULL)                                                                                          \
	X(fcntl64, int, (int, int, ...), NULL)

/* The original functions. */
static struct {
	CALLS(LIBC_POINTER)
} real;

__attribute__((constructor(101))) static void resolve_calls(void)
{
	if (real.fcntl64)
		return;
	int saved = errno;
	CALLS(LIBC_RESOLVE)
	errno = saved;
}

WRAP(connect, int, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), false)
{
	weft__hook_fd_mark_client(fd);
	const int result = real.connect(fd, to, size);
	if (result == 0 && weft__hook_get_thread()->wait_owner == WEFT_HOOK_WAIT_OF_NOBODY)
		weft__loop_begin_talk(fd, caller);
	if ((result == 0 || errno == EINPROGRESS) && weft__loop_is_watched())
		weft__loop_connects(fd, to, size, caller);
	weft__hook_connect_returned(fd, to, size, result, weft_hook_fd_promise(fd), caller);
	return result;
}

/* By getsockopt(SO_ERROR), a program asks how a connect in progress ended. */
WRAP(getsockopt, int, (int fd, int level, int name, void *restrict to, socklen_t *restrict size), (fd, level, name, to, size),
    false)
{
	(void)caller;
	const int result = real.getsockopt(fd, level, name, to, size);
	int error;
	if (level == SOL_SOCKET && name == SO_ERROR && result == 0 && *size == sizeof error) {
		memcpy(&error, to, sizeof error);
		weft__hook_connect_check_io(fd, error ? -1 : 0, error);
	}
	return result;
}

/* ---- Descriptors that are made, duplicated or closed ---- */

WRAP(socket, int, (int family, int type, int protocol), (family, type, protocol), false)
{
	(void)caller;
	const int result = real.socket(family, type, protocol);
	weft__hook_fd_reset(result);
	return result;
}

WRAP(close, int, (int fd), (fd), false)
{
	(void)caller;
	weft__hook_fd_reset(fd);
	return real.close(fd);
}

WRAP(close_range, int, (unsigned first, unsigned last, int flags), (first, last, flags), false)
{
	(void)caller;
	if (!(flags & CLOSE_RANGE_CLOEXEC))
		weft__hook_fd_reset_range(first, last);
	return real.close_range(first, last, flags);
}

EXPORTED void closefrom(int first)
{
	ENSURE_RESOLVED(closefrom)
	if (is_recorded())
		weft__hook_fd_reset_range(first < 0 ? 0 : (unsigned)first, UINT_MAX);
	real.closefrom(first);
}

#define WRAP_DUP(NAME, PARAMETERS, ARGUMENTS)                                                                                    \
	WRAP(NAME, int, PARAMETERS, ARGUMENTS, false)                                                                            \
	{                                                                                                                        \
		(void)caller;                                                                                                    \
		const int result = real.NAME ARGUMENTS;                                                                          \
		weft__hook_fd_duplicate(result, fd);                                                                             \
		return result;                                                                                                   \
	}
WRAP_DUP(dup, (int fd), (fd))
WRAP_DUP(dup2, (int fd, int to), (fd, to))
WRAP_DUP(dup3, (int fd, int to, int flags), (fd, to, flags))

EXPORTED int fcntl64(int fd, int operation, ...)
{
	va_list list;
	va_start(list, operation);
	void *argument = va_arg(list, void *);
	va_end(list);
	ENSURE_RESOLVED(fcntl64)
	const int result = real.fcntl64(fd, operation, argument);
	if (operation == F_SETFL)
		weft__hook_fd_may_wait(fd);
	if ((operation == F_DUPFD || operation == F_DUPFD_CLOEXEC) && is_recorded())
		weft__hook_fd_duplicate(result, fd);
	return result;
}
ALIAS(fcntl64, "fcntl");

/* Python and others make a socket blocking again by this call. */
EXPORTED int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	va_start(list, request);
	void *argument = va_arg(list, void *);
	va_end(list);
	ENSURE_RESOLVED(ioctl)
	const int result = real.ioctl(fd, request, argument);
	if (request == FIONBIO)
		weft__hook_fd_may_wait(fd);
	return result;
}

/* ---- Filters of system calls ---- */

EXPORTED int prctl(int operation, ...)
{
	va_list list;
	va_start(list, operation);
	unsigned long a[4];
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	ENSURE_RESOLVED(prctl)
	if (operation == PR_SET_SECCOMP)
		__atomic_store_n(&weft__hook_has_filter, true, __ATOMIC_RELAXED);
	return real.prctl(operation, a[0], a[1], a[2], a[3]);
}
