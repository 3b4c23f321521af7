/* sleep.c: the calls of libc that are taken by symbol.
 *
 * Programs, libraries and runtimes call them through pointers that the loader fills, and this library stands first.  What libc
 * calls by itself is not seen.  What each of them continues in is looked up when the library is loaded: some of them may be
 * called in signal handlers, where dlsym() may not.  SPDX-License-Identifier: ISC */
#include "adapters/hook/sleep.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "adapters/hook/load.h"

#define TAKEN __attribute__((visibility("default")))

/* The version that programs are linked with, where libc keeps an older one that works otherwise. */
#if defined(__x86_64__)
#define CONDITIONS "GLIBC_2.3.2"
#else
#define CONDITIONS NULL
#endif

/* Name, return type, parameters, kind, version.  Locks first: what looks up the rest may allocate, under an allocator's lock. */
#define CALLS(X)                                                                                                                 \
	X(pthread_mutex_lock, int, (pthread_mutex_t *), MUTEX, NULL)                                                             \
	X(mtx_lock, int, (mtx_t *), MUTEX, NULL)                                                                                 \
	X(pthread_rwlock_rdlock, int, (pthread_rwlock_t *), MUTEX, NULL)                                                         \
	X(pthread_rwlock_wrlock, int, (pthread_rwlock_t *), MUTEX, NULL)                                                         \
	X(epoll_wait, int, (int, struct epoll_event *, int, int), FDS, NULL)                                                     \
	X(epoll_pwait, int, (int, struct epoll_event *, int, int, const sigset_t *), FDS, NULL)                                  \
	X(epoll_pwait2, int, (int, struct epoll_event *, int, const struct timespec *, const sigset_t *), FDS, NULL)             \
	X(poll, int, (struct pollfd *, nfds_t, int), FDS, NULL)                                                                  \
	X(__poll_chk, int, (struct pollfd *, nfds_t, int, size_t), FDS, NULL)                                                    \
	X(ppoll, int, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *), FDS, NULL)                           \
	X(__ppoll_chk, int, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t), FDS, NULL)             \
	X(select, int, (int, fd_set *, fd_set *, fd_set *, struct timeval *), FDS, NULL)                                         \
	X(pselect, int, (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *), FDS, NULL)               \
	X(sigwait, int, (const sigset_t *, int *), SIGNAL, NULL)                                                                 \
	X(sigwaitinfo, int, (const sigset_t *, siginfo_t *), SIGNAL, NULL)                                                       \
	X(sigtimedwait, int, (const sigset_t *, siginfo_t *, const struct timespec *), SIGNAL, NULL)                             \
	X(sigsuspend, int, (const sigset_t *), SIGNAL, NULL)                                                                     \
	X(pause, int, (void), SIGNAL, NULL)                                                                                      \
	X(pthread_cond_wait, int, (pthread_cond_t *, pthread_mutex_t *), LOCK, CONDITIONS)                                       \
	X(pthread_cond_timedwait, int, (pthread_cond_t *, pthread_mutex_t *, const struct timespec *), LOCK, CONDITIONS)         \
	X(pthread_cond_clockwait, int, (pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *), LOCK, NULL)    \
	X(cnd_wait, int, (cnd_t *, mtx_t *), LOCK, NULL)                                                                         \
	X(cnd_timedwait, int, (cnd_t *, mtx_t *, const struct timespec *), LOCK, NULL)                                           \
	X(pthread_barrier_wait, int, (pthread_barrier_t *), LOCK, NULL)                                                          \
	X(sem_clockwait, int, (sem_t *, clockid_t, const struct timespec *), LOCK, NULL)                                         \
	X(sem_wait, int, (sem_t *), LOCK, NULL)                                                                                  \
	X(sem_timedwait, int, (sem_t *, const struct timespec *), LOCK, NULL)                                                    \
	X(syscall, long, (long, ...), LOCK, NULL)                                                                                \
	X(nanosleep, int, (const struct timespec *, struct timespec *), TIME, NULL)                                              \
	X(clock_nanosleep, int, (clockid_t, int, const struct timespec *, struct timespec *), TIME, NULL)                        \
	X(usleep, int, (useconds_t), TIME, NULL)                                                                                 \
	X(sleep, unsigned, (unsigned), TIME, NULL)                                                                               \
	X(thrd_sleep, int, (const struct timespec *, struct timespec *), TIME, NULL)                                             \
	X(read, ssize_t, (int, void *, size_t), INPUT, NULL)                                                                     \
	X(__read_chk, ssize_t, (int, void *, size_t, size_t), INPUT, NULL)                                                       \
	X(__recv_chk, ssize_t, (int, void *, size_t, size_t, int), INPUT, NULL)                                                  \
	X(recv, ssize_t, (int, void *, size_t, int), INPUT, NULL)                                                                \
	X(recvfrom, ssize_t, (int, void *, size_t, int, struct sockaddr *, socklen_t *), INPUT, NULL)                            \
	X(recvmsg, ssize_t, (int, struct msghdr *, int), INPUT, NULL)                                                            \
	X(accept, int, (int, struct sockaddr *, socklen_t *), INPUT, NULL)                                                       \
	X(accept4, int, (int, struct sockaddr *, socklen_t *, int), INPUT, NULL)                                                 \
	X(wait, pid_t, (int *), PROCESS, NULL)                                                                                   \
	X(waitpid, pid_t, (pid_t, int *, int), PROCESS, NULL)                                                                    \
	X(waitid, int, (idtype_t, id_t, siginfo_t *, int), PROCESS, NULL)

