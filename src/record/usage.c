/* usage.c: measures how long an OS thread had a CPU.
 *
 * If an iteration of an event loop takes long, its CPU time is recorded.  The kernel is queried when a sleep is over, at most a
 * thousand times per second, and when a long iteration ends.  So the measured interval is the iteration, plus up to a
 * millisecond if the loop hardly sleeps.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "record/host.h"

/* Largest age of a CPU time sample, as a multiple of the length of a long iteration; an older sample is always renewed by a
 * query.  For a thread that never reports the end of a sleep, the time awake is unknown. */
enum { MAX_SAMPLE_AGE_ROUNDS = 10 };

/* Appends a decimal number and a terminator; returns the end of the text. */
static char *append_number(char *at, uint64_t number, char terminator)
{
	char digits[20];
	unsigned count = 0;
	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*at++ = digits[--count];
	*at++ = terminator;
	return at;
}

/* Queries the CPU usage of the calling OS thread.  The function uses no descriptor, so it cannot learn how long the thread was
 * runnable but not on CPU. */
static bool read_usage(struct weft__usage *out)
{
	struct timespec cpu_time;
	struct rusage used;
	int saved = errno;
	/* A seccomp filter may kill the caller of an unexpected system call. */
	bool is_known = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0 && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_time) == 0 &&
			getrusage(RUSAGE_THREAD, &used) == 0;
	errno = saved;
	if (!is_known)
		return false;
	*out = (struct weft__usage){.cpu_ns = (uint64_t)cpu_time.tv_sec * 1000000000 + (uint64_t)cpu_time.tv_nsec,
	    .voluntary_switches = (uint64_t)used.ru_nvcsw,
	    .preemptions = (uint64_t)used.ru_nivcsw,
	    .minor_faults = (uint64_t)used.ru_minflt,
	    .major_faults = (uint64_t)used.ru_majflt};
	return true;
}

/* Stores the current usage.  If a query of the CPU usage is slow, queries become rarer, so that they take at most one percent of
 * the time.  The cost of a query is the shortest time that a query ever took, because longer times may include preemption. */
static bool sample_usage(struct weft__stream *s)
{
	uint64_t now = weft__time(), cost_ticks = s->usage.time ? s->usage.cost_ticks : UINT64_MAX;
	if (!read_usage(&s->usage)) {
		s->usage.time = 0;
		s->hot.long_ticks = s->hot.sample_due = UINT64_MAX;
		return false;
	}
	s->usage.time = now;
	uint64_t took = weft__time() - now;
	s->usage.cost_ticks = took < cost_ticks ? took : cost_ticks;
	uint64_t pause = s->usage.cost_ticks * 100, least = s->hot.long_ticks, most = MAX_SAMPLE_AGE_ROUNDS * least;
	s->hot.sample_due = now + (pause < least ? least : pause < most ? pause : most);
	return true;
}

void weft__usage_begin(struct weft__stream *s)
{
	s->hot.awake_since = s->usage.time = 0;
	s->hot.long_ticks = s->hot.sample_due = UINT64_MAX;
	if (!weft__recording.long_ticks)
		return;
	s->hot.long_ticks = weft__recording.long_ticks;
	sample_usage(s);
	s->hot.awake_since = s->usage.time;
}

void weft__slow_awake(void)
{
	sample_usage((struct weft__stream *)(void *)weft__stream);
}

/* Records the CPU time of a long run, so that time off CPU is not reported as work. */
void weft__slow_round(void)
{
	struct weft__stream *s = (struct weft__stream *)(void *)weft__stream;
	const struct weft__usage before = s->usage;
	if (!s->hot.awake_since && weft__time() - before.time < MAX_SAMPLE_AGE_ROUNDS * s->hot.long_ticks) {
		s->hot.sample_due = before.time + MAX_SAMPLE_AGE_ROUNDS * s->hot.long_ticks;
		return;
	}
	if (!sample_usage(s) || !before.time)
		return;
	const struct weft__usage *now = &s->usage;
	char text[112], *at = append_number(text, now->cpu_ns - before.cpu_ns, ' ');
	at = append_number(at, now->voluntary_switches - before.voluntary_switches, ' ');
	at = append_number(at, now->preemptions - before.preemptions, ' ');
	at = append_number(at, now->minor_faults - before.minor_faults, ' ');
	append_number(at, now->major_faults - before.major_faults, 0);
	int64_t ns = weft__ticks_ns(now->time - before.time, weft__recording.origin.clock_hz);
	weft__slow_detail(WEFT_SYSTEM_ID, WEFT_DETAIL_ROUND, ns, text);
}
