/* asked.c: preloaded, counts what the recorder asks the kernel about an OS thread's processor time, and how long that takes.
 *
 * WEFT_BENCH_ASKED names a file that gets two numbers of 64 bits: how often, and how many ns in all.  SPDX-License-Identifier:
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

struct asked {
	uint64_t times, ns;
};

static struct asked *asked;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("WEFT_BENCH_ASKED");
	const int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *at = fd >= 0 && ftruncate(fd, sizeof *asked) == 0
		       ? mmap(NULL, sizeof *asked, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
		       : MAP_FAILED;
	asked = at == MAP_FAILED ? NULL : at;
	if (fd >= 0)
		close(fd);
}

/* A system call that is counted. */
static int ask(long number, long first, void *second, unsigned times)
{
	struct timespec before, after;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &before); /* what this costs is counted, too: the row shows a bit too much */
	const int result = (int)syscall(number, first, second, 0, 0, 0);
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &after);
	if (asked) {
		__atomic_fetch_add(&asked->times, times, __ATOMIC_RELAXED);
		__atomic_fetch_add(&asked->ns,
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
	return what == PR_GET_SECCOMP ? ask(SYS_prctl, what, NULL, 0) : (int)syscall(SYS_prctl, what, a, b, c, d);
}

__attribute__((visibility("default"))) int getrusage(__rusage_who_t who, struct rusage *out)
{
	/* With it the clock of the OS thread is asked for, which takes as long. */
	struct timespec had;
	if (who == RUSAGE_THREAD)
		ask(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &had, 0);
	return ask(SYS_getrusage, who, out, who == RUSAGE_THREAD);
}
