/* overview.h: draws a strip that shows the whole trace: promises in flight, running time, failures and promises that never
 * resolved, highlights, and the interval that a view shows.
 *
 * Coordinates are px from the top left of the strip; the caller chooses its width; times are ns since the model's start.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_OVERVIEW_H
#define WEFT_DRAW_OVERVIEW_H

#include "draw/draw.h"

#define WEFT_OVERVIEW_PX 60.0 /* recommended height */

struct weft_overview;

/* Creates the sums of the trace in a view; the view's model and layout must outlive the overview.  The time is linear in
 * promises and runs, about 20 ns each; the memory is 1 to 2 MB.  On failure (WEFT_ENOMEM) *out is unchanged. */
int weft_overview_create(struct weft_overview **out, const struct weft_view *view, struct weft_error *err);
void weft_overview_destroy(struct weft_overview *overview);

/* Copies the highlights of a view into the overview.  Call this function after the highlights change.  Linear in promises. */
void weft_overview_highlight(struct weft_overview *overview, const struct weft_view *view);

/* Draws the strip into a draw list, with a frame around the interval that the view shows.  The view must show the same trace as
 * the overview.  On failure (WEFT_ENOMEM) the draw list is empty.  The time is limited by the number of the strip's pixels; if
 * the size is unchanged, only the frame is drawn again. */
int weft_overview_draw(struct weft_draw_list *list, struct weft_overview *overview, const struct weft_view *view, double width_px,
    double height_px, struct weft_error *err);

/* Convert between a time and an x in a strip of that width. */
double weft_overview_x(const struct weft_overview *overview, double width_px, int64_t time_ns);
int64_t weft_overview_time(const struct weft_overview *overview, double width_px, double x_px);

/* Part of the strip that a pointer has grabbed: an end of the frame, the whole frame, or nothing. */
enum weft_grip { WEFT_GRIP_NONE, WEFT_GRIP_LEFT, WEFT_GRIP_RIGHT, WEFT_GRIP_FRAME };
enum weft_grip weft_overview_grip(
    const struct weft_overview *overview, const struct weft_view *view, double width_px, double x_px);

/* Handles a drag.  A grabbed end follows the pointer, and a grabbed frame moves with the pointer; if nothing was grabbed, the
 * frame's middle moves to the pointer. */
void weft_overview_drag(const struct weft_overview *overview, struct weft_view *view, double width_px, enum weft_grip grip,
    double from_x_px, double to_x_px);

#endif
