/* lane.h: draws a strip on the time axis of a view, with named, coloured intervals in sequence.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_LANE_H
#define WEFT_DRAW_LANE_H

#include "draw/draw.h"

#define WEFT_LANE_PX 26.0 /* recommended height */

struct weft_lane {
	weft_measure_fn *measure; /* as in weft_draw_options */
	void *measure_ctx;
	size_t count; /* number of intervals, which are in time order and do not overlap */
	int64_t (*start)(void *ctx, size_t interval);
	int64_t (*end)(void *ctx, size_t interval);
	/* Returns the colour of an interval, on which WEFT_PAINT_BACKGROUND must be readable. */
	enum weft_paint (*paint)(void *ctx, size_t interval);
	/* Writes the name of an interval as valid UTF-8; returns the name's length, as snprintf() does. */
	size_t (*name)(void *ctx, size_t interval, char *buf, size_t size);
	void *ctx;
	size_t marked; /* index of the interval with an outline; SIZE_MAX: none */
};

/* Draws a strip of intervals that is as wide as the view.  The longest of the intervals that share a pixel is visible.  On
 * failure (WEFT_ENOMEM) the draw list is empty.  The time is logarithmic in the number of intervals, plus linear in the number
 * of visible intervals. */
int weft_lane_draw(struct weft_draw_list *list, const struct weft_view *view, double height_px, const struct weft_lane *lane,
    struct weft_error *err);

/* Returns the interval at x_px, or the nearest interval within 4 px, or SIZE_MAX. */
size_t weft_lane_hit(const struct weft_view *view, const struct weft_lane *lane, double x_px);

#endif
