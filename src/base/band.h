/* band.h: all straight lines that pass between two clouds of points, and so what one clock shows when another shows x.
 *
 * Clocks tick evenly, so one is a line over the other: y = f(x).  Whatever is known to have happened before something else gives
 * a point that the line is on one side of: who reads y, then x, then y again knows that f(x) is between the two.  Such lines are
 * a convex set.  Its corners tell how far any of them is from the truth at any time, and nothing is assumed of how long reading
 * took.
 *
 * Integers only, so that results are the same everywhere.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_BAND_H
#define WEFT_BASE_BAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* dy of one clock in dx of the other; dx > 0. */
struct weft_slope {
	int64_t dy, dx;
};

/* Relative to the band's origin. */
struct weft_band_point {
	int64_t x, y;
};

/* The line through the point. */
struct weft_band_line {
	struct weft_band_point through;
	struct weft_slope slope;
};

struct weft_band {
	int64_t x0, y0;
	struct weft_slope least, most;
	WEFT_VEC(struct weft_band_point) above, below;   /* after weft_band_solve() only those that matter */
	WEFT_VEC(struct weft_band_line) highest, lowest; /* the corners of the set, by slope */
};

/* An empty band.  Points are to be within 2^60 of the origin, x0 and y0; the slope is known to be from least to most, whose
 * numbers are below 2^60. */
void weft_band_init(struct weft_band *band, int64_t x0, int64_t y0, struct weft_slope least, struct weft_slope most);
void weft_band_finish(struct weft_band *band);

/* f(x) <= y, and f(x) >= y.  WEFT_ENOMEM; WEFT_EINVAL: too far from the origin, which changes nothing. */
int weft_band_above(struct weft_band *band, int64_t x, int64_t y);
int weft_band_below(struct weft_band *band, int64_t x, int64_t y);

/* Finds all lines; after that nothing is added.  WEFT_EINVAL: there is no such line, or no point on one of the sides: what was
 * said cannot be, or is not enough.  WEFT_ENOMEM.  n log n. */
int weft_band_solve(struct weft_band *band);

/* Of a solved band: f(x) is between *low and *high, as is the result, one line of them, which never goes back.  What does not fit
 * in 64 bits is as far as they go.  low and high may be NULL, which is faster. */
int64_t weft_band_at(const struct weft_band *band, int64_t x, int64_t *low, int64_t *high);

#endif
