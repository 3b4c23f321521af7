/* memory_test.c: a viewer when memory runs out: allocation n fails, for every n.  SPDX-License-Identifier: ISC */
#include "scene.h"

#include "allocations.h"
#include "viewer/compare.h"
#include "viewer/notes.h"
#include "viewer/panel.h"
#include "viewer/search.h"

static struct mirage_writer w;

/* WEFT_OK or what the first call that failed answered; nothing is left behind, which the sanitizers see. */
static int use(void)
{
	struct weft_trace *trace;
	struct weft_viewer *v = NULL;
	struct weft_compare c = {0};
	struct weft_panel panel = {0};
	struct weft_notes notes = {0};
	struct weft_error err = {.status = WEFT_OK};
	struct weft_pane panes[WEFT_COMPARE_PANES];
	int status = weft_trace_open_memory(&trace, w.bytes, w.size, "test", &err);
	if (status < 0)
		return status;
	status = weft_viewer_open(&v, trace, NULL, &err);
	if (status < 0) {
		assert_null(v);
		weft_trace_close(trace);
		return status;
	}
	assert_int_equal(weft_compare_add(&c, v, &err), WEFT_OK);
	weft_compare_resize(&c, 800, 400, 1);
	weft_viewer_select(v, 2); /* without memory one cannot go back, that is all */
	assert_int_equal(v->selected, 2);
	weft_viewer_highlight_related(v, 3);
	weft_compare_search(&c, "read", NULL);
	while (weft_compare_search_step(&c, 50))
		;
	size_t found = v->view->found;
	weft_viewer_set_filter(v, true);
	status = weft_compare_draw(&c, panes, WEFT_COMPARE_PANES, &err);
	if (status < 0)
		for (int i = 0; i < WEFT_PANES; i++)
			assert_int_equal(v->lists[i].count, 0);
	if (status >= 0)
		status = weft_panel_fill(&panel, v, 2, &err);
	if (status >= 0)
		status = weft_notes_fill(&notes, v->model, &err);
	assert_int_equal(status < 0 ? status : WEFT_OK, err.status);
	/* What could not be drawn, is drawn once there is memory. */
	long left = allocations_left;
	allocations_left = -1;
	assert_int_equal(v->view->found, found);
	assert_int_equal(weft_compare_draw(&c, panes, WEFT_COMPARE_PANES, NULL), WEFT_PANES);
	assert_int_equal(weft_panel_fill(&panel, v, 2, NULL), WEFT_OK);
	assert_true(v->lists[WEFT_PANE_PICTURE].count > 10 && panel.count > 5);
	allocations_left = left;
	weft_notes_finish(&notes);
	weft_panel_finish(&panel);
	weft_compare_finish(&c);
	return status < 0 ? status : WEFT_OK;
}

static void test_every_allocation(void **state)
{
	(void)state;
	write_random_trace(&w, 7);
	long needed = 0;
	for (int status = WEFT_ENOMEM; status != WEFT_OK; needed++) {
		allocations_left = needed;
		status = use();
		allocations_left = -1;
		assert_true(status == WEFT_OK || status == WEFT_ENOMEM);
		assert_true(needed < 10000);
	}
	assert_true(needed > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
