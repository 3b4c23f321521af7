/* pixels.h: paints a draw list, except for its texts, into an image.  For dense draw lists, painting pixels is faster than the
 * calls of any canvas.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_PIXELS_H
#define WEFT_DRAW_PIXELS_H

#include "draw/draw.h"

/* An image, or a part of an image.  A pixel is 0xAARRGGBB with premultiplied alpha; if is_rgba, the pixel's bytes are red,
 * green, blue, alpha, as in an HTML canvas. */
struct weft_pixels {
	void *data;
	ptrdiff_t stride;   /* number of bytes from one line of pixels to the next */
	int x0, y0, x1, y1; /* clip rectangle */
	double x, y;        /* position of the draw list's origin in the image */
	double scale;       /* number of pixels for each px of the draw list */
	bool is_rgba;
};

/* Fills the image's clip rectangle with one colour. */
void weft_pixels_fill(const struct weft_pixels *pixels, enum weft_theme theme, enum weft_paint paint);

/* Draws the primitives from index `first` up to the next text.  Returns the index of that text, or the number of primitives. */
size_t weft_pixels_draw(const struct weft_pixels *pixels, const struct weft_draw_list *list, size_t first, enum weft_theme theme);

#endif
