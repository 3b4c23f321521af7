/* sleep.c: the calls of libc that are taken by symbol.
 *
 * Programs, libraries and runtimes call them through pointers that the loader fills, and this library stands first.  What libc
 * calls by itself is not seen.  What each of them continues in is looked up when the library is loaded: some of them may be
 * called in signal handlers, where dlsym() may not.
 *
 * The function that is taken goes straight on where nothing is to be recorded, by a jump, and so costs such a program a load and
 * a branch.  Else another one looks whether something records by now, and a third one tells of the call.
 *
 * SPDX-License-Identifier: ISC */
#include "adapters/hook/sleep.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "adapters/hook/carried.h"
#include "adapters/hook/condition.h"
#include "adapters/hook/connect.h"
#include "adapters/hook/load.h"
#include "adapters/hook/lock.h"

#define TAKEN __attribute__((visibility("default")))

/* The version that programs are linked with, where libc keeps an older one that works otherwise. */
#if !defined(CONDITIONS) && defined(__x86_64__)
#define CONDITIONS "GLIBC_2.3.2"
#elif !defined(CONDITIONS)
#define CONDITIONS NULL
#endif

/* Name, return type, parameters, version.  Locks first: what looks up the rest may allocate, under an allocator's lock. */
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
	X(connect, int, (int, const struct sockaddr *, socklen_t), NULL)                                                         \
	X(getsockopt, int, (int, int, int, void *restrict, socklen_t *restrict), NULL)                                           \
	X(sendfile64, ssize_t, (int, int, off64_t *, size_t), NULL)                                                              \
	X(splice, ssize_t, (int, off64_t *, int, off64_t *, size_t, unsigned), NULL)                                             \
	X(socket, int, (int, int, int), NULL)                                                                                    \
	X(close, int, (int), NULL)                                                                                               \
	X(close_range, int, (unsigned, unsigned, int), NULL)                                                                     \
	X(closefrom, void, (int), NULL)                                                                                          \
	X(dup, int, (int), NULL)                                                                                                 \
	X(dup2, int, (int, int), NULL)                                                                                           \
	X(dup3, int, (int, int, int), NULL)                                                                                      \
	X(fcntl64, int, (int, int, ...), NULL)                                                                                   \
	X(wait, pid_t, (int *), NULL)                                                                                            \
	X(waitpid, pid_t, (pid_t, int *, int), NULL)                                                                             \
	X(waitid, int, (idtype_t, id_t, siginfo_t *, int), NULL)

/* What each continues in. */
static struct {
#define POINTER(NAME, RESULT, PARAMETERS, VERSION) RESULT(*NAME) PARAMETERS;
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
#define TEXT(NAME, RESULT, PARAMETERS, VERSION) struct weft_record_text NAME;
	CALLS(TEXT)
#undef TEXT
} texts = {
#define TEXT(NAME, RESULT, PARAMETERS, VERSION) .NAME = WEFT_COUNTER("blocked in " #NAME),
    CALLS(TEXT)
#undef TEXT
};

/* In place of a call that this libc does not have: a program may find it here and nowhere else.  It looks at no arguments. */
static long absent(void)
{
	errno = ENOSYS;
	return -1;
}

static void *find(const char *name, const char *version)
{
	void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
	found = found ? found : dlsym(RTLD_NEXT, name);
	return found ? found : (void *)absent;
}

__attribute__((constructor(101))) static void resolve(void)
{
	if (real.wait)
		return;
	int saved = errno;
#define RESOLVE(NAME, RESULT, PARAMETERS, VERSION) real.NAME = (RESULT(*) PARAMETERS)find(#NAME, VERSION);
	CALLS(RESOLVE)
#undef RESOLVE
#define RESOLVE(NAME, PARAMETERS) tries.NAME = (int(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME);
	TRIES(RESOLVE)
#undef RESOLVE
	errno = saved;
}

/* Another library's constructor may have run before ours.  There is always something to call then: absent() at least. */
#define RESOLVED(NAME)                                                                                                           \
	if (__builtin_expect(!real.NAME, 0)) {                                                                                   \
		resolve();                                                                                                       \
		if (!real.NAME)                                                                                                  \
			__builtin_unreachable();                                                                                 \
	}

static bool is_told(void)
{
	return __atomic_load_n(&weft__hook_gate, __ATOMIC_RELAXED) && weft_is_on();
}

/* The first function of a call, and the beginning of the second, before its body.  BEGINS: where nothing records yet, whether
 * recording is to begin (adapters/base). */
