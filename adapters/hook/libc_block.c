/* libc_block.c: wraps the functions of libc that block: waits for descriptors, signals, processes, times, locks and conditions.
 * SPDX-License-Identifier: ISC */
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "adapters/hook/callers.h"
#include "adapters/hook/children.h"
#include "adapters/hook/condition.h"
#include "adapters/hook/libc.h"
#include "adapters/hook/lock.h"
#include "adapters/hook/state.h"
#include "adapters/loop/loop.h"

/* Version of the symbols that programs link today; libc keeps older versions that behave differently. */
#if !defined(CONDITIONS) && defined(__x86_64__)
#define CONDITIONS "GLIBC_2.3.2"
#elif !defined(CONDITIONS)
#define CONDITIONS NULL
#endif

/* The locks come first in the list: a symbol lookup may allocate memory, and an allocator may take locks. */
#define CALLS(X)                                                                                                                 \
	X(pthread_mutex_lock, int, (pthread_mutex_t *), NULL)                                                                    \
	X(pthread_mutex_unlock, int, (pthread_mutex_t *), NULL)                                                                  \
	X(mtx_lock, int, (mtx_t *), NULL)                                                                                        \
	X(pthread_rwlock_rdlock, int, (pthread_rwlock_t *), NULL)                                                                \
	X(pthread_rwlock_wrlock, int, (pthread_rwlock_t *), NULL)                                                                \
	X(epoll_wait, int, (int, struct epoll_event *, int, int), NULL)                                                          \
	X(epoll_pwait, int, (int, struct epoll_event *, int, int, const sigset_t *), NULL)                                       \
	X(epoll_pwait2, int, (int, struct epoll_event *, int, const struct timespec *, const sigset_t *), NULL)                  \
	X(poll, int, (struct pollfd *, nfds_t, int), NULL)                                                                       \
	X(__poll_chk, int, (struct pollfd *, nfds_t, int, size_t), NULL)                                                         \
	X(ppoll, int, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *), NULL)                                \
	X(__ppoll_chk, int, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t), NULL)                  \
	X(select, int, (int, fd_set *, fd_set *, fd_set *, struct timeval *), NULL)                                              \
	X(pselect, int, (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *), NULL)                    \
	X(sigwait, int, (const sigset_t *, int *), NULL)                                                                         \
	X(sigwaitinfo, int, (const sigset_t *, siginfo_t *), NULL)                                                               \
	X(sigtimedwait, int, (const sigset_t *, siginfo_t *, const struct timespec *), NULL)                                     \
	X(sigsuspend, int, (const sigset_t *), NULL)                                                                             \
	X(pause, int, (void), NULL)                                                                                              \
	X(pthread_cond_wait, int, (pthread_cond_t *, pthread_mutex_t *), CONDITIONS)                                             \
	X(pthread_cond_timedwait, int, (pthread_cond_t *, pthread_mutex_t *, const struct timespec *), CONDITIONS)               \
	X(pthread_cond_clockwait, int, (pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *), NULL)          \
	X(pthread_cond_signal, int, (pthread_cond_t *), CONDITIONS)                                                              \
	X(pthread_cond_broadcast, int, (pthread_cond_t *), CONDITIONS)                                                           \
	X(cnd_wait, int, (cnd_t *, mtx_t *), NULL)                                                                               \
	X(cnd_timedwait, int, (cnd_t *, mtx_t *, const struct timespec *), NULL)                                                 \
	X(pthread_barrier_wait, int, (pthread_barrier_t *), NULL)                                                                \
	X(sem_init, int, (sem_t *, int, unsigned), NULL)                                                                         \
	X(sem_clockwait, int, (sem_t *, clockid_t, const struct timespec *), NULL)                                               \
	X(sem_post, int, (sem_t *), NULL)                                                                                        \
	X(sem_trywait, int, (sem_t *), NULL)                                                                                     \
	X(sem_wait, int, (sem_t *), NULL)                                                                                        \
	X(sem_timedwait, int, (sem_t *, const struct timespec *), NULL)                                                          \
	X(syscall, long, (long, ...), NULL)                                                                                      \
	X(nanosleep, int, (const struct timespec *, struct timespec *), NULL)                                                    \
	X(clock_nanosleep, int, (clockid_t, int, const struct timespec *, struct timespec *), NULL)                              \
	X(usleep, int, (useconds_t), NULL)                                                                                       \
	X(sleep, unsigned, (unsigned), NULL)                                                                                     \
	X(thrd_sleep, int, (const struct timespec *, struct timespec *), NULL)                                                   \
	X(wait, pid_t, (int *), NULL)                                                                                            \
	X(waitpid, pid_t, (pid_t, int *, int), NULL)                                                                             \
	X(waitid, int, (idtype_t, id_t, siginfo_t *, int), NULL)                                                                 \
	X(wait3, pid_t, (int *, int, struct rusage *), NULL)                                                                     \
	X(wait4, pid_t, (pid_t, int *, int, struct rusage *), NULL)                                                              \
	X(system, int, (const char *), NULL)                                                                                     \
	X(pclose, int, (FILE *), NULL)                                                                                           \
	X(fsync, int, (int), NULL)                                                                                               \
	X(fdatasync, int, (int), NULL)

