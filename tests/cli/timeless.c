/* timeless.c: a simulated clock for a program with a libuv loop, so that other programs cannot change its times.
 *
 * Linked into the program, it replaces libc's clock and the loop's sleep: a clock reading takes 100 ns, and a sleep ends at once
 * but advances the clock by its length.  So each run has the same times to the ns, however busy the machine is.
 * TIMELESS_TRACE=FOLDER records the program with this clock.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <weft/record.h>

#define EXPORT __attribute__((visibility("default")))

static uint64_t now_ns = 1000000000;

EXPORT int clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t ns = __atomic_add_fetch(&now_ns, 100, __ATOMIC_RELAXED);
	*t = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	return 0;
}

EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout_ms, const sigset_t *signals)
{
	enum { KERNEL_SIGSET_BYTES = 8 };
	int count = (int)syscall(SYS_epoll_pwait, epoll, events, most, timeout_ms < 0 ? -1 : 0, signals, KERNEL_SIGSET_BYTES);
	if (count == 0 && timeout_ms > 0)
		__atomic_add_fetch(&now_ns, (uint64_t)timeout_ms * 1000000, __ATOMIC_RELAXED);
	return count;
}

EXPORT int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
	return epoll_pwait(epoll, events, most, timeout_ms, NULL);
}

__attribute__((constructor)) static void start(void)
{
	const struct weft_record_options options = {.directory = getenv("TIMELESS_TRACE"), .use_monotonic = true};
	if (options.directory && weft_start(&options) < 0) {
		fprintf(stderr, "%s: %s\n", options.directory, weft_start_error());
		exit(3);
	}
}
