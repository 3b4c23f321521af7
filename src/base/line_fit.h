/* line_fit.h: finds all straight lines that pass between two sets of points, which is used to relate two clocks.
 *
 * Clocks run evenly, so one clock is a linear function of another: y = f(x).  Each known order of two events gives a point
 * above or below the line: if a program reads clock y, then clock x, then clock y again, f(x) is between the two y.  All
 * possible lines form a convex set.  The corners of that set bound the error of any line at any time, without an assumption
 * about how long the reading of a clock took.
 *
 * The code uses only integers, so that results are the same on every machine.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_LINE_FIT_H
#define WEFT_BASE_LINE_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* A slope: one clock advances by dy while the other advances by dx; dx > 0. */
struct weft_slope {
	int64_t dy, dx;
};

/* A point, relative to the origin of the fit. */
struct weft_line_fit_point {
	int64_t x, y;
};

/* A line, given by a point and a slope. */
struct weft_line_fit_line {
	struct weft_line_fit_point through;
	struct weft_slope slope;
};

struct weft_line_fit {
	int64_t x0, y0;
	struct weft_slope least, most;
	/* the points above the line and the points below it; after weft_line_fit_solve() only the points that matter */
	WEFT_VEC(struct weft_line_fit_point) above, below;
	WEFT_VEC(struct weft_line_fit_line) highest, lowest; /* corners of the set of possible lines, sorted by slope */
};

/* Initialises an empty fit.  Points must be at most 2^60 from the origin (x0, y0).  The slope is known to be between `least`
 * and `most`, whose dx and dy must be below 2^60. */
void weft_line_fit_init(struct weft_line_fit *fit, int64_t x0, int64_t y0, struct weft_slope least, struct weft_slope most);
void weft_line_fit_finish(struct weft_line_fit *fit);

/* Add the fact f(x) <= y, or the fact f(x) >= y.  Return WEFT_ENOMEM, or WEFT_EINVAL if the point is too far from the origin;
 * then nothing changes. */
int weft_line_fit_add_above(struct weft_line_fit *fit, int64_t x, int64_t y);
int weft_line_fit_add_below(struct weft_line_fit *fit, int64_t x, int64_t y);

/* Finds all possible lines; no point can be added afterwards.  Returns WEFT_EINVAL if there is no possible line (the facts
 * contradict each other) or no point on one of the sides; WEFT_ENOMEM when out of memory.  Takes n log n. */
int weft_line_fit_solve(struct weft_line_fit *fit);

/* Evaluates a solved fit: the true f(x) is between *low and *high; the result is between them too, and is a non-decreasing line
 * of the set. The values are limited to 64 bits. low and high may be NULL, which is faster. */
int64_t weft_line_fit_at(const struct weft_line_fit *fit, int64_t x, int64_t *low, int64_t *high);

#endif
