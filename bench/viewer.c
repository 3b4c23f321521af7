/* viewer.c TRACE: how long a viewer keeps its user waiting: a step of a search, the next match, the panel, what lies over the
 * picture. SPDX-License-Identifier: ISC */
#include "bench/bench.h"
#include "viewer/panel.h"
#include "viewer/search.h"

#define STEP 100000 /* promises */

static double now_ms(void)
{
	return clock_now_ns(CLOCK_THREAD_CPUTIME_ID) / 1e6;
}

static double longer(double a, double b)
{
	return a > b ? a : b;
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
			step = longer(step, one);
			all += one;
		}
		search = longer(search, all);
		begin = now_ms();
		weft_viewer_next_match(v);
		next = longer(next, now_ms() - begin);
	}
	for (uint32_t p = 1; p < v->model->promise_count; p += (uint32_t)v->model->promise_count / 5000 + 1) {
		begin = now_ms();
		if (weft_panel_fill(&panel, v, p, &err) < 0)
			fatal("%s", err.what);
		fill = longer(fill, now_ms() - begin);
	}
	if (weft_viewer_draw(v, &err) < 0)
		fatal("%s", err.what);
	for (int x = 0; x < 1280; x += 10) {
		begin = now_ms();
		weft_viewer_motion(v, x, 400);
		if (weft_viewer_draw(v, &err) < 0)
			fatal("%s", err.what);
		overlay = longer(overlay, now_ms() - begin);
	}
	printf("promises %zu\nstep_ms %.3f\nsearch_ms %.3f\nnext_ms %.3f\npanel_ms %.3f\noverlay_ms %.3f\n",
	    v->model->promise_count, step, search, next, fill, overlay);
	weft_rows_finish(&panel);
	weft_viewer_destroy(v);
	return 0;
}
