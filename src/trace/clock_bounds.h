/* clock_bounds.h: bounds of the offset between two clocks, from messages.
 *
 * A message that left at x by the sender's clock and arrived at y by the receiver's clock is an upper bound: the receiver's clock
 * showed at most y when the sender's showed x.  Messages in the other direction are lower bounds.  Two clocks drift by at most
 * 500 ppm, so each message bounds the offset at all times, less tightly at distant times.  Nothing else is assumed, except about
 * two counters (clock_drift.h): within these limits the rate of a clock may change freely.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_CLOCK_BOUNDS_H
#define WEFT_TRACE_CLOCK_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/status.h>

#include "base/error.h"

/* 1/WEFT_INVERSE_MAX_DRIFT is the maximum drift between two clocks: 500 ppm. */
#define WEFT_INVERSE_MAX_DRIFT 2000

/* Bytes that went from one host to another. local_ns is by the clock that is aligned, remote_ns by the other clock. */
struct weft_clock_message {
	int64_t local_ns, remote_ns;
	bool is_sent_locally; /* true: sent by the clock that is aligned */
};

struct weft_clock_bounds;

/* Bounds the offset of a clock by `count` messages in any order, which stay the caller's. have_counter_clocks: both clocks are
 * counters.
 *
 * A send time must not be later than the real sending, and a receive time not earlier than the real receipt.  WEFT_ENOTFOUND: one
 * direction has no messages.  WEFT_EINVAL: the messages contradict each other, because a round trip took negative time.
 * Possible reasons: a send time was taken after the call, a receive time before it, or a clock was set.  WEFT_ENOMEM. n log n. */
int weft_clock_bounds_create(struct weft_clock_bounds **out, const struct weft_clock_message *messages, size_t count,
    bool have_counter_clocks, struct weft_error *err);
void weft_clock_bounds_destroy(struct weft_clock_bounds *clock_bounds);

/* Converts a time of the aligned clock to the other clock: the true time is between *low and *high, either of which may be NULL.
 * The result is the middle: it never decreases as ns increases, and no message arrives more than 2 ns before it was sent.
 * Logarithmic. */
int64_t weft_clock_bounds_time(const struct weft_clock_bounds *clock_bounds, int64_t ns, int64_t *low, int64_t *high);

/* State for conversions of mostly increasing times; zero at first.  In increasing order each conversion takes constant time.
 * *left_ns is lowered to the number of ns for which the difference between ns and the result stays the same, the first ns
 * included. */
struct weft_clock_bounds_cursor {
	size_t above, below;
	int64_t from, until;    /* in this range the sum of both bounds is a line: */
	int64_t scaled_sum, by; /* its value at `from` in ns / WEFT_INVERSE_MAX_DRIFT, and its slope per ns */
};
int64_t weft_clock_bounds_time_from(
    const struct weft_clock_bounds *clock_bounds, int64_t ns, struct weft_clock_bounds_cursor *cursor, int64_t *left_ns);

/* Computes the distance between the bounds: the minimum, and the average between the first and the last message. */
void weft_clock_bounds_width(const struct weft_clock_bounds *clock_bounds, int64_t *least_ns, int64_t *average_ns);

#endif
