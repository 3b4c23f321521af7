/* pixels.h: paints a draw list without its texts into an image.  For dense lists this is faster than the calls of any canvas.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_PIXELS_H
#define WEFT_DRAW_PIXELS_H

#include "draw/draw.h"

/* An image, or a part of one.  A pixel is 0xAARRGGBB with premultiplied alpha; if is_rgba, its bytes are red, green, blue,
 * alpha, as in a canvas. */
struct weft_pixels {
	void *data;
	ptrdiff_t stride;   /* bytes from one line of pixels to the next */
	int x0, y0, x1, y1; /* clip rectangle */
	double x, y;        /* position of the list's origin */
	double scale;       /* pixels for each px of the list */
	bool is_rgba;
};

/* Fills the clip rectangle with one colour. */
void weft_pixels_fill(const struct weft_pixels *pixels, enum weft_theme theme, enum weft_paint paint);

/* Draws the primitives from `first` up to the next text.  Returns the index of that text, or the number of primitives. */
size_t weft_pixels_draw(const struct weft_pixels *pixels, const struct weft_draw_list *list, size_t first, enum weft_theme theme);

#endif
