/* lines.h: between lines.c and strips.c.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_LINES_H
#define WEFT_DRAW_LINES_H

#include "draw/frame.h"

#define WEFT__FAILED_PX 48 /* before its end, the line of a promise that failed is red */

/* The verticals of a promise to who made it and to what it became. */
void weft__draw_relations(struct weft__frame *f, uint32_t promise, int y);

/* When a promise ran. */
struct weft_intervals weft__runs_of(const struct weft__frame *f, const struct weft_promise *p);

/* How intervals between two heights are drawn. */
struct weft__look {
	enum weft_layer layer;
	enum weft_paint paint;
	int cell;           /* px: narrower ones are merged */
	int least;          /* px: width of a single one */
	const int *density; /* alpha by what part of a cell is covered: [0] all, [1] to [4] that many quarters */
	int y0, y1;
};
void weft__draw_intervals(struct weft__frame *f, const struct weft_intervals *t, const struct weft__look *look);

/* Rows that are too low to be drawn one by one, in strips of a few px.  begin forgets the last frame's, false when out of memory.
 */
bool weft__strips_begin(struct weft__frame *f);
void weft__strip_highlight(struct weft__frame *f, int y, double x0, double x1);
void weft__strips_draw(struct weft__frame *f);

#endif
