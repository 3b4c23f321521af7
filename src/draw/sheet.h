/* sheet.h: a table of texts, drawn below a frame.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_SHEET_H
#define WEFT_DRAW_SHEET_H

#include "draw/draw.h"

/* Columns stand at their right ends, but for the last, which has what is left.  The first row has their names. */
struct weft_sheet {
	size_t rows, columns;
	const char *const *cells; /* row by row; valid UTF-8 */
};

/* How high it is drawn. */
double weft_sheet_px(const struct weft_sheet *sheet);

/* Makes the frame in the list higher by a table, whose texts are measured as `options` say.  WEFT_ENOMEM: the list is empty. */
int weft_sheet_draw(
    struct weft_draw_list *list, const struct weft_sheet *sheet, const struct weft_draw_options *options, struct weft_error *err);

#endif
