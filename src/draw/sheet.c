/* sheet.c: draws a table of texts.  SPDX-License-Identifier: ISC */
#include "draw/sheet.h"

#include <string.h>

#include "draw/frame.h"

enum { ROW_PX = 18, BASELINE_PX = 13, MARGIN_PX = 10, GAP_PX = 18, CELL_BYTES = 256 };

static const char *cell_text(const struct weft_sheet *sheet, size_t row, size_t column)
{
	return sheet->cells[row * sheet->columns + column];
}

static enum weft_font font_of(size_t row)
{
	return row == 0 ? WEFT_FONT_BOLD : WEFT_FONT_LABEL;
}

double weft_sheet_px(const struct weft_sheet *sheet)
{
	return MARGIN_PX + (double)sheet->rows * ROW_PX;
}

static void draw_cell(struct weft__frame *f, size_t row, const char *text, double x, double y, double width, size_t len)
{
	weft__list_text(
	    f, row == 0 ? WEFT_PAINT_AXIS_TEXT : WEFT_PAINT_LABEL, x, y, (struct weft__writing){font_of(row), text, len, width});
}

static double width_of(struct weft__frame *f, const struct weft_sheet *sheet, size_t row, size_t column)
{
	const char *text = cell_text(sheet, row, column);
	return weft__text_width(f, font_of(row), text, strlen(text));
}

/* Draws a right-aligned column.  Returns the x at which the next column begins. */
static double draw_column(struct weft__frame *f, const struct weft_sheet *sheet, size_t column, double x, double top)
{
	double widest = 0;
	for (size_t row = 0; row < sheet->rows; row++) {
		const double width = width_of(f, sheet, row, column);
		widest = width > widest ? width : widest;
	}
	for (size_t row = 0; row < sheet->rows; row++) {
		const char *text = cell_text(sheet, row, column);
		const double width = width_of(f, sheet, row, column);
		draw_cell(f, row, text, x + widest - width, top + (double)row * ROW_PX + BASELINE_PX, width, strlen(text));
	}
	return x + widest + GAP_PX;
}

static void draw_last_column(struct weft__frame *f, const struct weft_sheet *sheet, double x, double top)
{
	for (size_t row = 0; row < sheet->rows; row++) {
		char text[CELL_BYTES];
		double width = 0;
		const char *whole = cell_text(sheet, row, sheet->columns - 1);
		size_t len = strnlen(whole, sizeof text - 4);
		memcpy(text, whole, len);
		len = weft__text_fit(f, font_of(row), text, len, sizeof text, f->width - MARGIN_PX - x, &width);
		if (len > 0)
			draw_cell(f, row, text, x, top + (double)row * ROW_PX + BASELINE_PX, width, len);
	}
}

static void draw_sheet(struct weft__frame *f, const void *what, int top)
{
	const struct weft_sheet *sheet = what;
	double x = MARGIN_PX;
	for (size_t column = 0; column + 1 < sheet->columns; column++)
		x = draw_column(f, sheet, column, x, top + MARGIN_PX / 2.0);
	draw_last_column(f, sheet, x, top + MARGIN_PX / 2.0);
}

int weft_sheet_draw(
    struct weft_draw_list *list, const struct weft_sheet *sheet, const struct weft_draw_options *options, struct weft_error *err)
{
	return weft__frame_append(list, weft_sheet_px(sheet), options, draw_sheet, sheet, err);
}