/* The original functions. */
static struct {
	CALLS(LIBC_POINTER)
} real;

/* Functions that take a lock only if the lock is free. */
#define TRY_CALLS(X)                                                                                                             \
	X(pthread_mutex_trylock, (pthread_mutex_t *))                                                                            \
	X(mtx_trylock, (mtx_t *))                                                                                                \
	X(pthread_rwlock_tryrdlock, (pthread_rwlock_t *))                                                                        \
	X(pthread_rwlock_trywrlock, (pthread_rwlock_t *))

static struct {
#define POINTER(NAME, PARAMETERS) int(*NAME) PARAMETERS;
	TRY_CALLS(POINTER)
#undef POINTER
} try_locks;

static struct {
	CALLS(LIBC_TEXT)
} texts = {CALLS(LIBC_TEXT_VALUE)};

__attribute__((constructor(101))) static void resolve_calls(void)
{
	if (real.wait)
		return;
	int saved = errno;
	CALLS(LIBC_RESOLVE)
#define RESOLVE(NAME, PARAMETERS) try_locks.NAME = (int(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME);
	TRY_CALLS(RESOLVE)
#undef RESOLVE
	errno = saved;
}

static uint32_t get_wake_count(void)
{
	const uint32_t *count = __atomic_load_n(&weft__hook_wake_count, __ATOMIC_ACQUIRE);
	return count ? __atomic_load_n(count, __ATOMIC_ACQUIRE) : 0;
}