#define LIST(...) __VA_ARGS__
#define TAKE(NAME, RESULT, PARAMETERS, ARGUMENTS, BEGINS)                                                                        \
	static RESULT may_tell_##NAME(const void *caller, LIST PARAMETERS);                                                      \
	static RESULT tell_##NAME(const void *caller, LIST PARAMETERS);                                                          \
	TAKEN RESULT NAME PARAMETERS                                                                                             \
	{                                                                                                                        \
		if (!__atomic_load_n(&weft__hook_gate, __ATOMIC_RELAXED))                                                        \
			return real.NAME ARGUMENTS;                                                                              \
		return may_tell_##NAME(__builtin_return_address(0), LIST ARGUMENTS);                                             \
	}                                                                                                                        \
	static __attribute__((noinline)) RESULT may_tell_##NAME(const void *caller, LIST PARAMETERS)                             \
	{                                                                                                                        \
		RESOLVED(NAME)                                                                                                   \
		return weft_is_on() || ((BEGINS) && weft__hook_begin()) ? tell_##NAME(caller, LIST ARGUMENTS)                    \
									: real.NAME ARGUMENTS;                                   \
	}                                                                                                                        \
	static RESULT tell_##NAME(const void *caller, LIST PARAMETERS)

const uint32_t *weft__hook_wake_count;

static uint32_t wake_count(void)
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

/* Of a timeout, what is left after a part of it. */
static int rest_ms(int timeout, uint64_t passed_ns)
{
	const uint64_t ms = passed_ns / 1000000;
	return timeout < 0 ? timeout : ms < (uint64_t)timeout ? timeout - (int)ms : 0;
}

static const struct timespec *rest_of(const struct timespec *timeout, uint64_t passed_ns, struct timespec *rest)
{
	if (!timeout)
		return NULL;
	const uint64_t all_s = timeout->tv_sec < INT_MAX ? (uint64_t)timeout->tv_sec : INT_MAX,
		       all_ns = all_s * 1000000000 + (uint64_t)timeout->tv_nsec,
		       left = all_ns > passed_ns ? all_ns - passed_ns : 0;
	*rest = (struct timespec){(time_t)(left / 1000000000), (long)(left % 1000000000)};
	return rest;
}

#define TIMESPEC timeout, mask, timeout = rest_of(timeout, passed_ns, &rest)

/* The same as TAKE() for calls that wait for descriptors.  While the process stands by, one that was woken from outside looks
 * whether something records by now, and goes on for the REST of its time.  IS_TIMED: it has such; MASK: what program gives a set
 * of signals wants to know of each that comes, and is told. */
#define TAKE_WAIT(...) TAKE_WAIT_(__VA_ARGS__)
#define TAKE_WAIT_(NAME, PARAMETERS, ARGUMENTS, BEGINS, IS_TIMED, MASK, REST)                                                    \
	WEFT_HOOK_WAITS static int may_tell_##NAME(const void *caller, LIST PARAMETERS);                                         \
	WEFT_HOOK_WAITS static int tell_##NAME(const void *caller, LIST PARAMETERS);                                             \
	WEFT_HOOK_WAITS TAKEN int NAME PARAMETERS                                                                                \
	{                                                                                                                        \
		if (!__atomic_load_n(&weft__hook_gate, __ATOMIC_RELAXED))                                                        \
			return real.NAME ARGUMENTS;                                                                              \
		return may_tell_##NAME(__builtin_return_address(0), LIST ARGUMENTS);                                             \
	}                                                                                                                        \
	WEFT_HOOK_WAITS static __attribute__((noinline)) int may_tell_##NAME(const void *caller, LIST PARAMETERS)                \
	{                                                                                                                        \
		RESOLVED(NAME)                                                                                                   \
		struct timespec rest;                                                                                            \
		(void)rest;                                                                                                      \
		for (;;) {                                                                                                       \
			const uint32_t wakes = wake_count();                                                                     \
			const uint64_t since_ns = weft__hook_stands_by && (IS_TIMED) ? monotonic_ns() : 0;                       \
			const bool is_on = weft_is_on() || ((weft__hook_stands_by || (BEGINS)) && weft__hook_begin());           \
			const int result = is_on ? tell_##NAME(caller, LIST ARGUMENTS) : real.NAME ARGUMENTS;                    \
			if (result >= 0 || errno != EINTR || wakes == wake_count() || (MASK))                                    \
				return result;                                                                                   \
			const uint64_t passed_ns = since_ns ? monotonic_ns() - since_ns : 0;                                     \
			(void)passed_ns;                                                                                         \
			REST;                                                                                                    \
		}                                                                                                                \
	}                                                                                                                        \
	WEFT_HOOK_WAITS static int tell_##NAME(const void *caller, LIST PARAMETERS)

/* What is told before the call; AT_ONCE is the call without waiting, as what else it does allows; 0: there is no such thing. */
#define ASLEEP(NAME, KIND, EPOLL, MAY_SLEEP, AT_ONCE)                                                                            \
	struct weft_hook_sleep s = {.kind = WEFT_HOOK_SLEEP_##KIND,                                                              \
	    .function = #NAME,                                                                                                   \
	    .text = &texts.NAME,                                                                                                 \
	    .epoll = EPOLL,                                                                                                      \
	    .may_sleep = MAY_SLEEP,                                                                                              \
	    .caller = caller};                                                                                                   \
	int before = errno;                                                                                                      \
	bool is_quick = weft__hook_nears_sleep(&s);                                                                              \
	errno = before;                                                                                                          \
	int already = is_quick ? (AT_ONCE) : 0;                                                                                  \
	if (already) {                                                                                                           \
		weft__hook_turns(&s);                                                                                            \
		errno = before;                                                                                                  \
		return already;                                                                                                  \
	}                                                                                                                        \
	if (s.state != WEFT_HOOK_AWAKE) {                                                                                        \
		weft__hook_falls_asleep(&s);                                                                                     \
		errno = before;                                                                                                  \
	}                                                                                                                        \
	(void)0

