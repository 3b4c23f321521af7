/* line_fit.h: all straight lines that pass between two clouds of points, used to relate two clocks.
 *
 * Clocks tick evenly, so one clock is a linear function of another: y = f(x).  Each known order of two events gives a point on
 * one side of the line: reading y, then x, then y again shows that f(x) is between the two y.  All possible lines form a convex
 * set.  Its corners bound the error of any line at any time, without an assumption about how long reading took.
 *
 * Integers only, so that results are the same on every machine.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_LINE_FIT_H
#define WEFT_BASE_LINE_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* A slope: dy of one clock in dx of the other; dx > 0. */
struct weft_slope {
	int64_t dy, dx;
};

/* A point relative to the fit's origin. */
struct weft_line_fit_point {
	int64_t x, y;
};

/* A line through a point. */
struct weft_line_fit_line {
	struct weft_line_fit_point through;
	struct weft_slope slope;
};

struct weft_line_fit {
	int64_t x0, y0;
	struct weft_slope least, most;
	WEFT_VEC(struct weft_line_fit_point) above, below;   /* after weft_line_fit_solve() only the points that matter */
	WEFT_VEC(struct weft_line_fit_line) highest, lowest; /* corners of the set, by slope */
};

/* Initialises an empty fit.  Points must be within 2^60 of the origin (x0, y0).  The slope is known to be from least to most,
 * whose numbers are below 2^60. */
void weft_line_fit_init(struct weft_line_fit *fit, int64_t x0, int64_t y0, struct weft_slope least, struct weft_slope most);
void weft_line_fit_finish(struct weft_line_fit *fit);

/* Add the facts f(x) <= y and f(x) >= y.  Return WEFT_ENOMEM, or WEFT_EINVAL if the point is too far from the origin; then
 * nothing changes. */
int weft_line_fit_add_above(struct weft_line_fit *fit, int64_t x, int64_t y);
int weft_line_fit_add_below(struct weft_line_fit *fit, int64_t x, int64_t y);

/* Finds all lines; no point can be added afterwards.  Returns WEFT_EINVAL if there is no such line (the facts contradict each
 * other) or no point on one of the sides; WEFT_ENOMEM.  Takes n log n. */
int weft_line_fit_solve(struct weft_line_fit *fit);

/* Evaluates a solved fit: f(x) is between *low and *high, as is the result, which is a non-decreasing line of the set. Values
 * saturate at 64 bits.  low and high may be NULL, which is faster. */
int64_t weft_line_fit_at(const struct weft_line_fit *fit, int64_t x, int64_t *low, int64_t *high);

#endif