static uint64_t monotonic_ns(void)
{
	struct timespec now = {0};
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Returns the rest of a timeout in ms after `passed_ns` have passed. */
static int get_remaining_ms(int timeout, uint64_t passed_ns)
{
	const uint64_t ms = passed_ns / 1000000;
	return timeout < 0 ? timeout : ms < (uint64_t)timeout ? timeout - (int)ms : 0;
}

static const struct timespec *get_remaining_time(const struct timespec *timeout, uint64_t passed_ns, struct timespec *rest)
{
	if (!timeout)
		return NULL;
	const uint64_t all_s = timeout->tv_sec < INT_MAX ? (uint64_t)timeout->tv_sec : INT_MAX,
		       all_ns = all_s * 1000000000 + (uint64_t)timeout->tv_nsec,
		       left = all_ns > passed_ns ? all_ns - passed_ns : 0;
	*rest = (struct timespec){(time_t)(left / 1000000000), (long)(left % 1000000000)};
	return rest;
}

#define TIMESPEC timeout, mask, timeout = get_remaining_time(timeout, passed_ns, &rest)

/* Begins a wrapper, as WRAP() does, for a wait for descriptors.  On standby, `weft on` interrupts a wait; the wrapper then
 * checks whether recording is on, and waits for the REST of the time.  IS_TIMED says whether the wait has a timeout.  MASK is
 * set if the call has a signal mask; programs with a mask want to see each EINTR, so an interrupted wait does not continue. */
#define WRAP_WAIT(...) WRAP_WAIT_(__VA_ARGS__)
#define WRAP_WAIT_(NAME, PARAMETERS, ARGUMENTS, BEGINS, IS_TIMED, MASK, REST)                                                    \
	WEFT_HOOK_WAITS static int maybe_recorded_##NAME(const void *caller, LIST PARAMETERS);                                   \
	WEFT_HOOK_WAITS static int recorded_##NAME(const void *caller, LIST PARAMETERS);                                         \
	WEFT_HOOK_WAITS EXPORTED int NAME PARAMETERS                                                                             \
	{                                                                                                                        \
		if (!__atomic_load_n(&weft__hook_gate, __ATOMIC_RELAXED))                                                        \
			return real.NAME ARGUMENTS;                                                                              \
		return maybe_recorded_##NAME(__builtin_return_address(0), LIST ARGUMENTS);                                       \
	}                                                                                                                        \
	WEFT_HOOK_WAITS static __attribute__((noinline)) int maybe_recorded_##NAME(const void *caller, LIST PARAMETERS)          \
	{                                                                                                                        \
		ENSURE_RESOLVED(NAME)                                                                                            \
		struct timespec rest;                                                                                            \
		(void)rest;                                                                                                      \
		for (;;) {                                                                                                       \
			const uint32_t wakes = get_wake_count();                                                                 \
			const uint64_t since_ns = weft__hook_is_standby && (IS_TIMED) ? monotonic_ns() : 0;                      \
			const bool is_on = weft_is_on() || ((weft__hook_is_standby || (BEGINS)) && weft__hook_begin());          \
			const int result = is_on ? recorded_##NAME(caller, LIST ARGUMENTS) : real.NAME ARGUMENTS;                \
			if (result >= 0 || errno != EINTR || wakes == get_wake_count() || (MASK))                                \
				return result;                                                                                   \
			const uint64_t passed_ns = since_ns ? monotonic_ns() - since_ns : 0;                                     \
			(void)passed_ns;                                                                                         \
			REST;                                                                                                    \
		}                                                                                                                \
	}                                                                                                                        \
	WEFT_HOOK_WAITS static int recorded_##NAME(const void *caller, LIST PARAMETERS)

#define WRAP_SIMPLE(NAME, RESULT, PARAMETERS, ARGUMENTS, KIND, BEGINS)                                                           \
	WRAP(NAME, RESULT, PARAMETERS, ARGUMENTS, BEGINS)                                                                        \
	{                                                                                                                        \
		BEGIN_SLEEP(NAME, KIND, -1, true, 0);                                                                            \
		RESULT result = real.NAME ARGUMENTS;                                                                             \
		END_SLEEP;                                                                                                       \
	}

static bool is_zero(const struct timespec *t)
{
	return t && t->tv_sec == 0 && t->tv_nsec == 0;
}

static const struct timespec zero_timeout;

/* Splits a wait into two calls if the adapter has asked for a callback; PART is the call, with `part` as its timeout. */
#define PARTS(PART, TYPE, IS_LONGER, FIRST, REST)                                                                                \
	int result;                                                                                                              \
	TYPE part = timeout;                                                                                                     \
	if (s.first_ms > 0 && s.on_long_wait && (IS_LONGER)) {                                                                   \
		part = FIRST;                                                                                                    \
		result = PART;                                                                                                   \
		part = REST;                                                                                                     \
		if (result == 0) {                                                                                               \
			s.on_long_wait(&s);                                                                                      \
			errno = before;                                                                                          \
			result = PART;                                                                                           \
		}                                                                                                                \
	} else {                                                                                                                 \
		result = PART;                                                                                                   \
	}

#define IN_PARTS(PART)                                                                                                           \
	PARTS(PART, int, timeout < 0 || s.first_ms < timeout, s.first_ms, timeout < 0 ? timeout : timeout - s.first_ms)

#define IN_PARTS_OF_TIME(PART)                                                                                                   \
	const struct timespec first = {s.first_ms / 1000, s.first_ms % 1000 * 1000000L};                                         \
	struct timespec left;                                                                                                    \
	const struct timespec *rest =                                                                                            \
	    s.first_ms > 0 ? get_remaining_time(timeout, (uint64_t)s.first_ms * 1000000, &left) : NULL;                          \
	PARTS(PART, const struct timespec *, !timeout || !is_zero(rest), &first, rest)

/* Returns whether a select() watches more than one descriptor. */
static bool has_several_fds(int count, const fd_set *in, const fd_set *out, const fd_set *other)
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

#define EPOLL_WAIT (int fd, struct epoll_event *events, int most, int timeout)
WRAP_WAIT(epoll_wait, EPOLL_WAIT, (fd, events, most, timeout), timeout != 0, timeout > 0, false,
    timeout = get_remaining_ms(timeout, passed_ns))
{
	BEGIN_SLEEP(epoll_wait, FDS, fd, timeout != 0, real.epoll_wait(fd, events, most, 0));
	RETURN_IF_NONBLOCKING(real.epoll_wait(fd, events, most, timeout));
	IN_PARTS(real.epoll_wait(fd, events, most, part))
	END_SLEEP;
}

#define EPOLL_PWAIT (int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
WRAP_WAIT(epoll_pwait, EPOLL_PWAIT, (fd, events, most, timeout, mask), timeout != 0, timeout > 0, mask,
    timeout = get_remaining_ms(timeout, passed_ns))
{
	BEGIN_SLEEP(epoll_pwait, FDS, fd, timeout != 0, real.epoll_pwait(fd, events, most, 0, mask));
	IN_PARTS(real.epoll_pwait(fd, events, most, part, mask))
	END_SLEEP;
}

#define EPOLL_PWAIT2 (int fd, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask)
WRAP_WAIT(epoll_pwait2, EPOLL_PWAIT2, (fd, events, most, timeout, mask), !is_zero(timeout), TIMESPEC)
{
	BEGIN_SLEEP(epoll_pwait2, FDS, fd, !is_zero(timeout), real.epoll_pwait2(fd, events, most, &zero_timeout, mask));
	IN_PARTS_OF_TIME(real.epoll_pwait2(fd, events, most, part, mask))
	END_SLEEP;
}

#define POLL (struct pollfd * fds, nfds_t count, int timeout)
WRAP_WAIT(poll, POLL, (fds, count, timeout), timeout != 0 && count > 1, timeout > 0, false,
    timeout = get_remaining_ms(timeout, passed_ns))
{
	BEGIN_SLEEP(poll, FDS, count > 1 ? WEFT_HOOK_SEVERAL_FDS : WEFT_HOOK_ONE_FD, timeout != 0, real.poll(fds, count, 0));
	RETURN_IF_NONBLOCKING(real.poll(fds, count, timeout));
	IN_PARTS(real.poll(fds, count, part))
	END_SLEEP;
}

/* Names that programs call which are compiled with _FORTIFY_SOURCE. */
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t bytes);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t bytes);

