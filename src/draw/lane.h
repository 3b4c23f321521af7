/* lane.h: a strip in the time of a view, with named stretches of time in colours, one after the other.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_LANE_H
#define WEFT_DRAW_LANE_H

#include "draw/draw.h"

#define WEFT_LANE_PX 26.0 /* a good height */

struct weft_lane {
	weft_measure_fn *measure; /* as in weft_draw_options */
	void *measure_ctx;
	size_t count; /* of stretches, which are in order of time and do not overlap */
	int64_t (*start)(void *ctx, size_t stretch);
	int64_t (*end)(void *ctx, size_t stretch);
	enum weft_paint (*paint)(void *ctx, size_t stretch);               /* one on which WEFT_PAINT_BACKGROUND can be read */
	size_t (*name)(void *ctx, size_t stretch, char *buf, size_t size); /* valid UTF-8; its length, as snprintf() */
	void *ctx;
	size_t marked; /* a stretch that is outlined; SIZE_MAX: none */
};

/* Fills a list with a strip as wide as the view.  Of stretches that share a pixel the longest is seen.  On failure (WEFT_ENOMEM)
 * the list is empty.  Logarithmic in stretches, then linear in those that are seen. */
int weft_lane_draw(struct weft_draw_list *list, const struct weft_view *view, double height_px, const struct weft_lane *lane,
    struct weft_error *err);

/* The stretch at a place, or the nearest one within 4 px; SIZE_MAX: none. */
size_t weft_lane_hit(const struct weft_view *view, const struct weft_lane *lane, double x_px);

#endif