/* A call that does not wait is no sleep: it goes straight on. */
#define ASKS(CALL)                                                                                                               \
	if (!s.may_sleep)                                                                                                        \
	return CALL

#define AWAKE                                                                                                                    \
	int after = errno;                                                                                                       \
	weft__hook_wakes(&s);                                                                                                    \
	errno = after;                                                                                                           \
	return result

#define SIMPLE(NAME, RESULT, PARAMETERS, ARGUMENTS, KIND, BEGINS)                                                                \
	TAKE(NAME, RESULT, PARAMETERS, ARGUMENTS, BEGINS)                                                                        \
	{                                                                                                                        \
		ASLEEP(NAME, KIND, -1, true, 0);                                                                                 \
		RESULT result = real.NAME ARGUMENTS;                                                                             \
		AWAKE;                                                                                                           \
	}

static bool is_zero(const struct timespec *t)
{
	return t && t->tv_sec == 0 && t->tv_nsec == 0;
}

static const struct timespec zero;

/* In two parts where the adapter asked for that; PART is the call with the timeout that is named `part`. */
#define PARTS(PART, TYPE, IS_LONGER, FIRST, REST)                                                                                \
	int result;                                                                                                              \
	TYPE part = timeout;                                                                                                     \
	if (s.first_ms > 0 && s.still && (IS_LONGER)) {                                                                          \
		part = FIRST;                                                                                                    \
		result = PART;                                                                                                   \
		part = REST;                                                                                                     \
		if (result == 0) {                                                                                               \
			s.still(&s);                                                                                             \
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
	const struct timespec *rest = s.first_ms > 0 ? rest_of(timeout, (uint64_t)s.first_ms * 1000000, &left) : NULL;           \
	PARTS(PART, const struct timespec *, !timeout || !is_zero(rest), &first, rest)

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

#define EPOLL_WAIT (int fd, struct epoll_event *events, int most, int timeout)
TAKE_WAIT(
    epoll_wait, EPOLL_WAIT, (fd, events, most, timeout), timeout != 0, timeout > 0, false, timeout = rest_ms(timeout, passed_ns))
{
	ASLEEP(epoll_wait, FDS, fd, timeout != 0, real.epoll_wait(fd, events, most, 0));
	ASKS(real.epoll_wait(fd, events, most, timeout));
	IN_PARTS(real.epoll_wait(fd, events, most, part))
	AWAKE;
}

#define EPOLL_PWAIT (int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
TAKE_WAIT(epoll_pwait, EPOLL_PWAIT, (fd, events, most, timeout, mask), timeout != 0, timeout > 0, mask,
    timeout = rest_ms(timeout, passed_ns))
{
	ASLEEP(epoll_pwait, FDS, fd, timeout != 0, real.epoll_pwait(fd, events, most, 0, mask));
	IN_PARTS(real.epoll_pwait(fd, events, most, part, mask))
	AWAKE;
}

#define EPOLL_PWAIT2 (int fd, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask)
TAKE_WAIT(epoll_pwait2, EPOLL_PWAIT2, (fd, events, most, timeout, mask), !is_zero(timeout), TIMESPEC)
{
	ASLEEP(epoll_pwait2, FDS, fd, !is_zero(timeout), real.epoll_pwait2(fd, events, most, &zero, mask));
	IN_PARTS_OF_TIME(real.epoll_pwait2(fd, events, most, part, mask))
	AWAKE;
}

#define POLL (struct pollfd * fds, nfds_t count, int timeout)
TAKE_WAIT(poll, POLL, (fds, count, timeout), timeout != 0 && count > 1, timeout > 0, false, timeout = rest_ms(timeout, passed_ns))
{
	ASLEEP(poll, FDS, -1, timeout != 0, real.poll(fds, count, 0));
	ASKS(real.poll(fds, count, timeout));
	IN_PARTS(real.poll(fds, count, part))
	AWAKE;
}

/* What a program calls that is compiled with _FORTIFY_SOURCE. */
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t bytes);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t bytes);

#define POLL_CHK (struct pollfd * fds, nfds_t count, int timeout, size_t bytes)
TAKE_WAIT(__poll_chk, POLL_CHK, (fds, count, timeout, bytes), timeout != 0 && count > 1, timeout > 0, false,
    timeout = rest_ms(timeout, passed_ns))
{
	ASLEEP(__poll_chk, FDS, -1, timeout != 0, real.__poll_chk(fds, count, 0, bytes));
	IN_PARTS(real.__poll_chk(fds, count, part, bytes))
	AWAKE;
}

#define PPOLL (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
TAKE_WAIT(ppoll, PPOLL, (fds, count, timeout, mask), !is_zero(timeout) && count > 1, TIMESPEC)
{
	ASLEEP(ppoll, FDS, -1, !is_zero(timeout), real.ppoll(fds, count, &zero, mask));
	IN_PARTS_OF_TIME(real.ppoll(fds, count, part, mask))
	AWAKE;
}

