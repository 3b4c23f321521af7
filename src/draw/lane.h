/* lane.h: a strip on the time axis of a view, with named, coloured intervals in sequence.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_LANE_H
#define WEFT_DRAW_LANE_H

#include "draw/draw.h"

#define WEFT_LANE_PX 26.0 /* recommended height */

struct weft_lane {
	weft_measure_fn *measure; /* as in weft_draw_options */
	void *measure_ctx;
	size_t count; /* of intervals, which are in time order and do not overlap */
	int64_t (*start)(void *ctx, size_t interval);
	int64_t (*end)(void *ctx, size_t interval);
	enum weft_paint (*paint)(void *ctx, size_t interval); /* a colour on which WEFT_PAINT_BACKGROUND is readable */
	size_t (*name)(void *ctx, size_t interval, char *buf, size_t size); /* valid UTF-8; returns its length, as snprintf() */
	void *ctx;
	size_t marked; /* interval with an outline; SIZE_MAX: none */
};

/* Draws a strip as wide as the view.  The longest of the intervals that share a pixel is visible.  On failure (WEFT_ENOMEM) the
 * list is empty.  Logarithmic in intervals, then linear in the visible ones. */
int weft_lane_draw(struct weft_draw_list *list, const struct weft_view *view, double height_px, const struct weft_lane *lane,
    struct weft_error *err);

/* Returns the interval at x_px, or the nearest within 4 px, or SIZE_MAX. */
size_t weft_lane_hit(const struct weft_view *view, const struct weft_lane *lane, double x_px);

#endif
