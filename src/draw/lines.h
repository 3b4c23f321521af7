/* lines.h: declarations shared by lines.c and strips.c.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_LINES_H
#define WEFT_DRAW_LINES_H

#include "draw/frame.h"

#define WEFT__FAILED_PX 48 /* length of the red part before the end of a failed promise */

/* Draws the verticals from a promise to its creator and to the promise it became. */
void weft__draw_relations(struct weft__frame *f, uint32_t promise, int y);

/* Returns the runs of a promise. */
struct weft_intervals weft__runs_of(const struct weft__frame *f, const struct weft_promise *p);

/* The style of intervals between two heights. */
struct weft__interval_style {
	enum weft_layer layer;
	enum weft_paint paint;
	int cell;           /* px: narrower intervals merge */
	int least;          /* px: minimum width of a single interval */
	const int *density; /* opacity by covered part of a cell: [0] exact, [1] to [4] number of quarters */
	int y0, y1;
};
void weft__draw_intervals(struct weft__frame *f, const struct weft_intervals *t, const struct weft__interval_style *look);

/* Draw rows that are too low to be drawn one by one, in strips of a few px.  weft__strips_begin() clears the previous frame's
 * strips, and returns false when out of memory. */
bool weft__strips_begin(struct weft__frame *f);
void weft__strip_highlight(struct weft__frame *f, int y, double x0, double x1);
void weft__strips_draw(struct weft__frame *f);

#endif
