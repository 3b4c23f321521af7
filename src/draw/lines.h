/* lines.h: declarations that lines.c and strips.c share.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_LINES_H
#define WEFT_DRAW_LINES_H

#include "draw/frame.h"

#define WEFT__FAILED_PX 48 /* length in px of the red part before the end of a failed promise */

/* Draws the vertical lines from a promise to its creator and to the promise that it became. */
void weft__draw_relations(struct weft__frame *f, uint32_t promise, int y);

/* Returns the runs of a promise. */
struct weft_intervals weft__runs_of(const struct weft__frame *f, const struct weft_promise *p);

/* Style in which intervals between two heights are drawn. */
struct weft__interval_style {
	enum weft_layer layer;
	enum weft_paint paint;
	int cell;  /* px: narrower intervals merge */
	int least; /* minimum width in px of a single interval */
	/* Opacity by the covered part of a cell: [0] for an exact interval, [1] to [4] for the number of quarters. */
	const int *density;
	int y0, y1;
};
void weft__draw_intervals(struct weft__frame *f, const struct weft_intervals *t, const struct weft__interval_style *look);

/* Draw the rows that are too low to be drawn one by one, in strips of a few px. weft__strips_begin() clears the previous frame's
 * strips, and returns false without memory. */
bool weft__strips_begin(struct weft__frame *f);
void weft__strip_highlight(struct weft__frame *f, int y, double x0, double x1);
void weft__strips_draw(struct weft__frame *f);

#endif
