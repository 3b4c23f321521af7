/* usage.c: how long an OS thread had a processor, as its kernel says.
 *
 * A round of a loop that took long is told with what became of that time.  The kernel is asked when a sleep is over, a thousand
 * times a second at most, and when a long round ends: so the stretch that is told of is that round, and a millisecond more where
 * a loop hardly sleeps.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "record/host.h"

/* In lengths of a long round: so long after it was asked the kernel is asked again in any case.  Of who never says that its sleep
 * is over nobody knows how long it was awake. */
enum { UNTOLD = 10 };

/* In decimal digits, with a character behind it; returns where that ends. */
static char *put_number(char *at, uint64_t number, char behind)
{
	char digits[20];
	unsigned count = 0;
	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*at++ = digits[--count];
	*at++ = behind;
	return at;
}

/* What the kernel says of the calling OS thread, without a descriptor: so not how long it waited for a processor. */
static bool ask_usage(struct weft__usage *out)
{
	struct timespec had;
	struct rusage used;
	int saved = errno;
	/* A filter of system calls may kill who asks for another than it knows. */
	bool knows = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0 && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &had) == 0 &&
		     getrusage(RUSAGE_THREAD, &used) == 0;
	errno = saved;
	if (!knows)
		return false;
	*out = (struct weft__usage){.had_ns = (uint64_t)had.tv_sec * 1000000000 + (uint64_t)had.tv_nsec,
	    .given = (uint64_t)used.ru_nvcsw,
	    .taken = (uint64_t)used.ru_nivcsw,
	    .minor = (uint64_t)used.ru_minflt,
	    .major = (uint64_t)used.ru_majflt};
	return true;
}

/* Keeps what the kernel says now.  Where asking takes long, it asks less often: a percent of the time at most.  It
 * takes no longer than the least that it ever took: who loses the processor meanwhile waits for that. */
static bool sample(struct weft__stream *s)
{
	uint64_t now = weft__time(), cost = s->usage.time ? s->usage.cost : UINT64_MAX;
	if (!ask_usage(&s->usage)) {
		s->usage.time = 0;
		s->hot.long_ticks = s->hot.sample_due = UINT64_MAX;
		return false;
	}
	s->usage.time = now;
	uint64_t took = weft__time() - now;
	s->usage.cost = took < cost ? took : cost;
	uint64_t pause = s->usage.cost * 100, least = s->hot.long_ticks, most = UNTOLD * least;
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
	sample(s);
	s->hot.awake_since = s->usage.time;
}

void weft__slow_awake(void)
{
	sample((struct weft__stream *)(void *)weft__stream);
}

/* A run that took long, though its OS thread had no processor for most of it, is not to be told of as work. */
void weft__slow_round(void)
{
	struct weft__stream *s = (struct weft__stream *)(void *)weft__stream;
	const struct weft__usage before = s->usage;
	if (!s->hot.awake_since && weft__time() - before.time < UNTOLD * s->hot.long_ticks) {
		s->hot.sample_due = before.time + UNTOLD * s->hot.long_ticks;
		return;
	}
	if (!sample(s) || !before.time)
		return;
	const struct weft__usage *now = &s->usage;
	char text[112], *at = put_number(text, now->had_ns - before.had_ns, ' ');
	at = put_number(at, now->given - before.given, ' ');
	at = put_number(at, now->taken - before.taken, ' ');
	at = put_number(at, now->minor - before.minor, ' ');
	put_number(at, now->major - before.major, 0);
	int64_t ns = weft__ticks_ns(now->time - before.time, weft__recording.origin.clock_hz);
	weft__slow_detail(WEFT_SYSTEM_ID, WEFT_DETAIL_ROUND, ns, text);
}
