/* state_times.h: tells how long a promise was in each state; account.h defines and computes the states.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_STATE_TIMES_H
#define WEFT_ANALYSIS_INDEX_STATE_TIMES_H

#include <stdint.h>

/* The sum of the first three fields is the exact duration, to the ns. */
struct weft_state_times {
	int64_t waiting_ns, ready_ns, running_ns;
	int64_t off_ns; /* time in which the promise's thread was off CPU, contained in running_ns; 0 if unknown */
};

static inline void weft_state_times_add(struct weft_state_times *to, const struct weft_state_times *part)
{
	to->waiting_ns += part->waiting_ns;
	to->ready_ns += part->ready_ns;
	to->running_ns += part->running_ns;
	to->off_ns += part->off_ns;
}

#endif
