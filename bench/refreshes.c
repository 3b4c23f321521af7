/* refreshes.c TRACE: full frames of a viewer, at every zoom and many positions: unfolded, folded automatically, folded by hand,
 * one promise alone.
 *
 * refreshes.c TRACE STATE ZOOM PLACE: one of these frames repeatedly, for a profiler.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "backends/cairo/cairo.h"
#include "bench/bench.h"
#include "viewer/viewer.h"

enum { TIMES = 4, HEIGHTS = 5, PLACES = TIMES * HEIGHTS, ZOOMS = 12, TRIES = 3, FOCI = 7, PROFILED_FRAMES = 200 };

static const char *const states[] = {"whole", "itself", "hand", "alone"};
enum { WHOLE, ITSELF, HAND, ALONE, STATES };

struct screen {
	struct weft_viewer *viewer;
	struct weft_cairo *cairo;
	cairo_surface_t *surface;
	cairo_t *cr;
};

/* Returns, of some promises across the trace, the one whose focused view has the most promises. */
static uint32_t find_largest_promise(struct weft_viewer *v)
{
	uint32_t found = WEFT_NONE;
	size_t most = 0;
	for (size_t i = 1; i <= FOCI; i++) {
		uint32_t promise = (uint32_t)(v->model->promise_count / (FOCI + 1) * i);
		weft_viewer_focus(v, promise);
		size_t count = v->focused != WEFT_NONE ? v->layout->row_begin[v->layout->row_count] : 0;
		if (count > most) {
			most = count;
			found = promise;
		}
		weft_viewer_focus(v, WEFT_NONE);
	}
	return found;
}

/* Enters a state; returns false if its picture would be the same. */
static bool enter_state(struct weft_viewer *v, int state)
{
	char text[WEFT_QUERY_BYTES + 1];
	weft_viewer_set_folds_itself(v, state != WHOLE);
	switch (state) {
	case ITSELF: return v->fold_depth > 0;
	case HAND:
		if (!weft_viewer_fold_query(v, (uint32_t)v->model->promise_count / 2, WEFT_FOLD_KIND, text))
			return false;
		weft_viewer_fold(v, text);
		return v->folding.count > 0;
	case ALONE: weft_viewer_focus(v, find_largest_promise(v)); return v->focused != WEFT_NONE;
	default: return true;
	}
}

static void leave_state(struct weft_viewer *v)
{
	weft_viewer_unfold_all(v);
	weft_viewer_focus(v, WEFT_NONE);
}

/* Returns the time in ns of showing a time range and drawing it. */
static double draw_screen(struct screen *s, int zoom, int place)
{
	struct weft_viewer *v = s->viewer;
	struct weft_error err;
	double span = (double)v->model->end_ns, all = span;
	for (int i = 0; i < zoom; i++)
		span /= 3.5;
	int time = place / HEIGHTS;
	double from = (all - span) * time / (TIMES - 1);
	weft_viewer_show(v, (int64_t)from, (int64_t)(from + span));
	if (weft_viewer_draw(v, &err) < 0) /* this draw may fold and change the rows */
		fatal("%s", err.what);
	struct weft_range rows = weft_viewer_range_y(v);
	weft_viewer_scroll_to_y(v, rows.lower + (rows.upper - rows.lower - rows.page) * (place % HEIGHTS) / (HEIGHTS - 1));
	double begin = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
	weft_viewer_show(v, (int64_t)from, (int64_t)(from + span));
	if (weft_viewer_draw(v, &err) < 0)
		fatal("%s", err.what);
	for (int i = 0; i < WEFT_PANES; i++) {
		const struct weft_pane *pane = &v->panes[i];
		if (pane->height_px <= 0)
			continue;
		cairo_save(s->cr);
		cairo_translate(s->cr, pane->x_px, pane->y_px);
		cairo_rectangle(s->cr, 0, 0, pane->width_px, pane->height_px);
		cairo_clip(s->cr);
		weft_cairo_draw(s->cairo, s->cr, pane->list, WEFT_THEME_LIGHT);
		cairo_restore(s->cr);
	}
	cairo_surface_flush(s->surface);
	return clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static void measure_state(struct screen *s, int state)
{
	double frames[ZOOMS * PLACES], worst = 0;
	size_t count = 0;
	int worst_zoom = 0, worst_place = 0;
	for (int zoom = 0; zoom < ZOOMS; zoom++)
		for (int place = 0; place < (zoom == 0 ? HEIGHTS : PLACES); place++) {
			double best = 1e18;
			for (int i = 0; i < TRIES; i++) {
				double took = draw_screen(s, zoom, place);
				best = took < best ? took : best;
			}
			if (best > worst) {
				worst = best;
				worst_zoom = zoom;
				worst_place = place;
			}
			frames[count++] = best / 1e6;
		}
	printf("%s_median_ms %.3f\n%s_max_ms %.3f\n%s_zoom %d\n%s_place %d\n", states[state], median(frames, count),
	    states[state], worst / 1e6, states[state], worst_zoom, states[state], worst_place);
}

int main(int argc, char **argv)
{
	struct weft_trace *trace;
	struct weft_error err;
	struct screen s = {0};
	if (argc != 2 && argc != 5)
		fatal("usage: weft-bench-looks TRACE [STATE ZOOM PLACE]");
	if (weft_trace_open(&trace, argv[1], &err) < 0 || weft_viewer_open(&s.viewer, trace, NULL, &err) < 0)
		fatal("%s", err.what);
	if (weft_cairo_create(&s.cairo) < 0)
		fatal("no Cairo");
	s.surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1280, 800);
	s.cr = cairo_create(s.surface);
	weft_viewer_set_measure(s.viewer, weft_cairo_measure, s.cairo);
	weft_viewer_resize(s.viewer, 1280, 800, 1);
	for (int state = 0; state < STATES; state++) {
		if ((argc == 5 && strcmp(argv[2], states[state]) != 0) || !enter_state(s.viewer, state))
			continue;
		if (argc == 5)
			for (int i = 0; i < PROFILED_FRAMES; i++)
				printf("%.3f ms\n", draw_screen(&s, atoi(argv[3]), atoi(argv[4])) / 1e6);
		else
			measure_state(&s, state);
		leave_state(s.viewer);
	}
	cairo_destroy(s.cr);
	cairo_surface_destroy(s.surface);
	weft_cairo_destroy(s.cairo);
	weft_viewer_destroy(s.viewer);
	return 0;
}
