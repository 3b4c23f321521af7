/* frame.c: frame TRACE WIDTH HEIGHT PLACE prints the canvas calls with which the page must draw the trace at this place.
 * SPDX-License-Identifier: ISC */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "draw/pixels.h"
#include "viewer/compare.h"

/* Prints a call in the form of overhear() in drive.mjs. */
static double measure(void *ctx, enum weft_font font, const char *text, size_t len)
{
	double width = 0;
	(void)ctx;
	(void)font;
	for (size_t n; len > 0 && (n = weft_utf8_char_bytes((const unsigned char *)text, len)) > 0; text += n, len -= n)
		width += 7;
	return width;
}

static void print_colour(const char *what, enum weft_paint paint, int alpha)
{
	uint32_t rgb = weft_theme_rgb(WEFT_THEME_LIGHT, paint);
	printf("%s %u %u %u %d", what, rgb >> 16, rgb >> 8 & 255, rgb & 255, alpha);
}

static void print_prim(const struct weft_draw_list *list, const struct weft_prim *p)
{
	static const char *const words[] = {
	    [WEFT_PRIM_RECT] = "rect", [WEFT_PRIM_LINE] = "line", [WEFT_PRIM_TRIANGLE] = "head", [WEFT_PRIM_TEXT] = "text"};
	double x0 = p->x0, y0 = p->y0, x1 = p->x1, y1 = p->y1;
	print_colour(words[p->kind], p->paint, p->alpha);
	switch ((enum weft_prim_kind)p->kind) {
	case WEFT_PRIM_RECT: printf(" %.3f %.3f %.3f %.3f\n", x0, y0, x1 - x0, y1 - y0); break;
	case WEFT_PRIM_LINE: printf(" %.3f %.3f %.3f %.3f %.3f\n", (double)p->width, x0, y0, x1, y1); break;
	case WEFT_PRIM_TRIANGLE: {
		double dx = x1 - x0, dy = y1 - y0, half = (double)p->width / hypot(dx, dy);
		printf(
		    " %.3f %.3f %.3f %.3f %.3f %.3f\n", x0, y0, x1 - dy * half, y1 + dx * half, x1 + dy * half, y1 - dx * half);
		break;
	}
	case WEFT_PRIM_TEXT:
		printf(" %s%g %.3f %.3f %.*s\n", p->font == WEFT_FONT_BOLD ? "bold " : "", weft_font_px((enum weft_font)p->font),
		    x0, y0, (int)p->count, list->text + p->first);
		break;
	}
}

static int round_px(double px)
{
	return (int)(px + 0.5);
}

/* The picture and the gutter, each up to its first text; sets which primitive that is. */
static void print_pixels(const struct weft_viewer *v, size_t drawn[WEFT_PANES])
{
	const int width = (int)v->width_px, height = (int)v->height_px;
	const size_t size = (size_t)width * (size_t)height * 4;
	unsigned char *data = malloc(size);
	if (!data)
		return;
	const struct weft_pixels whole = {
	    .data = data, .stride = width * 4, .x1 = width, .y1 = height, .scale = 1, .is_rgba = true};
	weft_pixels_fill(&whole, WEFT_THEME_LIGHT, WEFT_PAINT_BACKGROUND);
	for (int i = WEFT_PANE_PICTURE; i <= WEFT_PANE_GUTTER; i++) {
		const struct weft_pane *pane = &v->panes[i];
		struct weft_pixels part = whole;
		part.x = part.x0 = round_px(pane->x_px);
		part.x1 = round_px(pane->x_px + pane->width_px);
		part.y = part.y0 = round_px(pane->y_px);
		part.y1 = round_px(pane->y_px + pane->height_px);
		drawn[i] = weft_pixels_draw(&part, pane->list, 0, WEFT_THEME_LIGHT);
	}
	uint32_t sum = 0;
	for (size_t i = 0; i < size; i++)
		sum = (sum ^ data[i]) * 16777619;
	printf("pixels %d %d %u\n", width, height, sum);
	free(data);
}

/* The page has two canvases: one for the picture with the gutter and its ground, one for the rest. */
static void print_canvas(const struct weft_viewer *v, bool picture)
{
	size_t drawn[WEFT_PANES] = {0};
	if (picture)
		print_pixels(v, drawn);
	for (int i = 0; i < WEFT_PANES; i++) {
		const struct weft_pane *pane = &v->panes[i];
		if ((i <= WEFT_PANE_GUTTER) != picture)
			continue;
		printf("at %.3f %.3f\n", pane->x_px, pane->y_px);
		for (size_t k = drawn[i]; k < pane->list->count; k++)
			print_prim(pane->list, &pane->list->prims[k]);
	}
}

int main(int argc, char **argv)
{
	struct weft_trace *trace;
	struct weft_viewer *viewer;
	struct weft_compare all = {0};
	struct weft_error err;
	if (argc != 5)
		return 2;
	if (weft_trace_open(&trace, argv[1], &err) < 0 || weft_viewer_open(&viewer, trace, NULL, &err) < 0 ||
	    weft_compare_add(&all, viewer, &err) < 0)
		return 1;
	weft_compare_resize(&all, atof(argv[2]), atof(argv[3]), 1);
	weft_compare_set_measure(&all, measure, NULL);
	if (weft_compare_go(&all, argv[4], &err) < 0)
		return 1;
	while (weft_compare_search_step(&all, 1000))
		;
	if (weft_viewer_draw(viewer, &err) < 0)
		return 1;
	print_canvas(viewer, true);
	print_canvas(viewer, false);
	weft_compare_finish(&all);
	return 0;
}
