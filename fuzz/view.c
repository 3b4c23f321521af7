/* view.c: moves through the picture of any bytes as a trace.
 *
 * The first 24 bytes are moves of 3 bytes each: a move and two operands.  The rest is the trace.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>

#include "draw/draw.h"
#include "draw/overview.h"
#include "draw/ruler.h"
#include "draw/svg.h"

#define MOVES 8

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

static void require(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "the picture breaks its rule: %s\n", what);
		abort();
	}
}

static void apply_move(struct weft_view *v, const unsigned char *m)
{
	double x = (double)m[1] * v->width_px / 255, y = (double)m[2] * v->height_px / 255;
	switch (m[0] % 11) {
	case 0: weft_view_zoom(v, 1 + m[2] / 16.0, x); break;
	case 1: weft_view_zoom(v, 1 / (1 + m[2] / 16.0), x); break;
	case 2: weft_view_pan(v, (double)(m[1] * 256 + m[2]) - 32768); break;
	case 3: weft_view_focus(v, v->slots * m[1] / 255); break;
	case 4: weft_view_focus_slot_at_y(v, v->slots * m[1] / 255, y); break;
	case 5: weft_view_resize(v, m[2] < 250 ? 2 * m[1] : 16 * m[1], m[2]); break; /* few sizes are large */
	case 6: weft_view_show(v, (int64_t)((uint64_t)m[1] << m[2] % 64), (int64_t)((uint64_t)m[2] << m[1] % 64)); break;
	case 7: weft_view_find(v, (const char[]){(char)m[1], m[2] % 2 ? (char)m[2] : '\0', '\0'}); break;
	case 8: weft_view_find_related(v, (uint32_t)m[1] * 256 + m[2]); break;
	case 9: weft_view_focus_best(v); break;
	default: {
		uint32_t hit = weft_view_hit(v, x, y);
		require(hit == WEFT_NONE || (hit < v->model->promise_count && v->layout->rows[hit] != WEFT_NONE),
		    "a hit is a promise");
	}
	}
}

static int discard_output(void *ctx, const void *bytes, size_t size)
{
	(void)ctx;
	return bytes && size ? 0 : -1;
}

static void check_list(const struct weft_draw_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct weft_prim *p = &list->prims[i];
		require(p->kind <= WEFT_PRIM_TEXT && p->paint < WEFT_PAINT_COUNT, "a primitive is a known one");
		require(i == 0 || list->prims[i - 1].layer <= p->layer, "layers rise");
		require(p->x0 > -1e5f && p->x0 < 1e5f && p->y0 > -1e5f && p->y0 < 1e5f, "a primitive is near the picture");
	}
}

static void write_texts(const struct weft_draw_list *list)
{
	char *text;
	size_t text_bytes;
	if (weft_draw_dump(list, &text, &text_bytes) == WEFT_OK)
		free(text);
	weft_svg_write(list, WEFT_THEME_LIGHT, discard_output, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	struct weft_trace *trace;
	struct weft_model *model;
	struct weft_layout *layout;
	struct weft_view *view;
	struct weft_overview *overview;
	struct weft_draw_list list = {0};
	if (size < 3 * MOVES || weft_trace_open_memory(&trace, bytes + 3 * MOVES, size - 3 * MOVES, "fuzz", NULL) < 0)
		return 0;
	if (weft_model_build(&model, trace, NULL, NULL) == WEFT_OK) {
		require(weft_layout_create(&layout, model, NULL) == WEFT_OK, "a model has a layout");
		require(weft_view_create(&view, model, layout, NULL) == WEFT_OK, "a layout has a view");
		weft_view_resize(view, 320, 180); /* small pictures run the same code as large ones, and are faster */
		for (int i = 0; i < MOVES; i++) {
			apply_move(view, bytes + 3 * i);
			if (i % 4 != 3)
				continue;
			weft_view_reserve_lanes(view, weft_draw_lanes_px(model, NULL, view->height_px));
			require(weft_draw_frame(&list, view, NULL, NULL) == WEFT_OK, "a view has a frame");
			check_list(&list);
			/* Writing texts takes longer than everything else: once for each input is enough. */
			if (i == 3)
				write_texts(&list);
			require(weft_ruler_draw(&list, view, WEFT_RULER_PX, NULL, NULL) == WEFT_OK, "a view has a ruler");
			check_list(&list);
		}
		require(weft_overview_create(&overview, view, NULL) == WEFT_OK, "a view has an overview");
		require(weft_overview_draw(&list, overview, view, 320, WEFT_OVERVIEW_PX, NULL) == WEFT_OK,
		    "an overview can be drawn");
		check_list(&list);
		weft_overview_destroy(overview);
		weft_draw_finish(&list);
		weft_view_destroy(view);
		weft_layout_destroy(layout);
		weft_model_destroy(model);
	}
	weft_trace_close(trace);
	return 0;
}
