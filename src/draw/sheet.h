/* sheet.h: draws a table of texts below a frame.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_SHEET_H
#define WEFT_DRAW_SHEET_H

#include "draw/draw.h"

/* All columns are right-aligned, except the last, which gets the remaining width.  The first row of the table has the column
 * names. */
struct weft_sheet {
	size_t rows, columns;
	const char *const *cells; /* texts of the cells, row by row, in valid UTF-8 */
};

/* Returns the height of the table in px. */
double weft_sheet_px(const struct weft_sheet *sheet);

/* Adds a table below the frame in the draw list; `options` say how its texts are measured.  On failure (WEFT_ENOMEM) the draw
 * list is empty. */
int weft_sheet_draw(
    struct weft_draw_list *list, const struct weft_sheet *sheet, const struct weft_draw_options *options, struct weft_error *err);

#endif
