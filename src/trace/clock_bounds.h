/* clock_bounds.h: computes bounds of the offset between two clocks from messages.
 *
 * A message that left at x by the sender's clock and arrived at y by the receiver's clock gives an upper bound: the receiver's
 * clock showed at most y when the sender's clock showed x.  Messages in the other direction give lower bounds.  Two clocks
 * drift by at most 500 ppm, so each message bounds the offset at all times, but less tightly at distant times.  Nothing else is
 * assumed, except about two counters (clock_drift.h): within these limits the rate of a clock may change freely.
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

/* Bytes that went from one host to another. local_ns is a time of the clock that is aligned, remote_ns of the other clock. */
struct weft_clock_message {
	int64_t local_ns, remote_ns;
	bool is_sent_locally; /* true if the host with the aligned clock sent the bytes */
};

struct weft_clock_bounds;

/* Computes bounds of a clock's offset from `count` messages in any order, which the caller still owns. have_counter_clocks says
 * that both clocks are CPU counters.
 *
 * A send time must not be later than the actual sending, and a receive time must not be earlier than the actual receipt.
 * Returns WEFT_ENOTFOUND if one direction has no messages.  Returns WEFT_EINVAL if the messages contradict each other, because
 * a round trip took negative time.  Possible reasons are that a send time was taken after the call, that a receive time was
 * taken before the call, or that a clock was set.  WEFT_ENOMEM. n log n. */
int weft_clock_bounds_create(struct weft_clock_bounds **out, const struct weft_clock_message *messages, size_t count,
    bool have_counter_clocks, struct weft_error *err);
void weft_clock_bounds_destroy(struct weft_clock_bounds *clock_bounds);

/* Converts a time of the aligned clock to the other clock: the true time is between *low and *high, either of which may be
 * NULL.  The result is the middle between the bounds: it never decreases as ns increases, and no message arrives more than 2 ns
 * before it was sent.  Logarithmic. */
int64_t weft_clock_bounds_time(const struct weft_clock_bounds *clock_bounds, int64_t ns, int64_t *low, int64_t *high);

/* State for conversions of mostly increasing times, which the caller initializes with zeros.  Conversions of increasing times
 * take constant time each. *left_ns is lowered to the number of ns, counted from ns on, for which the result grows as fast as
 * the converted time. */
struct weft_clock_bounds_cursor {
	size_t above, below;
	int64_t from, until;    /* range in which the sum of both bounds is a straight line */
	int64_t scaled_sum, by; /* value of that line at `from` in ns / WEFT_INVERSE_MAX_DRIFT; its slope per ns */
};
int64_t weft_clock_bounds_time_from(
    const struct weft_clock_bounds *clock_bounds, int64_t ns, struct weft_clock_bounds_cursor *cursor, int64_t *left_ns);

/* Computes the distance between the bounds: its minimum, and its average between the first and the last message. */
void weft_clock_bounds_width(const struct weft_clock_bounds *clock_bounds, int64_t *least_ns, int64_t *average_ns);

#endif