#define POLL_CHK (struct pollfd * fds, nfds_t count, int timeout, size_t bytes)
WRAP_WAIT(__poll_chk, POLL_CHK, (fds, count, timeout, bytes), timeout != 0 && count > 1, timeout > 0, false,
    timeout = get_remaining_ms(timeout, passed_ns))
{
	BEGIN_SLEEP(__poll_chk, FDS, count > 1 ? WEFT_HOOK_SEVERAL_FDS : WEFT_HOOK_ONE_FD, timeout != 0,
	    real.__poll_chk(fds, count, 0, bytes));
	IN_PARTS(real.__poll_chk(fds, count, part, bytes))
	END_SLEEP;
}

#define PPOLL (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
WRAP_WAIT(ppoll, PPOLL, (fds, count, timeout, mask), !is_zero(timeout) && count > 1, TIMESPEC)
{
	BEGIN_SLEEP(ppoll, FDS, count > 1 ? WEFT_HOOK_SEVERAL_FDS : WEFT_HOOK_ONE_FD, !is_zero(timeout),
	    real.ppoll(fds, count, &zero_timeout, mask));
	IN_PARTS_OF_TIME(real.ppoll(fds, count, part, mask))
	END_SLEEP;
}

#define PPOLL_CHK (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t bytes)
WRAP_WAIT(__ppoll_chk, PPOLL_CHK, (fds, count, timeout, mask, bytes), !is_zero(timeout) && count > 1, TIMESPEC)
{
	BEGIN_SLEEP(__ppoll_chk, FDS, count > 1 ? WEFT_HOOK_SEVERAL_FDS : WEFT_HOOK_ONE_FD, !is_zero(timeout),
	    real.__ppoll_chk(fds, count, &zero_timeout, mask, bytes));
	IN_PARTS_OF_TIME(real.__ppoll_chk(fds, count, part, mask, bytes))
	END_SLEEP;
}

