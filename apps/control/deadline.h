/* deadline.h: limits the time of waits, and of loops over the memory of other processes, which may contain anything (private to
 * apps).  SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_DEADLINE_H
#define WEFT_CONTROL_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Returns the time since boot in ns, which no clock change affects. */
static inline int64_t deadline_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns the time at which `patience_ns` from now will have passed. */
static inline int64_t deadline_after_ns(int64_t patience_ns)
{
	const int64_t now_ns = deadline_now_ns();
	return patience_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + patience_ns;
}

/* Returns the deadline in the form of pthread_cond_timedwait(). */
static inline struct timespec deadline_to_timespec(int64_t deadline_ns)
{
	return (struct timespec){.tv_sec = deadline_ns / 1000000000, .tv_nsec = deadline_ns % 1000000000};
}

static inline bool deadline_is_over(int64_t deadline_ns)
{
	return deadline_now_ns() >= deadline_ns;
}

#endif