#define PPOLL_CHK (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t bytes)
TAKE_WAIT(__ppoll_chk, PPOLL_CHK, (fds, count, timeout, mask, bytes), !is_zero(timeout) && count > 1, TIMESPEC)
{
	ASLEEP(__ppoll_chk, FDS, -1, !is_zero(timeout), real.__ppoll_chk(fds, count, &zero, mask, bytes));
	IN_PARTS_OF_TIME(real.__ppoll_chk(fds, count, part, mask, bytes))
	AWAKE;
}

#define SELECT (int count, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout)
#define SELECT_WAITS !(timeout && timeout->tv_sec == 0 && timeout->tv_usec == 0)
/* Linux writes there what is left. */
TAKE_WAIT(
    select, SELECT, (count, in, out, other, timeout), SELECT_WAITS &&has_several(count, in, out, other), false, false, (void)0)
{
	ASLEEP(select, FDS, -1, SELECT_WAITS, 0);
	int result = real.select(count, in, out, other, timeout);
	AWAKE;
}

#define PSELECT (int count, fd_set *in, fd_set *out, fd_set *other, const struct timespec *timeout, const sigset_t *mask)
TAKE_WAIT(
    pselect, PSELECT, (count, in, out, other, timeout, mask), !is_zero(timeout) && has_several(count, in, out, other), TIMESPEC)
{
	ASLEEP(pselect, FDS, -1, !is_zero(timeout), 0);
	int result = real.pselect(count, in, out, other, timeout, mask);
	AWAKE;
}

#define SIGTIMEDWAIT (const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
TAKE(sigtimedwait, int, SIGTIMEDWAIT, (set, info, timeout), false)
{
	ASLEEP(sigtimedwait, SIGNAL, -1, !is_zero(timeout), 0);
	int result = real.sigtimedwait(set, info, timeout);
	AWAKE;
}

TAKE(waitpid, pid_t, (pid_t pid, int *status, int options), (pid, status, options), false)
{
	ASLEEP(waitpid, PROCESS, -1, !(options & WNOHANG), 0);
	pid_t result = real.waitpid(pid, status, options);
	AWAKE;
}

TAKE(waitid, int, (idtype_t type, id_t id, siginfo_t *info, int options), (type, id, info, options), false)
{
	ASLEEP(waitid, PROCESS, -1, !(options & WNOHANG), 0);
	int result = real.waitid(type, id, info, options);
	AWAKE;
}

/* Runtimes that wait at a futex themselves (GLib, Rust) call it so.  Nothing that begins a recording: a lock that is busy for a
 * moment says nothing of what the program is. */
