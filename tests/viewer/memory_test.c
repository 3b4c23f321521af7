/* memory_test.c: a viewer when memory runs out: allocation n fails, for every n.  SPDX-License-Identifier: ISC */
#include "scene.h"

#include "allocations.h"
#include "viewer/compare.h"
#include "viewer/findings.h"
#include "viewer/live.h"
#include "viewer/live_panel.h"
#include "viewer/panel.h"
#include "viewer/search.h"
#include "viewer/summary_panel.h"
#include "viewer/warnings.h"

static struct mirage_writer w;

/* Computes all answers of the viewer; without memory, an answer is WEFT_ENOMEM. */
static int explain(struct weft_viewer *v, struct weft_rows *rows, struct weft_error *err)
{
	struct weft_findings *findings = NULL;
	int status = weft_explain(&findings, v->model, NULL, err);
	weft_viewer_asked(v, WEFT_ASK_TRACE);
	weft_viewer_answer(v, WEFT_ASK_TRACE, findings);
	if (status == WEFT_OK)
		status = weft_findings_fill(rows, v, err);
	assert_true(status < 0 ? rows->count == 0 : rows->count > 0);
	return status;
}

/* Fills each table, for the whole trace and for a part, and opens a row. */
static int look_at(const struct weft_model *model, struct weft_rows *rows, struct weft_error *err)
{
	const struct weft_clock clock = {0};
	const int64_t id = model->promises[2].id;
	struct weft_findings *findings = NULL;
	struct weft_live *live = NULL;
	int status = weft_explain(&findings, model, NULL, err);
	if (status == WEFT_OK)
		status = weft_live_create(&live, model, findings, model->end_ns / 2, 1000000, err);
	for (unsigned t = 0; t < 2 * WEFT_LIVE_TABLE_COUNT && status == WEFT_OK; t++) {
		const bool is_part = t >= WEFT_LIVE_TABLE_COUNT;
		const struct weft_live_request asked = {.table = (enum weft_live_table)(t % WEFT_LIVE_TABLE_COUNT),
		    .only = is_part ? "a" : NULL,
		    .focus = is_part ? &id : NULL};
		struct weft_live_row row;
		status = weft_live_build_rows(live, &asked, err);
		for (size_t i = 0; i < live->count && status == WEFT_OK; i++) {
			weft_live_row(live, i, &row);
			assert_int_equal(live->lines ? weft_live_find(live, row.key) <= i : 0, 1);
		}
	}
	if (status == WEFT_OK)
		status = weft_live_chain(rows, live, 2, err);
	if (status == WEFT_OK && findings->count)
		status = weft_live_evidence(rows, live, &findings->findings[0], &clock, err);
	weft_live_destroy(live);
	if (findings)
		weft_findings_destroy(findings);
	return status;
}

/* Returns WEFT_OK or the status of the first failed call; nothing leaks, which sanitizers check. */
static int use(void)
{
	struct weft_trace *trace;
	struct weft_viewer *v = NULL;
	struct weft_compare c = {0};
	struct weft_rows panel = {0}, found = {0};
	struct weft_rows notes = {0}, live = {0};
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
	weft_viewer_select(v, 2); /* without memory the history lacks a step, nothing else */
	assert_int_equal(v->selected, 2);
	weft_viewer_highlight_related(v, 3);
	weft_compare_search(&c, "read", NULL);
	while (weft_compare_search_step(&c, 50))
		;
	size_t matches = v->view->found;
	weft_viewer_set_filter(v, true);
	status = weft_compare_draw(&c, panes, WEFT_COMPARE_PANES, &err);
	if (status < 0)
		for (int i = 0; i < WEFT_PANES; i++)
			assert_int_equal(v->lists[i].count, 0);
	if (status >= 0)
		status = weft_panel_fill(&panel, v, 2, &err);
	if (status >= 0)
		status = weft_notes_fill(&notes, v->model, &err);
	if (status >= 0)
		status = explain(v, &found, &err);
	if (status >= 0)
		status = weft_summary_fill(&found, v, &err);
	if (status >= 0)
		status = look_at(v->model, &live, &err);
	if (status >= 0)
		status = weft_live_panel_fill(&live, v, &err);
	assert_int_equal(status < 0 ? status : WEFT_OK, err.status);
	/* A picture that could not be drawn without memory is drawn when there is memory again. */
	long left = allocations_left;
	allocations_left = -1;
	assert_int_equal(v->view->found, matches);
	assert_int_equal(weft_compare_draw(&c, panes, WEFT_COMPARE_PANES, NULL), WEFT_PANES);
	assert_int_equal(weft_panel_fill(&panel, v, 2, NULL), WEFT_OK);
	assert_true(v->lists[WEFT_PANE_PICTURE].count > 10 && panel.count > 5);
	allocations_left = left;
	weft_rows_finish(&notes);
	weft_rows_finish(&live);
	weft_rows_finish(&found);
	weft_rows_finish(&panel);
	weft_compare_finish(&c);
	return status < 0 ? status : WEFT_OK;
}

static void test_viewer_survives_any_failed_allocation(void **state)
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_viewer_survives_any_failed_allocation)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