#define SELECT (int count, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout)
#define SELECT_WAITS !(timeout && timeout->tv_sec == 0 && timeout->tv_usec == 0)
/* Linux itself writes the remaining time to the timeout of select(). */
WRAP_WAIT(select, SELECT, (count, in, out, other, timeout), SELECT_WAITS &&has_several_fds(count, in, out, other), false, false,
    (void)0)
{
	BEGIN_SLEEP(
	    select, FDS, has_several_fds(count, in, out, other) ? WEFT_HOOK_SEVERAL_FDS : WEFT_HOOK_ONE_FD, SELECT_WAITS, 0);
	int result = real.select(count, in, out, other, timeout);
	END_SLEEP;
}

#define PSELECT (int count, fd_set *in, fd_set *out, fd_set *other, const struct timespec *timeout, const sigset_t *mask)
WRAP_WAIT(pselect, PSELECT, (count, in, out, other, timeout, mask), !is_zero(timeout) && has_several_fds(count, in, out, other),
    TIMESPEC)
{
	BEGIN_SLEEP(pselect, FDS, has_several_fds(count, in, out, other) ? WEFT_HOOK_SEVERAL_FDS : WEFT_HOOK_ONE_FD,
	    !is_zero(timeout), 0);
	int result = real.pselect(count, in, out, other, timeout, mask);
	END_SLEEP;
}

#define SIGTIMEDWAIT (const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
WRAP(sigtimedwait, int, SIGTIMEDWAIT, (set, info, timeout), false)
{
	BEGIN_SLEEP(sigtimedwait, SIGNAL, -1, !is_zero(timeout), 0);
	int result = real.sigtimedwait(set, info, timeout);
	END_SLEEP;
}

/* Notes that a wait has reported a child's end, unless the child may only have stopped, or the wait left the child waitable. */
static void note_wait(pid_t child, int options)
{
	if (child > 0 && !(options & (WUNTRACED | WCONTINUED | WNOWAIT)))
		weft__hook_child_ended(child);
}

WRAP(waitpid, pid_t, (pid_t pid, int *status, int options), (pid, status, options), false)
{
	BEGIN_SLEEP(waitpid, PROCESS, -1, !(options & WNOHANG), 0);
	pid_t result = real.waitpid(pid, status, options);
	note_wait(result, options);
	END_SLEEP;
}

WRAP(waitid, int, (idtype_t type, id_t id, siginfo_t *info, int options), (type, id, info, options), false)
{
	BEGIN_SLEEP(waitid, PROCESS, -1, !(options & WNOHANG), 0);
	int result = real.waitid(type, id, info, options);
	if (result == 0 && info)
		note_wait(info->si_pid, options);
	END_SLEEP;
}

WRAP(wait3, pid_t, (int *status, int options, struct rusage *usage), (status, options, usage), false)
{
	BEGIN_SLEEP(wait3, PROCESS, -1, !(options & WNOHANG), 0);
	pid_t result = real.wait3(status, options, usage);
	note_wait(result, options);
	END_SLEEP;
}

WRAP(wait4, pid_t, (pid_t pid, int *status, int options, struct rusage *usage), (pid, status, options, usage), false)
{
	BEGIN_SLEEP(wait4, PROCESS, -1, !(options & WNOHANG), 0);
	pid_t result = real.wait4(pid, status, options, usage);
	note_wait(result, options);
	END_SLEEP;
}

