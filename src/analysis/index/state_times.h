/* state_times.h: how long a promise was in each state, which account.h defines and computes.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_STATE_TIMES_H
#define WEFT_ANALYSIS_INDEX_STATE_TIMES_H

#include <stdint.h>

/* The sum of the first three is the duration, to the ns. */
struct weft_state_times {
	int64_t waiting_ns, ready_ns, running_ns;
	int64_t off_ns; /* part of running_ns: off CPU; 0 if unknown */
};

static inline void weft_state_times_add(struct weft_state_times *to, const struct weft_state_times *part)
{
	to->waiting_ns += part->waiting_ns;
	to->ready_ns += part->ready_ns;
	to->running_ns += part->running_ns;
	to->off_ns += part->off_ns;
}

#endif
