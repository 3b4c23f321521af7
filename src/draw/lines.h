/* lines.h: between lines.c and strips.c.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_LINES_H
#define WEFT_DRAW_LINES_H

#include "draw/frame.h"

/* The verticals of a promise to who made it and to what it became. */
void weft__draw_relations(struct weft__frame *f, uint32_t promise, int y);

/* When a promise ran. */
struct weft_track weft__runs_of(const struct weft__frame *f, const struct weft_promise *p);

/* Intervals between two heights, by density where they are narrow. */
void weft__draw_track(
    struct weft__frame *f, const struct weft_track *t, enum weft_layer layer, enum weft_paint paint, int y0, int y1);

/* Rows that are too low to be drawn one by one, in strips of a few px.  begin forgets the last frame's, false when out of memory.
 */
bool weft__strips_begin(struct weft__frame *f);
void weft__strip_highlight(struct weft__frame *f, int y, double x0, double x1);
void weft__strips_draw(struct weft__frame *f);

#endif
