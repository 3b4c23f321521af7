/* gutter.h: a strip left of a frame with the name and kind of each row, a triangle at rows that fold or unfold, and the names of
 * bands, counters and OS threads.
 *
 * A name is always at the height of its row.  If rows are too low for all names, rows on which most ran get theirs first.
 * Coordinates are px from the top left of the frame.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_GUTTER_H
#define WEFT_DRAW_GUTTER_H

#include "draw/draw.h"

#define WEFT_GUTTER_PX 192.0     /* usual width */
#define WEFT_GUTTER_MIN_PX 72.0  /* a narrower one cannot hold names */
#define WEFT_GUTTER_FOLD_PX 14.0 /* width of the column of triangles, at the left */

/* Returns the width of a gutter in a picture, which leaves at least 60 % of it to the frame: wanted_px, or the usual width if
 * that is 0.  Returns 0 if the picture is too narrow for a gutter. */
double weft_gutter_px(double wanted_px, double picture_px);

/* Draws the gutter of a frame that was drawn with these options and names_beside.  The list is top_px higher than the frame, for
 * a corner beside a ruler.  On failure (WEFT_ENOMEM) the list is empty.  Takes about 2 us per row that is drawn as a line. */
int weft_gutter_draw(struct weft_draw_list *list, const struct weft_draw_list *frame, const struct weft_view *view,
    const struct weft_draw_options *options, double width_px, double top_px, struct weft_error *err);

/* Draws a frame and, if gutter_px is not 0, its gutter into one list, for pictures in files: the view is as wide as the frame
 * alone.  The primitives of the gutter follow those of the frame.  On failure (WEFT_ENOMEM) the list is empty. */
int weft_gutter_draw_both(struct weft_draw_list *list, const struct weft_view *view, const struct weft_draw_options *options,
    double gutter_px, struct weft_error *err);

/* The effect of a press of the triangle of a row. */
enum weft_gutter_fold { WEFT_GUTTER_NO_FOLD, WEFT_GUTTER_FOLDS, WEFT_GUTTER_UNFOLDS };

/* Returns the promise that names the row at a height, or WEFT_NONE, and the effect of its triangle. */
uint32_t weft_gutter_promise_at(const struct weft_view *view, double y_px);
enum weft_gutter_fold weft_gutter_fold_of(const struct weft_layout *layout, uint32_t promise);

#endif
