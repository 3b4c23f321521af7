/* sheet.h: a table of texts, drawn below a frame.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_SHEET_H
#define WEFT_DRAW_SHEET_H

#include "draw/draw.h"

/* Columns are right-aligned, except the last, which gets the remaining width.  The first row has the column names. */
struct weft_sheet {
	size_t rows, columns;
	const char *const *cells; /* row by row; valid UTF-8 */
};

/* Returns the height of the table. */
double weft_sheet_px(const struct weft_sheet *sheet);

/* Adds a table below the frame in the list; its texts are measured as `options` say.  On failure (WEFT_ENOMEM) the list is
 * empty. */
int weft_sheet_draw(
    struct weft_draw_list *list, const struct weft_sheet *sheet, const struct weft_draw_options *options, struct weft_error *err);

#endif
