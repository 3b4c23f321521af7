/* asked.c: preloaded, counts the recorder's queries of an OS thread's CPU time, and measures their cost.
 *
 * WEFT_BENCH_ASKED names a file that gets two 64-bit numbers: the number of queries, and their total ns. SPDX-License-Identifier:
 * ISC */
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct query_counters {
	uint64_t times, ns;
};

static struct query_counters *query_counters;

__attribute__((constructor)) static void map_counters(void)
{
	const char *path = getenv("WEFT_BENCH_ASKED");
	const int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *at = fd >= 0 && ftruncate(fd, sizeof *query_counters) == 0
		       ? mmap(NULL, sizeof *query_counters, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
		       : MAP_FAILED;
	query_counters = at == MAP_FAILED ? NULL : at;
	if (fd >= 0)
		close(fd);
}

/* Makes a system call and counts it. */
static int counted_syscall(long number, long first, void *second, unsigned times)
{
	struct timespec before, after;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &before); /* its cost is included: the row shows a bit too much */
	const int result = (int)syscall(number, first, second, 0, 0, 0);
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &after);
	if (query_counters) {
		__atomic_fetch_add(&query_counters->times, times, __ATOMIC_RELAXED);
		__atomic_fetch_add(&query_counters->ns,
		    (uint64_t)((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec), __ATOMIC_RELAXED);
	}
	return result;
}

__attribute__((visibility("default"))) int prctl(int what, ...)
{
	va_list list;
	va_start(list, what);
	const unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long), c = va_arg(list, unsigned long),
			    d = va_arg(list, unsigned long);
	va_end(list);
	return what == PR_GET_SECCOMP ? counted_syscall(SYS_prctl, what, NULL, 0) : (int)syscall(SYS_prctl, what, a, b, c, d);
}

__attribute__((visibility("default"))) int getrusage(__rusage_who_t who, struct rusage *out)
{
	/* The recorder also reads the thread's CPU clock, which takes as long. */
	struct timespec had;
	if (who == RUSAGE_THREAD)
		counted_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &had, 0);
	return counted_syscall(SYS_getrusage, who, out, who == RUSAGE_THREAD);
}
