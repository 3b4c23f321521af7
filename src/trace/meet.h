/* meet.h: ties the clocks of several traces by what went between them.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_MEET_H
#define WEFT_TRACE_MEET_H

#include "trace/tie.h"
#include "trace/trace.h"

/* From a clock to the first one: by way of this tie to that clock, and on. */
struct weft_meet_way {
	const struct weft_tie *tie; /* NULL: it is the first one, or nothing leads there */
	uint32_t to;
};

struct weft_meet {
	struct weft_meet_way *ways; /* by clock */
	int64_t *bounds_ns;         /* by clock: half the bound, on average, on the whole way; INT64_MAX: nothing leads there */
	size_t clock_count;
	size_t connections, messages; /* between two clocks, both ends of which were found */
	struct weft_tie **ties;
	size_t tie_count;
};

/* Reads `count` traces from where they stand to their end, and rewinds them.  Clock clock_of[i], below clock_count, is the one of
 * trace i, whose times become that clock's when `rates[i]` multiplies them.  Connections of TCP whose ends are of two clocks tie
 * these; of several ways to the first clock the one with the narrowest bounds, which add up, is taken.  Connections of a host
 * with itself (127.0.0.1) are left out: every host has these addresses.
 *
 * WEFT_EINVAL: what two of them say of each other cannot be true (tie.h); err names them.  What the reading fails of;
 * WEFT_ENOMEM. On failure nothing is to be freed. */
int weft_meet(struct weft_meet *out, struct weft_trace *const *traces, size_t count, const uint32_t *clock_of,
    const double *rates, size_t clock_count, struct weft_error *err);
void weft_meet_finish(struct weft_meet *meet);

#endif
