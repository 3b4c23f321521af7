/* pixels.h: a draw list as pixels, but for its texts: what is dense costs less so than by any canvas's calls.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_PIXELS_H
#define WEFT_DRAW_PIXELS_H

#include "draw/draw.h"

/* An image, or a part of one.  A pixel is 0xAARRGGBB with colours multiplied by alpha; or, `is_rgba`, its bytes are red, green,
 * blue and alpha, as those of a canvas are. */
struct weft_pixels {
	void *data;
	ptrdiff_t stride;   /* bytes from one line of pixels to the next */
	int x0, y0, x1, y1; /* what of the image is drawn on */
	double x, y;        /* where the list's origin is, */
	double scale;       /* and how many pixels one of its px is */
	bool is_rgba;
};

/* Fills all of it with one colour. */
void weft_pixels_fill(const struct weft_pixels *pixels, enum weft_theme theme, enum weft_paint paint);

/* Draws the primitives from `first` up to the next text, and returns the place of that, or how many there are. */
size_t weft_pixels_draw(const struct weft_pixels *pixels, const struct weft_draw_list *list, size_t first, enum weft_theme theme);

#endif
