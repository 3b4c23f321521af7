/* scene.h: opens viewers of traces that the tests write.  SPDX-License-Identifier: ISC */
#ifndef TESTS_VIEWER_SCENE_H
#define TESTS_VIEWER_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw/random_trace.h"
#include "viewer/viewer.h"

static inline struct weft_viewer *open_bytes(const void *bytes, size_t size)
{
	struct weft_trace *trace;
	struct weft_viewer *viewer;
	assert_int_equal(weft_trace_open_memory(&trace, bytes, size, "test", NULL), WEFT_OK);
	assert_int_equal(weft_viewer_open(&viewer, trace, NULL, NULL), WEFT_OK);
	weft_viewer_set_names(viewer, false, 0); /* hides the names of rows, so that the picture starts at x = 0 */
	weft_viewer_take_changes(viewer);
	return viewer;
}

static inline struct weft_viewer *open_text(const char *text)
{
	return open_bytes(text, strlen(text));
}

static inline struct weft_viewer *open_random(uint64_t seed)
{
	static struct mirage_writer w;
	write_random_trace(&w, seed);
	return open_bytes(w.bytes, w.size);
}

static inline uint32_t with_id(const struct weft_viewer *v, int64_t id)
{
	uint32_t promise = weft_model_find(v->model, id);
	assert_int_not_equal(promise, WEFT_NONE);
	return promise;
}

/* Returns the middle of a promise on the screen. */
static inline void spot_of(const struct weft_viewer *v, uint32_t promise, double *x, double *y)
{
	const struct weft_promise *p = &v->model->promises[promise];
	double scale = v->panes[WEFT_PANE_PICTURE].scale;
	*x = v->panes[WEFT_PANE_PICTURE].x_px + scale * (weft_view_x(v->view, p->start_ns) + weft_view_x(v->view, p->end_ns)) / 2;
	*y = v->panes[WEFT_PANE_PICTURE].y_px + scale * weft_view_y(v->view, weft_view_slot(v->view, v->layout->rows[promise]));
}

static inline bool near(double a, double b, double slack)
{
	return a - b < slack && b - a < slack;
}

/* A server with three requests: 2 has a response, 4 never gets one, 6 fails; 8 became 9. */
static const char SERVER[] = "((time 100.000000000)(op(Creates -1 1 task)))\n"
			     "((time 100.000001000)(op(Switch 1)))\n"
			     "((time 100.000002000)(op(Label 1 \"main loop\")))\n"
			     "((time 100.000100000)(op(Creates 1 2 wait)))\n"
			     "((time 100.000101000)(op(Label 2 \"GET /\")))\n"
			     "((time 100.000102000)(op(Creates 1 3 bind)))\n"
			     "((time 100.000103000)(op(Label 3 \"answer\")))\n"
			     "((time 100.000200000)(op(Creates 1 4 wait)))\n"
			     "((time 100.000201000)(op(Label 4 \"GET /never\")))\n"
			     "((time 100.000202000)(op(Label 4 __should_resolve)))\n"
			     "((time 100.000203000)(op(Creates 1 6 wait)))\n"
			     "((time 100.000204000)(op(Label 6 \"GET /fails\")))\n"
			     "((time 100.000205000)(op(Increases 1 requests 3)))\n"
			     "((time 100.000206000)(op(Switch -1)))\n"
			     "((time 100.000300000)(op(Switch 1)))\n"
			     "((time 100.000301000)(op(Resolves 1 2())))\n"
			     "((time 100.000302000)(op(Reads 3 2)))\n"
			     "((time 100.000320000)(op(Creates 3 8 task)))\n"
			     "((time 100.000321000)(op(Creates 3 9 task)))\n"
			     "((time 100.000322000)(op(Becomes 8 9)))\n"
			     "((time 100.000330000)(op(Resolves 3 9())))\n"
			     "((time 100.000400000)(op(Resolves 1 6(Not_found))))\n"
			     "((time 100.000500000)(op(Switch -1)))\n"
			     "((time 100.001000000)(op(Switch 1)))\n";

#endif
