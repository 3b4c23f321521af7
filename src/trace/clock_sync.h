/* clock_sync.h: aligns the clocks of several traces by the messages between them.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_CLOCK_SYNC_H
#define WEFT_TRACE_CLOCK_SYNC_H

#include "trace/clock_bounds.h"
#include "trace/trace.h"

/* A step of the path from a clock to the first clock. */
struct weft_clock_path {
	/* bounds between the clock and clock `to`; NULL: it is the first clock, or no path exists */
	const struct weft_clock_bounds *clock_bounds;
	uint32_t to;
};

/* The relation of two clocks, from their traces. */
struct weft_clock_pair {
	uint32_t parts[2], clocks[2];        /* parts: one trace of each clock */
	size_t connections;                  /* connections with both ends found */
	size_t messages[2];                  /* number sent by each clock */
	int64_t least_ns, average_ns;        /* if has_bounds: distance between the bounds, minimum and average */
	int64_t rate_low_ppb, rate_high_ppb; /* if has_bounds: range of the drift of the second clock against the first */
	bool has_bounds;                     /* false: one direction has no messages */
};

struct weft_clock_sync {
	struct weft_clock_path *paths; /* by clock */
	int64_t *bounds_ns; /* by clock: average half distance of the bounds, summed over the path; INT64_MAX: no path */
	size_t clock_count;
	struct weft_clock_pair *pairs;
	size_t pair_count;
	size_t connections, messages; /* sums over all pairs */
	size_t unmatched;             /* ends of connections with peers in none of the traces */
	size_t renamed;               /* unmatched ends with a peer that is here but recorded another address (NAT) */
	char example[120];            /* one of these, if possible a renamed one: "tcp OWN PEER"; empty: none */
	size_t contradictory;         /* pairs of matching ends of which one read more than the other can have written */
	char contradiction[120];      /* the first of these, in the form of `example` */
	size_t unwritten;             /* reads of bytes without a known write: something is missing or wrong */
	struct weft_clock_bounds **all_bounds;
	size_t all_bounds_count;
};

/* Reads `count` traces from their positions to their ends and rewinds them.  Trace i uses clock clock_of[i], below clock_count;
 * its times multiplied by rates[i] are times of that clock.  TCP connections between two clocks bound their offset.  If several
 * paths lead to the first clock, the one with the narrowest sum of bounds is used.  Connections of a host with itself (127.0.0.1)
 * are ignored, because every host has these addresses. host_of[i] is the host of trace i.  If two hosts claim one clock, as
 * containers do, messages between them must not contradict that.
 *
 * WEFT_EINVAL: messages of two hosts contradict each other (clock_bounds.h), or two hosts with one clock received bytes before
 * they were sent; err names them.  Also errors of reading; WEFT_ENOMEM.  On failure nothing needs to be freed. */
int weft_clock_sync_compute(struct weft_clock_sync *out, struct weft_trace *const *traces, size_t count, const uint32_t *clock_of,
    const uint32_t *host_of, const double *rates, size_t clock_count, struct weft_error *err);
void weft_clock_sync_finish(struct weft_clock_sync *clock_sync);

/* Converts a time of a clock to the first clock: the true time is between *low and *high, which may be NULL.  The result is the
 * middle.  Logarithmic in messages for each step of the path. */
int64_t weft_clock_sync_time(const struct weft_clock_sync *clock_sync, uint32_t clock, int64_t ns, int64_t *low, int64_t *high);

/* Converts mostly increasing times in the same way.  The cursors keep the newest results of the first steps of the path; zero
 * them at first.  *left_ns as in weft_clock_bounds_time_from(). */
enum { WEFT_CLOCK_SYNC_CURSORS = 4 };
int64_t weft_clock_sync_time_from(const struct weft_clock_sync *clock_sync, uint32_t clock, int64_t ns,
    struct weft_clock_bounds_cursor cursors[WEFT_CLOCK_SYNC_CURSORS], int64_t *left_ns);

#endif
