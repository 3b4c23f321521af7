/* clock_sync.h: aligns the clocks of several traces by the messages between them.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_CLOCK_SYNC_H
#define WEFT_TRACE_CLOCK_SYNC_H

#include "trace/clock_bounds.h"
#include "trace/trace.h"

/* A step of the path from a clock to the first clock. */
struct weft_clock_path {
	/* bounds between this clock and the clock `to`; NULL for the first clock, or if no path exists */
	const struct weft_clock_bounds *clock_bounds;
	uint32_t to;
};

/* The relation of two clocks, as computed from their traces. */
struct weft_clock_pair {
	uint32_t parts[2], clocks[2];        /* one trace of each clock; numbers of the clocks */
	size_t connections;                  /* number of connections whose two ends were found */
	size_t messages[2];                  /* number of messages that the host of each clock sent */
	int64_t least_ns, average_ns;        /* if has_bounds: minimum distance between the bounds; average distance */
	int64_t rate_low_ppb, rate_high_ppb; /* if has_bounds: range of the drift of the second clock against the first */
	bool has_bounds;                     /* false if messages between the two clocks went in only one direction */
};

struct weft_clock_sync {
	struct weft_clock_path *paths; /* by clock */
	int64_t *bounds_ns; /* by clock: average half distance of the bounds, summed over its path; INT64_MAX if it has no path */
	size_t clock_count;
	struct weft_clock_pair *pairs;
	size_t pair_count;
	size_t connections, messages; /* sums over all pairs */
	size_t unmatched;             /* number of connection ends whose peer is in none of the traces */
	size_t renamed;               /* number of unmatched ends whose peer is in a trace but recorded another address (NAT) */
	/* one of these ends, if possible one with another address: "tcp OWN PEER"; empty if there is none */
	char example[120];
	/* number of matching pairs of ends in which one end read more than the other can have written */
	size_t contradictory;
	char contradiction[120]; /* the first of these pairs, in the form of `example` */
	size_t unwritten;        /* number of reads of bytes without a known write: events are missing or wrong */
	struct weft_clock_bounds **all_bounds;
	size_t all_bounds_count;
};

/* Reads `count` traces from their positions to their ends and rewinds them.  Trace i uses the clock clock_of[i], which is below
 * clock_count; its times multiplied by rates[i] are times of that clock.  TCP connections between two clocks bound their
 * offset.  If several paths lead to the first clock, the path with the narrowest sum of bounds is used.  Connections of a host
 * with itself (127.0.0.1) are ignored, because every host has these addresses. host_of[i] is the host of trace i.  If two hosts
 * claim to have one clock, as containers do, messages between them must not contradict that.
 *
 * Returns WEFT_EINVAL if messages of two hosts contradict each other (clock_bounds.h), or if two hosts with one clock received
 * bytes before they were sent; `err` names the hosts.  Also returns errors of weft_trace_next(), or WEFT_ENOMEM.  On failure
 * nothing needs to be freed. */
int weft_clock_sync_compute(struct weft_clock_sync *out, struct weft_trace *const *traces, size_t count, const uint32_t *clock_of,
    const uint32_t *host_of, const double *rates, size_t clock_count, struct weft_error *err);
void weft_clock_sync_finish(struct weft_clock_sync *clock_sync);

/* Converts a time of a clock to the first clock: the true time is between *low and *high, which may be NULL.  The result is the
 * middle between the bounds.  Takes time logarithmic in the number of messages for each step of the path. */
int64_t weft_clock_sync_time(const struct weft_clock_sync *clock_sync, uint32_t clock, int64_t ns, int64_t *low, int64_t *high);

/* Converts mostly increasing times like weft_clock_sync_time().  The cursors keep the newest results of the first steps of the
 * path; the caller initializes them with zeros. *left_ns is explained at weft_clock_bounds_time_from(). */
enum { WEFT_CLOCK_SYNC_CURSORS = 4 };
int64_t weft_clock_sync_time_from(const struct weft_clock_sync *clock_sync, uint32_t clock, int64_t ns,
    struct weft_clock_bounds_cursor cursors[WEFT_CLOCK_SYNC_CURSORS], int64_t *left_ns);

#endif
