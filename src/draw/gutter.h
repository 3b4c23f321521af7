/* gutter.h: the gutter, a strip left of a frame with the name and kind of each row, a triangle at rows that fold or unfold, and
 * the names of bands, counters and OS threads.
 *
 * A name is always at the height of its row.  If rows are too low for all names, the rows whose promises ran most are named
 * first.  Coordinates are px from the top left of the frame.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_GUTTER_H
#define WEFT_DRAW_GUTTER_H

#include "draw/draw.h"

#define WEFT_GUTTER_PX 192.0     /* usual width */
#define WEFT_GUTTER_MIN_PX 72.0  /* minimum width in px of a gutter, because a narrower gutter cannot hold names */
#define WEFT_GUTTER_FOLD_PX 14.0 /* width in px of the column of triangles at the gutter's left */

/* Returns the width of a gutter in a picture: wanted_px, or the usual width if wanted_px is 0; at least 60 % of the picture is
 * left for the frame.  Returns 0 if the picture is too narrow for a gutter. */
double weft_gutter_px(double wanted_px, double picture_px);

/* Draws the gutter of a frame; the frame must have been drawn with the same options, and with names_beside.  The gutter's list
 * is top_px higher than the frame, for a corner beside a ruler.  On failure (WEFT_ENOMEM) the draw list is empty.  The function
 * takes about 2 us for each row that is drawn as a line. */
int weft_gutter_draw(struct weft_draw_list *list, const struct weft_draw_list *frame, const struct weft_view *view,
    const struct weft_draw_options *options, double width_px, double top_px, struct weft_error *err);

/* Draws a frame and, if gutter_px is not 0, its gutter into one list, for pictures in files: the view is as wide as the frame
 * alone.  In the list, the primitives of the gutter follow those of the frame.  On failure (WEFT_ENOMEM) the draw list is
 * empty. */
int weft_gutter_draw_both(struct weft_draw_list *list, const struct weft_view *view, const struct weft_draw_options *options,
    double gutter_px, struct weft_error *err);

/* Effect of a press of a row's triangle: none, fold or unfold. */
enum weft_gutter_fold { WEFT_GUTTER_NO_FOLD, WEFT_GUTTER_FOLDS, WEFT_GUTTER_UNFOLDS };

/* Returns the promise that names the row at height y_px, or WEFT_NONE, and the effect of the row's triangle. */
uint32_t weft_gutter_promise_at(const struct weft_view *view, double y_px);
enum weft_gutter_fold weft_gutter_fold_of(const struct weft_layout *layout, uint32_t promise);

#endif
