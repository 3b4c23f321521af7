/* overview.h: the whole trace in a strip: where something was in flight, when the program ran, what failed or never came, what is
 * highlighted, and which part of it a view shows.
 *
 * Coordinates are px from the top left of the strip, which is as wide as it is told; times are ns since the model's start.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_OVERVIEW_H
#define WEFT_DRAW_OVERVIEW_H

#include "draw/draw.h"

#define WEFT_OVERVIEW_PX 60.0 /* a good height */

struct weft_overview;

/* Sums up the trace of a view, whose model and layout must outlive it: linear in promises and running intervals, about 20 ns
 * each; a megabyte or two.  On failure *out is untouched: WEFT_ENOMEM. */
int weft_overview_create(struct weft_overview **out, const struct weft_view *view, struct weft_error *err);
void weft_overview_destroy(struct weft_overview *overview);

/* Takes over what a view highlights: to be called when that has changed.  Linear in promises. */
void weft_overview_highlight(struct weft_overview *overview, const struct weft_view *view);

/* Fills a list with the strip, and the part that the view shows in a frame.  The view is of the same trace.  On failure
 * (WEFT_ENOMEM) the list is empty.  Its time is bounded by the pixels of the strip, all but that of the frame the first time at a
 * size. */
int weft_overview_draw(struct weft_draw_list *list, struct weft_overview *overview, const struct weft_view *view, double width_px,
    double height_px, struct weft_error *err);

/* Between time and x in a strip of that width. */
double weft_overview_x(const struct weft_overview *overview, double width_px, int64_t time_ns);
int64_t weft_overview_time(const struct weft_overview *overview, double width_px, double x_px);

/* What a pointer takes hold of: an end of the frame, the frame, or nothing. */
enum weft_grip { WEFT_GRIP_NONE, WEFT_GRIP_LEFT, WEFT_GRIP_RIGHT, WEFT_GRIP_FRAME };
enum weft_grip weft_overview_grip(
    const struct weft_overview *overview, const struct weft_view *view, double width_px, double x_px);

/* The pointer went from one place to another with that in hand: an end follows it, the frame moves along, and with nothing in
 * hand the frame's middle comes to where it went. */
void weft_overview_drag(const struct weft_overview *overview, struct weft_view *view, double width_px, enum weft_grip grip,
    double from_x_px, double to_x_px);

#endif