/* GLib and Rust wait for futexes by syscall().  Such a wait does not start the recording: a lock that is briefly taken does not
 * show that the program has a loop or threads. */
static __attribute__((noinline)) long recorded_syscall(const void *caller, const long a[6])
{
	BEGIN_SLEEP(syscall, LOCK, -1, true, 0);
	long result = real.syscall(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
	END_SLEEP;
}

EXPORTED long syscall(long number, ...)
{
	va_list list;
	long a[6];
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	long operation = a[1] & FUTEX_CMD_MASK;
	ENSURE_RESOLVED(syscall)
	if (number == SYS_seccomp)
		__atomic_store_n(&weft__hook_has_filter, true, __ATOMIC_RELAXED);
	if (number == SYS_futex && (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) && is_recorded() &&
	    !weft__hook_is_recorder(__builtin_return_address(0)))
		return recorded_syscall(__builtin_return_address(0), a);
	return real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

EXPORTED int pause(void)
{
	ENSURE_RESOLVED(pause)
	if (!is_recorded())
		return real.pause();
	const void *caller = __builtin_return_address(0);
	BEGIN_SLEEP(pause, SIGNAL, -1, true, 0);
	int result = real.pause();
	END_SLEEP;
}

WRAP_SIMPLE(sigwait, int, (const sigset_t *set, int *number), (set, number), SIGNAL, false)
WRAP_SIMPLE(sigwaitinfo, int, (const sigset_t *set, siginfo_t *info), (set, info), SIGNAL, false)
WRAP_SIMPLE(sigsuspend, int, (const sigset_t *set), (set), SIGNAL, false)
WRAP_SIMPLE(nanosleep, int, (const struct timespec *time, struct timespec *rest), (time, rest), TIME, false)
WRAP_SIMPLE(clock_nanosleep, int, (clockid_t clock, int flags, const struct timespec *time, struct timespec *rest),
    (clock, flags, time, rest), TIME, false)
WRAP_SIMPLE(usleep, int, (useconds_t time), (time), TIME, false)
WRAP_SIMPLE(sleep, unsigned, (unsigned seconds), (seconds), TIME, false)
WRAP(wait, pid_t, (int *status), (status), false)
{
	BEGIN_SLEEP(wait, PROCESS, -1, true, 0);
	pid_t result = real.wait(status);
	note_wait(result, 0);
	END_SLEEP;
}

WRAP_SIMPLE(system, int, (const char *command), (command), PROCESS, false)
WRAP_SIMPLE(pclose, int, (FILE * stream), (stream), PROCESS, false)

/* Flushing a file blocks an event loop; on a thread without a loop, flushing is the thread's work. */
#define WRAP_SYNC(NAME)                                                                                                          \
	WRAP(NAME, int, (int fd), (fd), false)                                                                                   \
	{                                                                                                                        \
		if (weft__hook_get_thread()->callbacks > 0 ? weft__hook_is_runtime(caller) : !weft__loop_is_held_up(caller))     \
			return real.NAME(fd);                                                                                    \
		BEGIN_SLEEP(NAME, TIME, -1, true, 0);                                                                            \
		int result = real.NAME(fd);                                                                                      \
		END_SLEEP;                                                                                                       \
	}
WRAP_SYNC(fsync)
WRAP_SYNC(fdatasync)

WRAP_SIMPLE(cnd_wait, int, (cnd_t * condition, mtx_t *mutex), (condition, mutex), LOCK, true)
WRAP_SIMPLE(
    cnd_timedwait, int, (cnd_t * condition, mtx_t *mutex, const struct timespec *until), (condition, mutex, until), LOCK, true)
WRAP_SIMPLE(thrd_sleep, int, (const struct timespec *time, struct timespec *rest), (time, rest), TIME, false)

/* Returns whether another process may signal the condition; waits for such conditions are not recorded.  Since glibc 2.25 two
 * fields show sharing: the lowest bit of a condition's count of waiters, and the word after a semaphore's value. */
static bool is_shared_condition(const pthread_cond_t *condition)
{
	return condition->__data.__wrefs & 1;
}

static bool is_shared_semaphore(const sem_t *semaphore)
{
	int shared;
	memcpy(&shared, (const char *)semaphore + sizeof(uint64_t), sizeof shared);
	return shared != 0;
}

/* ---- Locks: taking a free lock is no sleep ---- */

/* The mutex itself contains the thread id of its owner. */
WRAP(pthread_mutex_lock, int, (pthread_mutex_t * lock), (lock), false)
{
	/* Locks of the recorder itself must not be recorded. */
	if (weft__hook_is_recorder(caller))
		return real.pthread_mutex_lock(lock);
	int status = try_locks.pthread_mutex_trylock ? try_locks.pthread_mutex_trylock(lock) : EBUSY;
	if (status == 0)
		weft_hook_lock_acquire(lock, lock->__data.__owner, caller);
	if (status != EBUSY)
		return status;
	bool is_recorded = weft_hook_lock_begin_wait(lock, lock->__data.__owner, caller);
	BEGIN_SLEEP(pthread_mutex_lock, MUTEX, -1, true, 0);
	int result = real.pthread_mutex_lock(lock);
	int last = errno;
	weft__hook_record_wake(&s);
	if (is_recorded)
		weft_hook_lock_end_wait(lock);
	if (result == 0)
		weft_hook_lock_acquire(lock, lock->__data.__owner, caller);
	errno = last;
	return result;
}

#define WRAP_LOCK(NAME, TYPE, TRY, BUSY)                                                                                         \
	WRAP(NAME, int, (TYPE * lock), (lock), false)                                                                            \
	{                                                                                                                        \
		/* Locks of the recorder itself must not be recorded. */                                                         \
		if (weft__hook_is_recorder(caller))                                                                              \
			return real.NAME(lock);                                                                                  \
		int status = try_locks.TRY ? try_locks.TRY(lock) : (BUSY);                                                       \
		if (status != (BUSY))                                                                                            \
			return status;                                                                                           \
		BEGIN_SLEEP(NAME, MUTEX, -1, true, 0);                                                                           \
		int result = real.NAME(lock);                                                                                    \
		END_SLEEP;                                                                                                       \
	}
WRAP_LOCK(mtx_lock, mtx_t, mtx_trylock, thrd_busy)
WRAP_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t, pthread_rwlock_tryrdlock, EBUSY)
WRAP_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t, pthread_rwlock_trywrlock, EBUSY)