/* What each continues in. */
static struct {
#define POINTER(NAME, RESULT, PARAMETERS, KIND, VERSION) RESULT(*NAME) PARAMETERS;
	CALLS(POINTER)
#undef POINTER
} real;

/* What takes a lock that is free, without waiting. */
#define TRIES(X)                                                                                                                 \
	X(pthread_mutex_trylock, (pthread_mutex_t *))                                                                            \
	X(mtx_trylock, (mtx_t *))                                                                                                \
	X(pthread_rwlock_tryrdlock, (pthread_rwlock_t *))                                                                        \
	X(pthread_rwlock_trywrlock, (pthread_rwlock_t *))

static struct {
#define POINTER(NAME, PARAMETERS) int(*NAME) PARAMETERS;
	TRIES(POINTER)
#undef POINTER
} tries;

static struct {
#define TEXT(NAME, RESULT, PARAMETERS, KIND, VERSION) struct weft_record_text NAME;
	CALLS(TEXT)
#undef TEXT
} texts = {
#define TEXT(NAME, RESULT, PARAMETERS, KIND, VERSION) .NAME = WEFT_COUNTER("blocked in " #NAME),
    CALLS(TEXT)
#undef TEXT
};

static void *find(const char *name, const char *version)
{
	void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
	return found ? found : dlsym(RTLD_NEXT, name);
}

__attribute__((constructor(101))) static void resolve(void)
{
	if (real.wait)
		return;
	int saved = errno;
#define RESOLVE(NAME, RESULT, PARAMETERS, KIND, VERSION) real.NAME = (RESULT(*) PARAMETERS)find(#NAME, VERSION);
	CALLS(RESOLVE)
#undef RESOLVE
#define RESOLVE(NAME, PARAMETERS) tries.NAME = (int(*) PARAMETERS)find(#NAME, NULL);
	TRIES(RESOLVE)
#undef RESOLVE
	errno = saved;
}

/* The answer of a call that this libc does not have: a program may find it here and nowhere else. */
static int absent(void)
{
	errno = ENOSYS;
	return -1;
}

#define FOUND(NAME)                                                                                                              \
	if (__builtin_expect(!real.NAME, 0)) {                                                                                   \
		resolve(); /* another library's constructor ran first */                                                         \
		if (!real.NAME)                                                                                                  \
			return absent();                                                                                         \
	}

/* The call with what is told around it; CALL is it, with its arguments.  BEGINS: where nothing records yet, whether recording is
 * to begin (adapters/base).  AT_ONCE: the call without waiting, as what else it does allows; 0: there is no such thing. */
#define ASLEEP(NAME, KIND, EPOLL, MAY_SLEEP, BEGINS, AT_ONCE, CALL)                                                              \
	FOUND(NAME);                                                                                                             \
	if (!weft_is_on() && !((BEGINS) && weft__hook_begin()))                                                                  \
		return CALL;                                                                                                     \
	struct weft_hook_sleep s = {.kind = WEFT_HOOK_SLEEP_##KIND,                                                              \
	    .function = #NAME,                                                                                                   \
	    .text = &texts.NAME,                                                                                                 \
	    .epoll = EPOLL,                                                                                                      \
	    .may_sleep = MAY_SLEEP,                                                                                              \
	    .caller = __builtin_return_address(0)};                                                                              \
	int before = errno;                                                                                                      \
	bool is_quick = weft__hook_nears_sleep(&s);                                                                              \
	errno = before;                                                                                                          \
	int already = is_quick ? (AT_ONCE) : 0;                                                                                  \
	if (already)                                                                                                             \
		return already;                                                                                                  \
	weft__hook_falls_asleep(&s);                                                                                             \
	errno = before

