/* frame.c TRACE [TEXT]: draws full frames, from the view to pixels, at every zoom and many positions; highlights promises with
 * the text.  SPDX-License-Identifier: ISC */
#include "backends/cairo/cairo.h"
#include "bench/bench.h"

#define PLACES 4
#define ZOOMS 12
#define FOCI 5
#define TRIES 2

int main(int argc, char **argv)
{
	struct weft_trace *trace;
	struct weft_model *model;
	struct weft_layout *layout;
	struct weft_view *view;
	struct weft_cairo *cairo;
	struct weft_draw_list list = {0};
	struct weft_error err;
	if (argc != 2 && argc != 3)
		fatal("usage: weft-bench-frame TRACE [TEXT]");
	if (weft_trace_open(&trace, argv[1], &err) < 0 || weft_model_build(&model, trace, NULL, &err) < 0 ||
	    weft_layout_create(&layout, model, &err) < 0 || weft_view_create(&view, model, layout, &err) < 0)
		fatal("%s", err.what);
	size_t found = argc == 3 ? weft_view_find(view, argv[2]) : 0;
	if (weft_cairo_create(&cairo) < 0)
		fatal("no Cairo");
	cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1280, 720);
	cairo_t *cr = cairo_create(surface);
	const struct weft_draw_options options = {.measure = weft_cairo_measure, .measure_ctx = cairo};
	weft_view_reserve_lanes(view, weft_draw_lanes_px(model, &options, view->height_px));
	double frames[ZOOMS * PLACES * FOCI], lists[ZOOMS * PLACES * FOCI], worst = 0, worst_list = 0,
									    span = (double)model->end_ns;
	size_t count = 0, primitives = 0;
	int worst_zoom = 0, worst_focus = 0;
	for (int zoom = 0; zoom < ZOOMS; zoom++, span /= 3.5) {
		for (int at = 0; at < (zoom == 0 ? FOCI : PLACES * FOCI); at++) {
			double from = ((double)model->end_ns - span) * (at / FOCI) / (PLACES - 1);
			weft_view_show(view, (int64_t)from, (int64_t)(from + span));
			weft_view_focus(view, view->slots * (at % FOCI + 0.01) / (FOCI - 0.98));
			double best = 1e18, best_list = 1e18;
			for (int i = 0; i < TRIES; i++) {
				double begin = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
				if (weft_draw_frame(&list, view, &options, &err) < 0)
					fatal("%s", err.what);
				double middle = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
				weft_cairo_draw(cairo, cr, &list, WEFT_THEME_LIGHT);
				cairo_surface_flush(surface);
				double end = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
				best = end - begin < best ? end - begin : best;
				best_list = middle - begin < best_list ? middle - begin : best_list;
			}
			primitives = list.count > primitives ? list.count : primitives;
			if (best > worst) {
				worst = best;
				worst_list = best_list;
				worst_zoom = zoom;
				worst_focus = at % FOCI;
			}
			lists[count] = best_list / 1e6;
			frames[count++] = best / 1e6;
		}
	}
	printf("median_ms %.3f\nmax_ms %.3f\nlist_ms %.3f\nworst_list_ms %.3f\nworst_zoom %d\nworst_focus %d\nprimitives "
	       "%zu\nfound %zu\n",
	    median(frames, count), worst / 1e6, median(lists, count), worst_list / 1e6, worst_zoom, worst_focus, primitives,
	    found);
	cairo_destroy(cr);
	cairo_surface_destroy(surface);
	weft_draw_finish(&list);
	weft_cairo_destroy(cairo);
	weft_view_destroy(view);
	weft_layout_destroy(layout);
	weft_model_destroy(model);
	weft_trace_close(trace);
	return 0;
}
