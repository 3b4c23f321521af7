/* clock.c: chooses the clock of a recording, and determines the clock's frequency.  SPDX-License-Identifier: ISC */
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/host.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#endif

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t weft__monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t weft__wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* Reads both clocks; *ns is the reading of `other` that two readings of `clock` enclose most tightly. */
static void read_clock_pair(uint64_t (*clock)(void), uint64_t (*other)(void), uint64_t *ticks, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < 8; i++) {
		uint64_t before = clock(), at = other(), after = clock();
		if (after - before < best) {
			best = after - before;
			*ticks = before + (after - before) / 2;
			*ns = at;
		}
	}
}

void weft__clock_pair(uint64_t *ticks, uint64_t *wall_ns)
{
	*ticks = weft__time();
	*wall_ns = 0;
	if (weft__recording.origin.wall_ns)
		read_clock_pair(weft__time, weft__recording.origin.wall_ns, ticks, wall_ns);
}

#if defined(__x86_64__) || defined(__i386__)

static uint64_t read_counter(void)
{
	return weft__counter();
}

static bool is_invariant(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
}

/* Returns the counter's frequency that the kernel itself uses, which perf events report. */
static uint64_t read_perf_hz(void)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_DUMMY, .exclude_kernel = 1, .exclude_hv = 1};
	uint64_t hz = 0;
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return 0;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *p = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED) {
		if (p->cap_user_time && p->time_mult)
			hz = (uint64_t)((1e9 * (double)(1ull << p->time_shift)) / p->time_mult + 0.5);
		munmap(p, page);
	}
	close(fd);
	return hz;
}

static uint64_t kernel_hz; /* frequency of the counter, constant while the machine runs */

void weft__clock_query_hz(void)
{
	/* A seccomp filter may kill the caller of perf_event_open(), as the filters of systemd do, so the call is not made under
	 * a filter.
	 */
	if (!kernel_hz && is_invariant() && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0)
		kernel_hz = read_perf_hz();
}

static uint64_t read_cpuid_hz(void)
{
	unsigned a, b, c, d;
	if (__get_cpuid(0x15, &a, &b, &c, &d) && a && b && c)
		return (uint64_t)c * b / a;
	return 0;
}

/* Measures the counter's frequency in 2 ms, with an error of about 20 ppm. */
static uint64_t measure_hz(void)
{
	uint64_t t0 = 0, n0 = 0, t1 = 0, n1 = 0;
	read_clock_pair(read_counter, weft__monotonic_ns, &t0, &n0);
	do
		read_clock_pair(read_counter, weft__monotonic_ns, &t1, &n1);
	while (n1 - n0 < 2000000);
	return (uint64_t)((double)(t1 - t0) * 1e9 / (double)(n1 - n0));
}

bool weft__clock_has_counter(void)
{
	return is_invariant();
}

void weft__clock_choose(struct weft__clock_choice *out, bool use_monotonic)
{
	/* Cached choice of the counter, whose frequency is constant while the machine runs. */
	static struct weft__clock_choice counter_choice;
	if (!use_monotonic && is_invariant()) {
		if (!counter_choice.hz) {
			counter_choice =
			    (struct weft__clock_choice){.use_counter = true, .source = "tsc", .measured = "exact", .exact = true};
			if (!(counter_choice.hz = read_cpuid_hz()) && !(counter_choice.hz = kernel_hz)) {
				counter_choice.hz = measure_hz();
				counter_choice.measured = "hurried";
				counter_choice.exact = false;
			}
		}
		*out = counter_choice;
		return;
	}
	*out = (struct weft__clock_choice){.hz = 1000000000, .source = "monotonic", .measured = "exact", .exact = true};
}

#else

void weft__clock_query_hz(void)
{
}

bool weft__clock_has_counter(void)
{
#if defined(__aarch64__)
	return true;
#else
	return false;
#endif
}

void weft__clock_choose(struct weft__clock_choice *out, bool use_monotonic)
{
	*out = (struct weft__clock_choice){.hz = 1000000000, .source = "monotonic", .measured = "exact", .exact = true};
#if defined(__aarch64__)
	if (!use_monotonic) {
		uint64_t hz;
		__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
		*out = (struct weft__clock_choice){
		    .use_counter = true, .hz = hz, .source = "cntvct", .measured = "exact", .exact = true};
	}
#endif
}

#endif
