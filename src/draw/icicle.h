/* icicle.h: sums, and what they are made of below them, each as wide as its share: a flame graph upside down.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_ICICLE_H
#define WEFT_DRAW_ICICLE_H

#include "draw/draw.h"

#define WEFT_ICICLE_ROW_PX 18.0

struct weft_icicle_part {
	uint32_t depth;           /* 0: the first, which has all others below it */
	int64_t start_ns, sum_ns; /* inside those of what is above it */
	int64_t own_ns;           /* of the sum: nothing below has it */
	const char *name;         /* any bytes */
};

struct weft_icicle {
	weft_measure_fn *measure; /* as in weft_draw_options */
	void *measure_ctx;
	size_t count; /* of parts */
	struct weft_icicle_part (*part)(void *ctx, size_t part);
	void *ctx;
	size_t root;       /* the part that has all the width; what is above it has it, too */
	uint32_t deepest;  /* of all parts */
	size_t marked;     /* a part that is outlined; SIZE_MAX: none */
	bool runs;         /* it is about time in which code ran, not about time that was waited */
	const char *title; /* what it is about: written where the first part stands; valid UTF-8 */
};

/* How high it is, if there is so much room; at least two rows. */
double weft_icicle_px(const struct weft_icicle *icicle, double room_px);

/* Fills a list with it; parts that share a pixel are one strip.  WEFT_ENOMEM: the list is empty.  Linear in parts. */
int weft_icicle_draw(
    struct weft_draw_list *list, double width_px, double height_px, const struct weft_icicle *icicle, struct weft_error *err);

/* Makes the frame in the list so much higher, and draws it there. */
int weft_icicle_append(struct weft_draw_list *list, double height_px, const struct weft_icicle *icicle, struct weft_error *err);

/* The part at a point of it; SIZE_MAX: none. */
size_t weft_icicle_hit(const struct weft_icicle *icicle, double width_px, double height_px, double x_px, double y_px);

#endif