/* Only the last unlock of a recursive mutex releases the mutex. */
WRAP(pthread_mutex_unlock, int, (pthread_mutex_t * lock), (lock), false)
{
	enum { KIND_MASK = 3 };
	if ((lock->__data.__kind & KIND_MASK) != PTHREAD_MUTEX_RECURSIVE || lock->__data.__count <= 1)
		weft_hook_lock_release(lock);
	return real.pthread_mutex_unlock(lock);
}

/* ---- Waits that another thread ends: conditions, barriers, semaphores ---- */

/* Wraps a wait for a condition; the waiting thread holds the mutex before and after the wait.  ID is the promise that the thread
 * awaits. */
#define WRAP_CONDITION(NAME, PARAMETERS, ARGUMENTS, ID)                                                                          \
	WRAP(NAME, int, PARAMETERS, ARGUMENTS, true)                                                                             \
	{                                                                                                                        \
		const weft_id id = ID;                                                                                           \
		weft_hook_lock_release(mutex);                                                                                   \
		BEGIN_SLEEP(NAME, LOCK, -1, true, 0);                                                                            \
		int result = real.NAME ARGUMENTS, last = errno;                                                                  \
		weft__hook_record_wake(&s);                                                                                      \
		if (id)                                                                                                          \
			weft_hook_condition_end_wait(condition, id);                                                             \
		if (result == 0 || result == ETIMEDOUT)                                                                          \
			weft_hook_lock_acquire(mutex, mutex->__data.__owner, caller);                                            \
		errno = last;                                                                                                    \
		return result;                                                                                                   \
	}