#define AWAKE                                                                                                                    \
	int after = errno;                                                                                                       \
	weft__hook_wakes(&s);                                                                                                    \
	errno = after;                                                                                                           \
	return result

#define SIMPLE(NAME, RESULT, PARAMETERS, ARGUMENTS, KIND, BEGINS)                                                                \
	TAKEN RESULT NAME PARAMETERS                                                                                             \
	{                                                                                                                        \
		ASLEEP(NAME, KIND, -1, true, BEGINS, 0, real.NAME ARGUMENTS);                                                    \
		RESULT result = real.NAME ARGUMENTS;                                                                             \
		AWAKE;                                                                                                           \
	}

/* In two parts where the adapter asked for that; PART is the call with the timeout that is named `part`. */
#define IN_PARTS(PART)                                                                                                           \
	int result, part = timeout;                                                                                              \
	if (s.first_ms > 0 && s.still && (timeout < 0 || timeout > s.first_ms)) {                                                \
		part = s.first_ms;                                                                                               \
		result = PART;                                                                                                   \
		part = timeout < 0 ? timeout : timeout - s.first_ms;                                                             \
		if (result == 0) {                                                                                               \
			s.still(&s);                                                                                             \
			errno = before;                                                                                          \
			result = PART;                                                                                           \
		}                                                                                                                \
	} else {                                                                                                                 \
		result = PART;                                                                                                   \
	}

static bool is_zero(const struct timespec *t)
{
	return t && t->tv_sec == 0 && t->tv_nsec == 0;
}

static const struct timespec zero;

/* Whether a select() looks at more than one descriptor. */
static bool has_several(int count, const fd_set *in, const fd_set *out, const fd_set *other)
{
	const fd_set *const sets[] = {in, out, other};
	int found = 0;
	for (int fd = 0; fd < count && found < 2; fd++)
		for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
			if (sets[i] && FD_ISSET(fd % FD_SETSIZE, &sets[i][fd / FD_SETSIZE])) {
				found++;
				break;
			}
	return found > 1;
}

TAKEN int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	ASLEEP(epoll_wait, FDS, fd, timeout != 0, timeout != 0, real.epoll_wait(fd, events, most, 0),
	    real.epoll_wait(fd, events, most, timeout));
	IN_PARTS(real.epoll_wait(fd, events, most, part))
	AWAKE;
}

TAKEN int epoll_pwait(int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
{
	ASLEEP(epoll_pwait, FDS, fd, timeout != 0, timeout != 0, real.epoll_pwait(fd, events, most, 0, mask),
	    real.epoll_pwait(fd, events, most, timeout, mask));
	IN_PARTS(real.epoll_pwait(fd, events, most, part, mask))
	AWAKE;
}

TAKEN int epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask)
{
	ASLEEP(epoll_pwait2, FDS, fd, !is_zero(timeout), !is_zero(timeout), real.epoll_pwait2(fd, events, most, &zero, mask),
	    real.epoll_pwait2(fd, events, most, timeout, mask));
	int result = real.epoll_pwait2(fd, events, most, timeout, mask);
	AWAKE;
}

TAKEN int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	ASLEEP(poll, FDS, -1, timeout != 0, timeout != 0 && count > 1, real.poll(fds, count, 0), real.poll(fds, count, timeout));
	IN_PARTS(real.poll(fds, count, part))
	AWAKE;
}

/* What a program calls that is compiled with _FORTIFY_SOURCE. */
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t bytes);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t bytes);

TAKEN int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t bytes)
{
	ASLEEP(__poll_chk, FDS, -1, timeout != 0, timeout != 0 && count > 1, real.__poll_chk(fds, count, 0, bytes),
	    real.__poll_chk(fds, count, timeout, bytes));
	IN_PARTS(real.__poll_chk(fds, count, part, bytes))
	AWAKE;
}

TAKEN int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	ASLEEP(ppoll, FDS, -1, !is_zero(timeout), !is_zero(timeout) && count > 1, real.ppoll(fds, count, &zero, mask),
	    real.ppoll(fds, count, timeout, mask));
	int result = real.ppoll(fds, count, timeout, mask);
	AWAKE;
}

TAKEN int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t bytes)
{
	ASLEEP(__ppoll_chk, FDS, -1, !is_zero(timeout), !is_zero(timeout) && count > 1,
	    real.__ppoll_chk(fds, count, &zero, mask, bytes), real.__ppoll_chk(fds, count, timeout, mask, bytes));
	int result = real.__ppoll_chk(fds, count, timeout, mask, bytes);
	AWAKE;
}

