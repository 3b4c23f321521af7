/* viewer.c TRACE: latencies of a viewer: a search step, the next match, the panel, the overlay, focusing one promise, folding a
 * kind, the table of types.  SPDX-License-Identifier: ISC */
#include "bench/bench.h"
#include "viewer/panel.h"
#include "viewer/search.h"
#include "viewer/table.h"

#define STEP 100000 /* promises */
#define TRIES 3

static double now_ms(void)
{
	return clock_now_ns(CLOCK_THREAD_CPUTIME_ID) / 1e6;
}

static double max_ms(double a, double b)
{
	return a > b ? a : b;
}

/* Returns the longest time for some promises across the trace; wall time, since several OS threads work. */
static double focus_ms(struct weft_viewer *v)
{
	double most = 0;
	for (int i = 1; i < 8; i++) {
		double best = 1e18;
		for (int k = 0; k < TRIES; k++) {
			double begin = clock_now_ns(CLOCK_MONOTONIC);
			weft_viewer_focus(v, (uint32_t)(v->model->promise_count / 8 * (size_t)i));
			double took = (clock_now_ns(CLOCK_MONOTONIC) - begin) / 1e6;
			best = took < best ? took : best;
			weft_viewer_focus(v, WEFT_NONE);
		}
		most = max_ms(most, best);
	}
	return most;
}

static double fold_ms(struct weft_viewer *v)
{
	char text[WEFT_QUERY_BYTES + 1];
	if (!weft_viewer_fold_query(v, (uint32_t)v->model->promise_count / 2, WEFT_FOLD_KIND, text))
		return 0;
	double begin = now_ms();
	weft_viewer_fold(v, text);
	double took = now_ms() - begin;
	weft_viewer_unfold_all(v);
	return took;
}

static double table_ms(struct weft_viewer *v)
{
	struct weft_rows rows = {0};
	double begin = now_ms();
	weft_viewer_show_table(v);
	weft_table_fill(&rows, v, NULL);
	double took = now_ms() - begin;
	weft_rows_finish(&rows);
	return took;
}

/* Returns the time for a fifth of the trace, in the middle. */
static double span_table_ms(struct weft_viewer *v)
{
	struct weft_table *table;
	struct weft_error err;
	int64_t fifth = v->model->end_ns / 5;
	double begin = now_ms();
	if (weft_table_create(&table, v->facts, 2 * fifth, 3 * fifth, &err) < 0)
		fatal("%s", err.what);
	double took = now_ms() - begin;
	weft_table_destroy(table);
	return took;
}

int main(int argc, char **argv)
{
	static const char *const typed[] = {
	    "r", "re", "rea", "read", "1", "12", "kind:t", "pending", "longer:1us", "not there", ""};
	struct weft_trace *trace;
	struct weft_viewer *v;
	struct weft_rows panel = {0};
	struct weft_error err;
	double step = 0, search = 0, next = 0, fill = 0, overlay = 0, begin;
	if (argc != 2)
		fatal("usage: weft-bench-viewer TRACE");
	if (weft_trace_open(&trace, argv[1], &err) < 0 || weft_viewer_open(&v, trace, NULL, &err) < 0)
		fatal("%s", err.what);
	for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
		begin = now_ms();
		weft_viewer_search(v, typed[i], NULL);
		double all = now_ms() - begin;
		for (bool more = true; more;) {
			begin = now_ms();
			more = weft_viewer_search_step(v, STEP);
			double one = now_ms() - begin;
			step = max_ms(step, one);
			all += one;
		}
		search = max_ms(search, all);
		begin = now_ms();
		weft_viewer_next_match(v);
		next = max_ms(next, now_ms() - begin);
	}
	for (uint32_t p = 1; p < v->model->promise_count; p += (uint32_t)v->model->promise_count / 5000 + 1) {
		begin = now_ms();
		if (weft_panel_fill(&panel, v, p, &err) < 0)
			fatal("%s", err.what);
		fill = max_ms(fill, now_ms() - begin);
	}
	if (weft_viewer_draw(v, &err) < 0)
		fatal("%s", err.what);
	for (int x = 0; x < 1280; x += 10) {
		begin = now_ms();
		weft_viewer_motion(v, x, 400);
		if (weft_viewer_draw(v, &err) < 0)
			fatal("%s", err.what);
		overlay = max_ms(overlay, now_ms() - begin);
	}
	printf("promises %zu\nstep_ms %.3f\nsearch_ms %.3f\nnext_ms %.3f\npanel_ms %.3f\noverlay_ms %.3f\n",
	    v->model->promise_count, step, search, next, fill, overlay);
	printf("focus_ms %.3f\n", focus_ms(v));
	printf("fold_ms %.3f\n", fold_ms(v));
	printf("table_ms %.3f\n", table_ms(v));
	printf("span_table_ms %.3f\n", span_table_ms(v));
	weft_rows_finish(&panel);
	weft_viewer_destroy(v);
	return 0;
}
