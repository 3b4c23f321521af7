/* tie.h: what one clock shows when another shows something, as far as messages tell.
 *
 * Whoever gets a message at y of his clock, which left at x of the other's, knows that his showed y at most when the other showed
 * x.  Messages the other way tell what it showed at least.  Clocks gain or lose 500 ppm on each other at most: so each message
 * tells something of all times, the less the farther away.  Nothing else is assumed, but of two counters (steady.h): other clocks
 * may bend as they like within that.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_TIE_H
#define WEFT_TRACE_TIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/status.h>

#include "base/error.h"

/* 1/WEFT_TIE_RATE is the most that a clock gains or loses on another: 500 ppm. */
#define WEFT_TIE_RATE 2000

/* Bytes that went from one host to the other: by the clock of the one that is tied, `mine`, and by the other's. */
struct weft_tie_message {
	int64_t mine_ns, other_ns;
	bool is_mine; /* sent by the clock that is tied, and received by the other */
};

struct weft_tie;

/* Ties a clock by `count` messages in any order, which stay the caller's.  are_steady: both clocks are counters.
 *
 * Of each the time at which it was sent is not later than it was, and the time of receipt not earlier.  WEFT_ENOTFOUND: there are
 * none in one of the two directions.  WEFT_EINVAL: they cannot be true, since there and back took less than no time: what was
 * sent has its time after the call, or what was received before it, or a clock was set meanwhile.  WEFT_ENOMEM.  n log n. */
int weft_tie_create(
    struct weft_tie **out, const struct weft_tie_message *messages, size_t count, bool are_steady, struct weft_error *err);
void weft_tie_destroy(struct weft_tie *tie);

/* What the other clock shows when the one that is tied shows ns: between *low and *high, either of which may be NULL.  The result
 * is half way between: it never goes back as ns goes on, and no message comes more than 2 ns before it was sent.  Logarithmic. */
int64_t weft_tie_time(const struct weft_tie *tie, int64_t ns, int64_t *low, int64_t *high);

/* The same for times that go on, mostly: where it was asked last, 0 at first.  Constant, where they do.  *left_ns becomes less if
 * what is between ns and the result stays so for less than that many ns, the first one included. */
struct weft_tie_cursor {
	size_t above, below;
	int64_t from, until;  /* between these the sum of both bounds is a line ... */
	int64_t sum_2000, by; /* ... of that value at `from`, in ns / WEFT_TIE_RATE, which grows by so much each ns */
};
int64_t weft_tie_time_from(const struct weft_tie *tie, int64_t ns, struct weft_tie_cursor *cursor, int64_t *left_ns);

/* The bound, high less low, at its narrowest and on average between the first message and the last. */
void weft_tie_width(const struct weft_tie *tie, int64_t *least_ns, int64_t *average_ns);

#endif