static __attribute__((noinline)) long told_syscall(const void *caller, const long a[6])
{
	ASLEEP(syscall, LOCK, -1, true, 0);
	long result = real.syscall(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
	AWAKE;
}

TAKEN long syscall(long number, ...)
{
	va_list list;
	long a[6];
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	long operation = a[1] & FUTEX_CMD_MASK;
	RESOLVED(syscall)
	if (number == SYS_futex && (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) && is_told() &&
	    !weft__hook_is_recorder(__builtin_return_address(0)))
		return told_syscall(__builtin_return_address(0), a);
	return real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

TAKEN int pause(void)
{
	RESOLVED(pause)
	if (!is_told())
		return real.pause();
	const void *caller = __builtin_return_address(0);
	ASLEEP(pause, SIGNAL, -1, true, 0);
	int result = real.pause();
	AWAKE;
}

SIMPLE(sigwait, int, (const sigset_t *set, int *number), (set, number), SIGNAL, false)
SIMPLE(sigwaitinfo, int, (const sigset_t *set, siginfo_t *info), (set, info), SIGNAL, false)
SIMPLE(sigsuspend, int, (const sigset_t *set), (set), SIGNAL, false)
SIMPLE(nanosleep, int, (const struct timespec *time, struct timespec *rest), (time, rest), TIME, false)
SIMPLE(clock_nanosleep, int, (clockid_t clock, int flags, const struct timespec *time, struct timespec *rest),
    (clock, flags, time, rest), TIME, false)
SIMPLE(usleep, int, (useconds_t time), (time), TIME, false)
SIMPLE(sleep, unsigned, (unsigned seconds), (seconds), TIME, false)
SIMPLE(wait, pid_t, (int *status), (status), PROCESS, false)

SIMPLE(cnd_wait, int, (cnd_t * condition, mtx_t *mutex), (condition, mutex), LOCK, true)
SIMPLE(cnd_timedwait, int, (cnd_t * condition, mtx_t *mutex, const struct timespec *until), (condition, mutex, until), LOCK, true)
SIMPLE(thrd_sleep, int, (const struct timespec *time, struct timespec *rest), (time, rest), TIME, false)

/* What another process may signal is not told of.  glibc has said so since 2.25: the lowest bit of a condition's count of
 * waiters, the word after a semaphore's value. */
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

/* ---- Locks: one that is free is no sleep ---- */

/* A mutex says itself which OS thread has it. */
TAKE(pthread_mutex_lock, int, (pthread_mutex_t * lock), (lock), false)
{
	/* What weft has locks for must not wait for what it tells of that. */
	if (weft__hook_is_recorder(caller))
		return real.pthread_mutex_lock(lock);
	int status = tries.pthread_mutex_trylock ? tries.pthread_mutex_trylock(lock) : EBUSY;
	if (status == 0)
		weft_hook_lock_taken(lock, lock->__data.__owner);
	if (status != EBUSY)
		return status;
	bool is_told = weft_hook_lock_waits(lock, lock->__data.__owner, caller);
	ASLEEP(pthread_mutex_lock, MUTEX, -1, true, 0);
	int result = real.pthread_mutex_lock(lock);
	int last = errno;
	weft__hook_wakes(&s);
	if (is_told)
		weft_hook_lock_waited(lock);
	if (result == 0)
		weft_hook_lock_taken(lock, lock->__data.__owner);
	errno = last;
	return result;
}

#define TRIED(NAME, TYPE, TRY, BUSY)                                                                                             \
	TAKE(NAME, int, (TYPE * lock), (lock), false)                                                                            \
	{                                                                                                                        \
		/* What weft has locks for must not wait for what it tells of that. */                                           \
		if (weft__hook_is_recorder(caller))                                                                              \
			return real.NAME(lock);                                                                                  \
		int status = tries.TRY ? tries.TRY(lock) : (BUSY);                                                               \
		if (status != (BUSY))                                                                                            \
			return status;                                                                                           \
		ASLEEP(NAME, MUTEX, -1, true, 0);                                                                                \
		int result = real.NAME(lock);                                                                                    \
		AWAKE;                                                                                                           \
	}
TRIED(mtx_lock, mtx_t, mtx_trylock, thrd_busy)
TRIED(pthread_rwlock_rdlock, pthread_rwlock_t, pthread_rwlock_tryrdlock, EBUSY)
TRIED(pthread_rwlock_wrlock, pthread_rwlock_t, pthread_rwlock_trywrlock, EBUSY)

/* Of a mutex that was taken several times by who has it, all but the last time change nothing. */
TAKE(pthread_mutex_unlock, int, (pthread_mutex_t * lock), (lock), false)
{
	enum { KINDS = 3 };
	if ((lock->__data.__kind & KINDS) != PTHREAD_MUTEX_RECURSIVE || lock->__data.__count <= 1)
		weft_hook_lock_given(lock);
	return real.pthread_mutex_unlock(lock);
}

/* ---- What another OS thread ends: conditions, barriers, semaphores ---- */

/* Who waits for a condition has the lock before and after that.  `id`: what it waits for. */
#define CONDITION(NAME, PARAMETERS, ARGUMENTS, ID)                                                                               \
	TAKE(NAME, int, PARAMETERS, ARGUMENTS, true)                                                                             \
	{                                                                                                                        \
		const weft_id id = ID;                                                                                           \
		weft_hook_lock_given(mutex);                                                                                     \
		ASLEEP(NAME, LOCK, -1, true, 0);                                                                                 \
		int result = real.NAME ARGUMENTS, last = errno;                                                                  \
		weft__hook_wakes(&s);                                                                                            \
		if (id)                                                                                                          \
			weft_hook_condition_waited(condition, id);                                                               \
		if (result == 0 || result == ETIMEDOUT)                                                                          \
			weft_hook_lock_taken(mutex, mutex->__data.__owner);                                                      \
		errno = last;                                                                                                    \
		return result;                                                                                                   \
	}
CONDITION(pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *mutex), (condition, mutex),
    is_shared_condition(condition) ? 0 : weft_hook_condition_waits(condition, NULL, caller))
CONDITION(pthread_cond_timedwait, (pthread_cond_t * condition, pthread_mutex_t *mutex, const struct timespec *until),
    (condition, mutex, until), 0)
CONDITION(pthread_cond_clockwait,
    (pthread_cond_t * condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
    (condition, mutex, clock, until), 0)

#define SIGNALS(NAME, TO_ALL)                                                                                                    \
	TAKE(NAME, int, (pthread_cond_t * condition), (condition), false)                                                        \
	{                                                                                                                        \
		weft_hook_condition_signals(condition, TO_ALL, caller);                                                          \
		return real.NAME(condition);                                                                                     \
	}
SIGNALS(pthread_cond_signal, false)
SIGNALS(pthread_cond_broadcast, true)

TAKE(pthread_barrier_wait, int, (pthread_barrier_t * barrier), (barrier), true)
{
	const weft_id id = weft_hook_condition_waits(barrier, "barrier", caller);
	ASLEEP(pthread_barrier_wait, LOCK, -1, true, 0);
	int result = real.pthread_barrier_wait(barrier), last = errno;
	weft__hook_wakes(&s);
	if (id)
		weft_hook_condition_waited(barrier, id);
	errno = last;
	return result;
}

TAKE(sem_trywait, int, (sem_t * semaphore), (semaphore), false)
{
	int result = real.sem_trywait(semaphore);
	if (result == 0)
		weft_hook_semaphore_taken(semaphore);
	return result;
}

TAKE(sem_post, int, (sem_t * semaphore), (semaphore), false)
{
	weft_hook_semaphore_posts(semaphore);
	return real.sem_post(semaphore);
}

static bool is_used_up(sem_t *semaphore)
{
	int value = 0;
	return sem_getvalue(semaphore, &value) == 0 && value == 0;
}

/* One that is there is taken without a wait. */
#define SEMAPHORE(NAME, PARAMETERS, ARGUMENTS, ID)                                                                               \
	TAKE(NAME, int, PARAMETERS, ARGUMENTS, is_used_up(semaphore))                                                            \
	{                                                                                                                        \
		const int kept = errno;                                                                                          \
		int result = real.sem_trywait(semaphore);                                                                        \
		errno = kept;                                                                                                    \
		if (result == 0) {                                                                                               \
			weft_hook_semaphore_taken(semaphore);                                                                    \
			return 0;                                                                                                \
		}                                                                                                                \
		const weft_id id = ID;                                                                                           \
		ASLEEP(NAME, LOCK, -1, true, 0);                                                                                 \
		result = real.NAME ARGUMENTS;                                                                                    \
		int last = errno;                                                                                                \
		weft__hook_wakes(&s);                                                                                            \
		if (id)                                                                                                          \
			weft_hook_semaphore_waited(semaphore, id);                                                               \
		if (result == 0)                                                                                                 \
			weft_hook_semaphore_taken(semaphore);                                                                    \
		errno = last;                                                                                                    \
		return result;                                                                                                   \
	}
SEMAPHORE(
    sem_wait, (sem_t * semaphore), (semaphore), is_shared_semaphore(semaphore) ? 0 : weft_hook_semaphore_waits(semaphore, caller))
SEMAPHORE(sem_timedwait, (sem_t * semaphore, const struct timespec *until), (semaphore, until), 0)
SEMAPHORE(sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *until), (semaphore, clock, until), 0)

/* ---- Input: a wait for it, and what is read from connections past their runtime ---- */

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

/* The C library's names.  NOLINTBEGIN(bugprone-reserved-identifier) */
ssize_t __read_chk(int fd, void *to, size_t bytes, size_t room);
ssize_t __recv_chk(int fd, void *to, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t bytes, size_t room, int flags, struct sockaddr *from, socklen_t *size);
/* NOLINTEND(bugprone-reserved-identifier) */

/* `result` is what a read of it returned.  NULL unless a datagram has come, which may be empty: who knows where it lies tells of
 * it. */
static const struct weft__hook_carried *has_read(int fd, ssize_t result)
{
	struct weft__hook_carried *carried = result >= 0 ? weft__hook_carried_at(fd) : NULL;
	weft__hook_connect_is_used(fd, result, errno);
	if (result > 0)
		weft_hook_uses(fd);
	if (carried && result > 0 && !weft__hook_has_datagrams(carried))
		weft__hook_has_read(carried, fd, (size_t)result);
	return carried && weft__hook_has_datagrams(carried) ? carried : NULL;
}

static void have_come(int fd, const struct mmsghdr *messages, int count, int flags)
{
	if (count <= 0 || (flags & (MSG_PEEK | MSG_ERRQUEUE)))
		weft__hook_connect_is_used(fd, count, errno);
	else
		for (int i = 0; i < count; i++) {
			const struct weft__hook_carried *of_datagram = has_read(fd, (ssize_t)messages[i].msg_len);
			if (of_datagram)
				weft__hook_datagram_came(of_datagram, fd, &messages[i].msg_hdr, messages[i].msg_len);
		}
}

static void has_accepted(int fd, int result)
{
	if (result >= 0)
		weft_hook_uses(fd);
	weft__hook_is_another(result);
}

#define PIECES(FROM, COUNT) .msg_iov = (struct iovec *)(uintptr_t)(FROM), .msg_iovlen = (size_t)(COUNT)
#define ONE_PIECE(FROM, SIZE) PIECES((&(struct iovec){(void *)(uintptr_t)(FROM), SIZE}), 1)

/* THEN: what is done with what it returned. */
#define INPUT(NAME, RESULT, PARAMETERS, ARGUMENTS, MAY_WAIT, THEN)                                                               \
	TAKE(NAME, RESULT, PARAMETERS, ARGUMENTS, false)                                                                         \
	{                                                                                                                        \
		RESULT result;                                                                                                   \
		int saved = errno;                                                                                               \
		bool waits = (MAY_WAIT) && !weft__hook_is_recorder(caller) && would_wait(fd);                                    \
		errno = saved;                                                                                                   \
		if (!waits) {                                                                                                    \
			result = real.NAME ARGUMENTS;                                                                            \
			THEN;                                                                                                    \
			return result;                                                                                           \
		}                                                                                                                \
		ASLEEP(NAME, INPUT, -1, true, 0);                                                                                \
		result = real.NAME ARGUMENTS;                                                                                    \
		THEN;                                                                                                            \
		AWAKE;                                                                                                           \
	}
/* MESSAGE: where what was read lies. */
#define READ(MESSAGE)                                                                                                            \
	do {                                                                                                                     \
		const struct weft__hook_carried *of_datagram = has_read(fd, result);                                             \
		if (of_datagram)                                                                                                 \
			weft__hook_datagram_came(of_datagram, fd, MESSAGE, (size_t)result);                                      \
	} while (0)
/* What is only looked at stays there, and what is in the queue of errors was sent. */
#define RECEIVED(MESSAGE)                                                                                                        \
	if (flags & (MSG_PEEK | MSG_ERRQUEUE))                                                                                   \
		weft__hook_connect_is_used(fd, 0, 0);                                                                            \
	else                                                                                                                     \
		READ(MESSAGE)
INPUT(read, ssize_t, (int fd, void *to, size_t bytes), (fd, to, bytes), true, READ((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(readv, ssize_t, (int fd, const struct iovec *pieces, int count), (fd, pieces, count), true,
    READ((&(struct msghdr){PIECES(pieces, count)})))
INPUT(__read_chk, ssize_t, (int fd, void *to, size_t bytes, size_t room), (fd, to, bytes, room), true,
    READ((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(__recv_chk, ssize_t, (int fd, void *to, size_t bytes, size_t room, int flags), (fd, to, bytes, room, flags),
    !(flags & MSG_DONTWAIT), RECEIVED((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(recv, ssize_t, (int fd, void *to, size_t bytes, int flags), (fd, to, bytes, flags), !(flags & MSG_DONTWAIT),
    RECEIVED((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(recvfrom, ssize_t, (int fd, void *to, size_t bytes, int flags, struct sockaddr *from, socklen_t *size),
    (fd, to, bytes, flags, from, size), !(flags & MSG_DONTWAIT), RECEIVED((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(__recvfrom_chk, ssize_t, (int fd, void *to, size_t bytes, size_t room, int flags, struct sockaddr *from, socklen_t *size),
    (fd, to, bytes, room, flags, from, size), !(flags & MSG_DONTWAIT), RECEIVED((&(struct msghdr){ONE_PIECE(to, bytes)})))
INPUT(recvmsg, ssize_t, (int fd, struct msghdr *message, int flags), (fd, message, flags), !(flags & MSG_DONTWAIT),
    RECEIVED(message))
INPUT(recvmmsg, int, (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout),
    (fd, messages, count, flags, timeout), !(flags & MSG_DONTWAIT), have_come(fd, messages, result, flags))
INPUT(accept, int, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size), true, has_accepted(fd, result))
INPUT(accept4, int, (int fd, struct sockaddr *from, socklen_t *size, int flags), (fd, from, size, flags), true,
    has_accepted(fd, result))

TAKE(connect, int, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), false)
{
	weft__hook_connects(fd);
	const int result = real.connect(fd, to, size);
	weft__hook_has_connected(fd, to, size, result, caller);
	return result;
}

/* How a connect ended, of which the program was told that it is under way. */
TAKE(getsockopt, int, (int fd, int level, int name, void *restrict to, socklen_t *restrict size), (fd, level, name, to, size),
    false)
{
	(void)caller;
	const int result = real.getsockopt(fd, level, name, to, size);
	int error;
	if (level == SOL_SOCKET && name == SO_ERROR && result == 0 && *size == sizeof error) {
		memcpy(&error, to, sizeof error);
		weft__hook_connect_is_used(fd, error ? -1 : 0, error);
	}
	return result;
}

/* ---- What is written to connections ---- */

/* Told before the call: nothing of it was sent earlier. */
/* Where offsets have 64 bits, both names of it are one function. */
#define ALSO(NAME, OTHER) __asm__(".globl " OTHER "\n.type " OTHER ", %function\n.set " OTHER ", " #NAME)

/* With MSG_FASTOPEN it connects as well, and the kernel knows best what went with that. */
#define OUTPUT(NAME, PARAMETERS, ARGUMENTS, FLAGS, CAN_BE_READ, MESSAGE)                                                         \
	TAKE(NAME, ssize_t, PARAMETERS, ARGUMENTS, false)                                                                        \
	{                                                                                                                        \
		struct weft__hook_carried *to_there = weft__hook_carried_at(fd);                                                 \
		const bool opens = ((FLAGS)&MSG_FASTOPEN) && (CAN_BE_READ);                                                      \
		if (opens)                                                                                                       \
			weft__hook_connects(fd);                                                                                 \
		const size_t told = to_there && !opens && (CAN_BE_READ) ? weft__hook_writes(to_there, fd, MESSAGE) : 0;          \
		const ssize_t result = real.NAME ARGUMENTS;                                                                      \
		const size_t taken = result > 0 ? (size_t)result : 0;                                                            \
		weft__hook_connect_is_used(fd, result, errno);                                                                   \
		if (opens)                                                                                                       \
			weft__hook_has_connected(fd, (MESSAGE)->msg_name, (MESSAGE)->msg_namelen, result < 0 ? -1 : 0, caller);  \
		if (taken > 0)                                                                                                   \
			weft_hook_uses(fd);                                                                                      \
		if (taken < told)                                                                                                \
			weft__hook_wrote_less(to_there, told - taken);                                                           \
		return result;                                                                                                   \
	}
OUTPUT(write, (int fd, const void *from, size_t size), (fd, from, size), 0, true, (&(struct msghdr){ONE_PIECE(from, size)}))
OUTPUT(writev, (int fd, const struct iovec *pieces, int count), (fd, pieces, count), 0, count > 0,
    (&(struct msghdr){PIECES(pieces, count)}))
OUTPUT(send, (int fd, const void *from, size_t size, int flags), (fd, from, size, flags), 0, true,
    (&(struct msghdr){ONE_PIECE(from, size)}))
OUTPUT(sendto, (int fd, const void *from, size_t size, int flags, const struct sockaddr *to, socklen_t bytes_of_to),
    (fd, from, size, flags, to, bytes_of_to), flags, true,
    (&(struct msghdr){.msg_name = (void *)(uintptr_t)to, .msg_namelen = bytes_of_to, ONE_PIECE(from, size)}))
OUTPUT(sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), flags,
    weft_hook_is_readable(message, sizeof *message), message)

OUTPUT(sendfile64, (int fd, int from, off64_t *at, size_t size), (fd, from, at, size), 0, true,
    (&(struct msghdr){ONE_PIECE(NULL, size)}))
ALSO(sendfile64, "sendfile");

TAKE(splice, ssize_t, (int from, off64_t *from_at, int fd, off64_t *at, size_t size, unsigned flags),
    (from, from_at, fd, at, size, flags), false)
{
	(void)caller;
	struct weft__hook_carried *to_there = weft__hook_carried_at(fd);
	const size_t told = to_there ? weft__hook_writes(to_there, fd, &(struct msghdr){ONE_PIECE(NULL, size)}) : 0;
	const ssize_t result = real.splice(from, from_at, fd, at, size, flags);
	const size_t taken = result > 0 ? (size_t)result : 0;
	has_read(from, result);
	if (taken > 0)
		weft_hook_uses(fd);
	if (taken < told)
		weft__hook_wrote_less(to_there, told - taken);
	return result;
}

TAKE(sendmmsg, int, (int fd, struct mmsghdr *messages, unsigned count, int flags), (fd, messages, count, flags), false)
{
	(void)caller;
	struct weft__hook_carried *to_there = weft__hook_carried_at(fd);
	size_t told = 0, taken = 0;
	unsigned at = 0;
	for (; to_there && at < count && weft_hook_is_readable(&messages[at], sizeof messages[at]); at++)
		told += weft__hook_writes(to_there, fd, &messages[at].msg_hdr);
	const int result = real.sendmmsg(fd, messages, count, flags);
	if (result > 0)
		weft_hook_uses(fd);
	for (unsigned i = 0; told > 0 && i < at && result > 0 && i < (unsigned)result; i++)
		taken += messages[i].msg_len;
	if (taken < told)
		weft__hook_wrote_less(to_there, told - taken);
	return result;
}

/* ---- Which thing a descriptor is ---- */

TAKE(socket, int, (int family, int type, int protocol), (family, type, protocol), false)
{
	(void)caller;
	const int result = real.socket(family, type, protocol);
	weft__hook_is_another(result);
	return result;
}

TAKE(close, int, (int fd), (fd), false)
{
	(void)caller;
	weft__hook_is_another(fd);
	return real.close(fd);
}

TAKE(close_range, int, (unsigned first, unsigned last, int flags), (first, last, flags), false)
{
	(void)caller;
	if (!(flags & CLOSE_RANGE_CLOEXEC))
		weft__hook_are_others(first, last);
	return real.close_range(first, last, flags);
}

TAKEN void closefrom(int first)
{
	RESOLVED(closefrom)
	if (is_told())
		weft__hook_are_others(first < 0 ? 0 : (unsigned)first, UINT_MAX);
	real.closefrom(first);
}

#define DUPLICATES(NAME, PARAMETERS, ARGUMENTS)                                                                                  \
	TAKE(NAME, int, PARAMETERS, ARGUMENTS, false)                                                                            \
	{                                                                                                                        \
		(void)caller;                                                                                                    \
		const int result = real.NAME ARGUMENTS;                                                                          \
		weft__hook_is_same(result, fd);                                                                                  \
		return result;                                                                                                   \
	}
DUPLICATES(dup, (int fd), (fd))
DUPLICATES(dup2, (int fd, int to), (fd, to))
DUPLICATES(dup3, (int fd, int to, int flags), (fd, to, flags))

TAKEN int fcntl64(int fd, int operation, ...)
{
	va_list list;
	va_start(list, operation);
	void *argument = va_arg(list, void *);
	va_end(list);
	RESOLVED(fcntl64)
	const int result = real.fcntl64(fd, operation, argument);
	if ((operation == F_DUPFD || operation == F_DUPFD_CLOEXEC) && is_told())
		weft__hook_is_same(result, fd);
	return result;
}
ALSO(fcntl64, "fcntl");