WRAP_CONDITION(pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *mutex), (condition, mutex),
    is_shared_condition(condition) ? 0 : weft_hook_condition_begin_wait(condition, NULL, caller))
WRAP_CONDITION(pthread_cond_timedwait, (pthread_cond_t * condition, pthread_mutex_t *mutex, const struct timespec *until),
    (condition, mutex, until), 0)
WRAP_CONDITION(pthread_cond_clockwait,
    (pthread_cond_t * condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
    (condition, mutex, clock, until), 0)

#define WRAP_SIGNAL(NAME, TO_ALL)                                                                                                \
	WRAP(NAME, int, (pthread_cond_t * condition), (condition), false)                                                        \
	{                                                                                                                        \
		weft_hook_condition_signal(condition, TO_ALL, caller);                                                           \
		return real.NAME(condition);                                                                                     \
	}
WRAP_SIGNAL(pthread_cond_signal, false)
WRAP_SIGNAL(pthread_cond_broadcast, true)

WRAP(pthread_barrier_wait, int, (pthread_barrier_t * barrier), (barrier), true)
{
	const weft_id id = weft_hook_condition_begin_wait(barrier, "barrier", caller);
	BEGIN_SLEEP(pthread_barrier_wait, LOCK, -1, true, 0);
	int result = real.pthread_barrier_wait(barrier), last = errno;
	weft__hook_record_wake(&s);
	if (id)
		weft_hook_condition_end_wait(barrier, id);
	errno = last;
	return result;
}

WRAP(sem_trywait, int, (sem_t * semaphore), (semaphore), false)
{
	int result = real.sem_trywait(semaphore);
	if (result == 0)
		weft_hook_semaphore_acquire(semaphore);
	else
		weft_hook_semaphore_note_attempt(semaphore);
	return result;
}

WRAP(sem_init, int, (sem_t * semaphore, int is_shared, unsigned value), (semaphore, is_shared, value), false)
{
	weft_hook_semaphore_forget(semaphore);
	return real.sem_init(semaphore, is_shared, value);
}

WRAP(sem_post, int, (sem_t * semaphore), (semaphore), false)
{
	weft_hook_semaphore_post(semaphore);
	return real.sem_post(semaphore);
}

static bool is_semaphore_empty(sem_t *semaphore)
{
	int value = 0;
	return sem_getvalue(semaphore, &value) == 0 && value == 0;
}

/* Taking a free token of a semaphore is no wait. */
#define WRAP_SEMAPHORE(NAME, PARAMETERS, ARGUMENTS, ID)                                                                          \
	WRAP(NAME, int, PARAMETERS, ARGUMENTS, is_semaphore_empty(semaphore))                                                    \
	{                                                                                                                        \
		const int saved_errno = errno;                                                                                   \
		int result = real.sem_trywait(semaphore);                                                                        \
		errno = saved_errno;                                                                                             \
		if (result == 0) {                                                                                               \
			weft_hook_semaphore_acquire(semaphore);                                                                  \
			return 0;                                                                                                \
		}                                                                                                                \
		const weft_id id = ID;                                                                                           \
		BEGIN_SLEEP(NAME, LOCK, -1, true, 0);                                                                            \
		result = real.NAME ARGUMENTS;                                                                                    \
		int last = errno;                                                                                                \
		weft__hook_record_wake(&s);                                                                                      \
		if (id)                                                                                                          \
			weft_hook_semaphore_end_wait(semaphore, id);                                                             \
		if (result == 0)                                                                                                 \
			weft_hook_semaphore_acquire(semaphore);                                                                  \
		errno = last;                                                                                                    \
		return result;                                                                                                   \
	}
WRAP_SEMAPHORE(sem_wait, (sem_t * semaphore), (semaphore),
    is_shared_semaphore(semaphore) ? 0 : weft_hook_semaphore_begin_wait(semaphore, caller))
WRAP_SEMAPHORE(sem_timedwait, (sem_t * semaphore, const struct timespec *until), (semaphore, until), 0)
WRAP_SEMAPHORE(sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *until), (semaphore, clock, until), 0)