TAKEN int select(int count, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout)
{
	bool waits = !(timeout && timeout->tv_sec == 0 && timeout->tv_usec == 0);
	ASLEEP(
	    select, FDS, -1, waits, waits && has_several(count, in, out, other), 0, real.select(count, in, out, other, timeout));
	int result = real.select(count, in, out, other, timeout);
	AWAKE;
}

TAKEN int pselect(int count, fd_set *in, fd_set *out, fd_set *other, const struct timespec *timeout, const sigset_t *mask)
{
	bool waits = !is_zero(timeout);
	ASLEEP(pselect, FDS, -1, waits, waits && has_several(count, in, out, other), 0,
	    real.pselect(count, in, out, other, timeout, mask));
	int result = real.pselect(count, in, out, other, timeout, mask);
	AWAKE;
}

TAKEN int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	ASLEEP(sigtimedwait, SIGNAL, -1, !is_zero(timeout), false, 0, real.sigtimedwait(set, info, timeout));
	int result = real.sigtimedwait(set, info, timeout);
	AWAKE;
}

TAKEN pid_t waitpid(pid_t pid, int *status, int options)
{
	ASLEEP(waitpid, PROCESS, -1, !(options & WNOHANG), false, 0, real.waitpid(pid, status, options));
	pid_t result = real.waitpid(pid, status, options);
	AWAKE;
}

TAKEN int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	ASLEEP(waitid, PROCESS, -1, !(options & WNOHANG), false, 0, real.waitid(type, id, info, options));
	int result = real.waitid(type, id, info, options);
	AWAKE;
}

/* Runtimes that wait at a futex themselves (GLib, Rust) call it so.  Nothing that begins a recording: a lock that is busy for a
 * moment says nothing of what the program is. */
TAKEN long syscall(long number, ...)
{
	va_list list;
	long a[6];
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	long operation = a[1] & FUTEX_CMD_MASK;
	bool waits = number == SYS_futex && !weft__hook_is_recorder(__builtin_return_address(0)) &&
		     (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET);
	if (!waits) {
		if (__builtin_expect(!real.syscall, 0))
			resolve();
		return real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
	ASLEEP(syscall, LOCK, -1, true, false, 0, real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]));
	long result = real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	AWAKE;
}

SIMPLE(sigwait, int, (const sigset_t *set, int *number), (set, number), SIGNAL, false)
SIMPLE(sigwaitinfo, int, (const sigset_t *set, siginfo_t *info), (set, info), SIGNAL, false)
SIMPLE(sigsuspend, int, (const sigset_t *set), (set), SIGNAL, false)
SIMPLE(pause, int, (void), (), SIGNAL, false)
SIMPLE(pthread_cond_wait, int, (pthread_cond_t * condition, pthread_mutex_t *mutex), (condition, mutex), LOCK, true)
SIMPLE(pthread_cond_timedwait, int, (pthread_cond_t * condition, pthread_mutex_t *mutex, const struct timespec *until),
    (condition, mutex, until), LOCK, true)
SIMPLE(pthread_cond_clockwait, int,
    (pthread_cond_t * condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
    (condition, mutex, clock, until), LOCK, true)
SIMPLE(sem_wait, int, (sem_t * semaphore), (semaphore), LOCK, true)
SIMPLE(sem_timedwait, int, (sem_t * semaphore, const struct timespec *until), (semaphore, until), LOCK, true)
SIMPLE(nanosleep, int, (const struct timespec *time, struct timespec *rest), (time, rest), TIME, false)
SIMPLE(clock_nanosleep, int, (clockid_t clock, int flags, const struct timespec *time, struct timespec *rest),
    (clock, flags, time, rest), TIME, false)
SIMPLE(usleep, int, (useconds_t time), (time), TIME, false)
SIMPLE(sleep, unsigned, (unsigned seconds), (seconds), TIME, false)
SIMPLE(wait, pid_t, (int *status), (status), PROCESS, false)

SIMPLE(cnd_wait, int, (cnd_t * condition, mtx_t *mutex), (condition, mutex), LOCK, true)
SIMPLE(cnd_timedwait, int, (cnd_t * condition, mtx_t *mutex, const struct timespec *until), (condition, mutex, until), LOCK, true)
SIMPLE(
    sem_clockwait, int, (sem_t * semaphore, clockid_t clock, const struct timespec *until), (semaphore, clock, until), LOCK, true)
SIMPLE(pthread_barrier_wait, int, (pthread_barrier_t * barrier), (barrier), LOCK, true)
SIMPLE(thrd_sleep, int, (const struct timespec *time, struct timespec *rest), (time, rest), TIME, false)

/* ---- Locks: one that is free is no sleep ---- */

#define TRIED(NAME, TYPE, TRY, BUSY)                                                                                             \
	TAKEN int NAME(TYPE *lock)                                                                                               \
	{                                                                                                                        \
		FOUND(NAME);                                                                                                     \
		/* What weft has locks for must not wait for what it tells of that. */                                           \
		if (!weft_is_on() || weft__hook_is_recorder(__builtin_return_address(0)))                                        \
			return real.NAME(lock);                                                                                  \
		int status = tries.TRY ? tries.TRY(lock) : (BUSY);                                                               \
		if (status != (BUSY))                                                                                            \
			return status;                                                                                           \
		ASLEEP(NAME, MUTEX, -1, true, false, 0, real.NAME(lock));                                                        \
		int result = real.NAME(lock);                                                                                    \
		AWAKE;                                                                                                           \
	}
TRIED(pthread_mutex_lock, pthread_mutex_t, pthread_mutex_trylock, EBUSY)
TRIED(mtx_lock, mtx_t, mtx_trylock, thrd_busy)
TRIED(pthread_rwlock_rdlock, pthread_rwlock_t, pthread_rwlock_tryrdlock, EBUSY)
TRIED(pthread_rwlock_wrlock, pthread_rwlock_t, pthread_rwlock_trywrlock, EBUSY)

/* ---- Input ---- */

/* Whether a read of it would wait now.  That is asked of what is known to block only: of each descriptor it is remembered, for
 * each OS thread, that it is a file, or was told never to block.  One that is used again for something that blocks is then
 * believed to work while it waits. */
static bool would_wait(int fd)
{
	enum { KNOWN = 1024 };
	static __thread uint64_t never[KNOWN / 64] __attribute__((tls_model("initial-exec")));
	bool is_small = fd >= 0 && fd < KNOWN;
	if (is_small && never[fd / 64] >> fd % 64 & 1)
		return false;
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	struct stat what;
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return false;
	if (flags & O_NONBLOCK || fstat(fd, &what) || S_ISREG(what.st_mode) || S_ISDIR(what.st_mode)) {
		if (is_small)
			never[fd / 64] |= (uint64_t)1 << fd % 64;
		return false;
	}
	return real.poll && real.poll(&ready, 1, 0) == 0;
}

ssize_t __read_chk(int fd, void *to, size_t bytes, size_t room);
ssize_t __recv_chk(int fd, void *to, size_t bytes, size_t room, int flags);

#define INPUT(NAME, RESULT, PARAMETERS, ARGUMENTS, MAY_WAIT)                                                                     \
	TAKEN RESULT NAME PARAMETERS                                                                                             \
	{                                                                                                                        \
		FOUND(NAME);                                                                                                     \
		if (!weft_is_on() || weft__hook_is_recorder(__builtin_return_address(0)))                                        \
			return real.NAME ARGUMENTS;                                                                              \
		int saved = errno;                                                                                               \
		bool waits = (MAY_WAIT) && would_wait(fd);                                                                       \
		errno = saved;                                                                                                   \
		if (!waits)                                                                                                      \
			return real.NAME ARGUMENTS;                                                                              \
		ASLEEP(NAME, INPUT, -1, true, false, 0, real.NAME ARGUMENTS);                                                    \
		RESULT result = real.NAME ARGUMENTS;                                                                             \
		AWAKE;                                                                                                           \
	}
INPUT(read, ssize_t, (int fd, void *to, size_t bytes), (fd, to, bytes), true)
INPUT(__read_chk, ssize_t, (int fd, void *to, size_t bytes, size_t room), (fd, to, bytes, room), true)
INPUT(__recv_chk, ssize_t, (int fd, void *to, size_t bytes, size_t room, int flags), (fd, to, bytes, room, flags),
    !(flags & MSG_DONTWAIT))
INPUT(recv, ssize_t, (int fd, void *to, size_t bytes, int flags), (fd, to, bytes, flags), !(flags & MSG_DONTWAIT))
INPUT(recvfrom, ssize_t, (int fd, void *to, size_t bytes, int flags, struct sockaddr *from, socklen_t *size),
    (fd, to, bytes, flags, from, size), !(flags & MSG_DONTWAIT))
INPUT(recvmsg, ssize_t, (int fd, struct msghdr *message, int flags), (fd, message, flags), !(flags & MSG_DONTWAIT))
INPUT(accept, int, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size), true)
INPUT(accept4, int, (int fd, struct sockaddr *from, socklen_t *size, int flags), (fd, from, size, flags), true)
