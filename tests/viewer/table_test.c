/* table_test.c: the table of types, its rows, and the lane with the critical path of a promise.  SPDX-License-Identifier: ISC
 */
#include "pressing.h"
#include "scene.h"

#include "viewer/actions.h"
#include "viewer/compare.h"
#include "viewer/flame_pane.h"
#include "viewer/table.h"
#include "viewer/url_state.h"

/* Compares a row with values computed from all promises.  A percentile is the smallest duration that so many percent of the
 * durations do not exceed. */
static void check_sort(
    const struct weft_viewer *v, const struct weft_table *table, const struct weft_table_row *row, int64_t from, int64_t to)
{
	size_t count = 0, failed = 0, ended = 0, to_p50 = 0, to_p99 = 0, below_p50 = 0, below_p99 = 0;
	int64_t all_ns = 0, longest_ns = 0;
	for (uint32_t p = 1; p < v->model->promise_count; p++) {
		const struct weft_promise *promise = &v->model->promises[p];
		bool is_seen = promise->end_ns >= from && promise->start_ns <= to;
		assert_int_equal(table->type_of[p] != WEFT_NONE, is_seen);
		if (table->type_of[p] != row->type)
			continue;
		assert_int_equal(promise->kind, v->model->promises[row->first].kind);
		int64_t took_ns = weft_table_took(v->facts, p);
		struct weft_state_times times = weft_promise_info_times(v->facts, p);
		count++;
		failed += promise->end == WEFT_END_FAILED;
		all_ns += times.waiting_ns + times.ready_ns + times.running_ns;
		if (took_ns < 0)
			continue;
		ended++;
		to_p50 += took_ns <= row->p50_ns;
		to_p99 += took_ns <= row->p99_ns;
		below_p50 += took_ns < row->p50_ns;
		below_p99 += took_ns < row->p99_ns;
		longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
	}
	assert_true(row->count == count && row->failed == failed && row->ended == ended && row->max_ns == longest_ns);
	assert_true(row->waiting_ns + row->ready_ns + row->running_ns == all_ns);
	assert_true(ended == 0 || (to_p50 * 2 >= ended && below_p50 * 2 < ended + 1 && to_p99 * 100 >= ended * 99 &&
				      below_p99 * 100 < ended * 99));
	assert_true(ended == 0 || weft_table_took(v->facts, row->slowest) == longest_ns);
}

static void test_figures_of_the_table_match_the_promises(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 8; seed++) {
		struct weft_viewer *v = open_random(seed);
		int64_t end = v->model->end_ns;
		for (int part = 0; part < 3; part++) {
			int64_t from = part * end / 4, to = part == 0 ? end : from + end / 5;
			struct weft_table *table = NULL;
			assert_int_equal(weft_table_create(&table, v->facts, from, to, NULL), WEFT_OK);
			for (size_t i = 0; i < table->count; i++)
				check_sort(v, table, &table->rows[i], from, to);
			weft_table_sort(table, WEFT_TABLE_MAX);
			for (size_t i = 1; i < table->count; i++)
				assert_true(table->rows[i].max_ns <= table->rows[i - 1].max_ns);
			weft_table_destroy(table);
		}
		weft_viewer_destroy(v);
	}
}

/* An OS thread and other long-lived promises lasted longest, but the table lists them below all other types; sorted by another
 * column, they are among the others. */
static void test_types_of_long_lived_promises_are_last_in_the_table(void **state)
{
	static const enum weft_kind kinds[] = {WEFT_KIND_THREAD, WEFT_KIND_LISTEN, WEFT_KIND_LOCK, WEFT_KIND_HANDLE,
	    WEFT_KIND_LOOP, WEFT_KIND_WAIT, WEFT_KIND_CONNECTION, WEFT_KIND_ASYNC};
	enum { KINDS = sizeof kinds / sizeof *kinds, STAND = 5 };
	static struct mirage_writer w;
	(void)state;
	w.size = 0;
	mw_packet(&w, 1);
	for (int i = 0; i < KINDS; i++)
		mw_create(&w, 1000 + 10 * i, -1, 1 + i, kinds[i]);
	mw_link(&w, 2000, WEFT_OP_RESOLVE, 6, 6);
	mw_op(&w, 9000, WEFT_OP_RUN, 1);
	mw_op(&w, 9900, WEFT_OP_RUN, -1);
	mw_end(&w, 0);
	struct weft_viewer *v = open_bytes(w.bytes, w.size);
	struct weft_table *table = NULL;
	assert_int_equal(weft_table_create(&table, v->facts, 0, v->model->end_ns, NULL), WEFT_OK);
	assert_int_equal(table->count, KINDS);
	for (size_t i = 0; i < KINDS; i++) {
		bool is_permanent = false;
		for (size_t k = 0; k < STAND; k++)
			is_permanent |= v->model->promises[table->rows[i].first].kind == kinds[k];
		assert_int_equal(is_permanent, i >= KINDS - STAND);
	}
	weft_table_sort(table, WEFT_TABLE_RUNNING);
	assert_int_equal(v->model->promises[table->rows[0].first].kind, WEFT_KIND_THREAD);
	weft_table_destroy(table);
	weft_viewer_destroy(v);
}

/* Presses the first row of the kind whose name starts with this text; returns the row. */
static const struct weft_row *press_sort(struct weft_viewer *v, enum weft_row_kind kind, const char *begin)
{
	static struct weft_row pressed;
	assert_int_equal(weft_table_fill(&rows, v, NULL), WEFT_OK);
	for (size_t i = 0; i < rows.count; i++)
		if (rows.rows[i].kind == kind && strncmp(rows.rows[i].name, begin, strlen(begin)) == 0) {
			pressed = rows.rows[i];
			weft_viewer_press_row(v, &pressed);
			assert_int_equal(weft_table_fill(&rows, v, NULL), WEFT_OK);
			return &pressed;
		}
	fail_msg("no row %s", begin);
	return NULL;
}

static void test_table_is_sorted_filtered_and_limited_and_rows_select_promises(void **state)
{
	enum { COLUMNS = 8 };
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	assert_int_equal(weft_table_fill(&rows, v, NULL), WEFT_OK);
	assert_int_equal(rows.count, 0);
	weft_viewer_show_table(v);
	assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_TABLE);
	press_sort(v, WEFT_ROW_FINDING, "wait \"GET /\"");
	assert_string_equal(rows.rows[0].name, "Whole trace");
	/* The row of the slowest promise selects it; the bar of the histogram highlights it. */
	press_sort(v, WEFT_ROW_LINK, "GET /");
	assert_int_equal(v->selected, with_id(v, 2));
	weft_viewer_select(v, WEFT_NONE);
	press_sort(v, WEFT_ROW_EVIDENCE, "\xe2\x96\x88");
	assert_true(v->selected == with_id(v, 2) && v->view->found == 1 && weft_view_is_highlighted(v->view, v->selected));
	press_sort(v, WEFT_ROW_FINDING, "wait \"GET /\"");
	assert_true(v->open_group_key == 0);
	/* The table can be sorted by another column, and can cover only the shown time. */
	press_sort(v, WEFT_ROW_COLUMN, "max");
	assert_int_equal(v->table_order, WEFT_TABLE_MAX);
	assert_true(rows.rows[1 + 3].is_open && !rows.rows[1 + 4].is_open);
	size_t all = rows.count;
	weft_viewer_show(v, 0, 50000);
	press_sort(v, WEFT_ROW_MORE, "Whole trace");
	assert_true(rows.count < all && rows.count == 1 + COLUMNS + 1);
	press_sort(v, WEFT_ROW_MORE, "Visible interval");
	assert_int_equal(rows.count, all);
	/* A filter ignores upper and lower case; each type has a cell for each column. */
	weft_viewer_filter_table(v, "gEt /");
	assert_int_equal(weft_table_fill(&rows, v, NULL), WEFT_OK);
	assert_true(rows.count > 1 + COLUMNS && rows.count < all);
	for (size_t i = 1 + COLUMNS; i < rows.count; i++)
		assert_non_null(strstr(rows.rows[i].name, "GET /"));
	size_t cells = 1;
	for (const char *at = rows.rows[1 + COLUMNS].value; (at = strstr(at, " \xc2\xb7 ")); at++)
		cells++;
	assert_int_equal(cells, COLUMNS);
	weft_viewer_filter_table(v, "no such type");
	assert_int_equal(weft_table_fill(&rows, v, NULL), WEFT_OK);
	assert_int_equal(rows.rows[1 + COLUMNS].kind, WEFT_ROW_TEXT);
	weft_viewer_filter_table(v, "");
	/* If the user measures a span, the table covers only this span; when the span is removed, it covers the whole trace
	 * again. */
	weft_viewer_take_changes(v);
	weft_viewer_select(v, with_id(v, 2));
	weft_viewer_measure_selected(v);
	assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_SPAN);
	assert_int_equal(weft_table_fill(&rows, v, NULL), WEFT_OK);
	assert_string_equal(rows.rows[0].name, "Measured interval");
	assert_true(weft_viewer_clear(v));
	assert_int_equal(weft_table_fill(&rows, v, NULL), WEFT_OK);
	assert_string_equal(rows.rows[0].name, "Whole trace");
	weft_viewer_destroy(v);
	weft_rows_finish(&rows);
}

/* After a reload the table is computed again, and the open type stays open. */
static void test_table_keeps_its_open_type_after_a_refresh(void **state)
{
	(void)state;
	struct weft_compare c = {0};
	struct weft_viewer *v = open_text(SERVER);
	assert_int_equal(weft_compare_add(&c, v, NULL), WEFT_OK);
	weft_viewer_show_table(v);
	press_sort(v, WEFT_ROW_FINDING, "wait \"GET /\"");
	weft_compare_take_changes(&c);
	struct weft_viewer *anew = open_text(SERVER);
	weft_viewer_destroy(weft_compare_replace(&c, 0, anew));
	assert_true(weft_compare_take_changes(&c) & WEFT_CHANGED_TABLE);
	assert_int_equal(weft_table_fill(&rows, anew, NULL), WEFT_OK);
	size_t open = 0;
	for (size_t i = 0; i < rows.count; i++)
		if (rows.rows[i].kind == WEFT_ROW_FINDING && rows.rows[i].is_open && ++open)
			assert_non_null(strstr(rows.rows[i].name, "\"GET /\""));
	assert_int_equal(open, 1);
	weft_compare_finish(&c);
	weft_rows_finish(&rows);
}

/* Returns whether the lane shows the text. */
static bool lane_says(struct weft_viewer *v, const char *text)
{
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	const struct weft_draw_list *list = v->panes[WEFT_PANE_LANE].list;
	for (size_t i = 0; i < list->count; i++)
		if (list->prims[i].kind == WEFT_PRIM_TEXT && list->prims[i].count == strlen(text) &&
		    memcmp(list->text + list->prims[i].first, text, strlen(text)) == 0)
			return true;
	return false;
}

static void test_blame_pane_shares_add_up(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	const double before = v->panes[WEFT_PANE_PICTURE].height_px;
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_BLAME), WEFT_OK);
	const struct weft_pane *pane = &v->panes[WEFT_PANE_BLAME];
	assert_true(pane->height_px > 0 && pane->height_px + v->panes[WEFT_PANE_PICTURE].height_px == before);
	/* The shares add up to 100 %. */
	double tenths = 0;
	assert_int_equal(weft_table_fill(&rows, v, NULL), WEFT_OK);
	for (size_t i = 0; i < rows.count; i++)
		tenths += rows.rows[i].kind == WEFT_ROW_EVIDENCE ? strtod(rows.rows[i].value, NULL) * 10 : 0;
	assert_true(tenths > 998 && tenths < 1002);
	char place[300];
	press_sort(v, WEFT_ROW_EVIDENCE, "");
	assert_true(v->selected != WEFT_NONE && v->view->found > 0);
	weft_viewer_place(v, place, sizeof place);
	assert_non_null(strstr(place, "&blame=wait:1"));
	press_sort(v, WEFT_ROW_MORE, "Below ");
	assert_int_equal(v->blame_root, 0);
	press_sort(v, WEFT_ROW_MORE, "By waiting time");
	weft_viewer_place(v, place, sizeof place);
	assert_non_null(strstr(place, "&blame=run:0"));
	assert_true(weft_viewer_back(v));
	assert_int_equal(v->blame_by, WEFT_FOLDED_BY_WAIT);
	assert_int_equal(weft_viewer_go(v, "blame=sit", NULL), WEFT_EINVAL);
	assert_int_equal(weft_viewer_go(v, "", NULL), WEFT_OK);
	assert_true(v->panes[WEFT_PANE_PICTURE].height_px == before);
	weft_viewer_destroy(v);
}

static void test_lane_of_the_critical_path_shows_all_steps(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	uint32_t asked = with_id(v, 2), main_loop = with_id(v, 1);
	weft_viewer_set_names(v, false, 0);
	weft_viewer_fold_sleep(v, false);
	double picture_px = v->panes[WEFT_PANE_PICTURE].height_px;
	weft_viewer_select(v, asked);
	weft_viewer_ask_why(v);
	explain(v, WEFT_ASK_WHY);
	const struct weft_pane *lane = &v->panes[WEFT_PANE_LANE];
	assert_true(near(v->panes[WEFT_PANE_PICTURE].height_px + lane->height_px, picture_px, 0.01) && lane->height_px > 20);
	/* Promise 1 ran while 2 was created; then no promise ran, for an unknown reason; then promise 1 resolved 2. */
	const struct weft_promise *p = &v->model->promises[asked];
	weft_viewer_show_promise(v, asked);
	assert_true(lane_says(v, "main loop runs") && lane_says(v, "unknown"));
	double y = lane->y_px + 10;
	weft_viewer_motion(v, weft_view_x(v->view, (p->start_ns + 206000) / 2), y);
	assert_int_equal(v->hovered, main_loop);
	assert_int_equal(weft_viewer_cursor(v), WEFT_CURSOR_LINK);
	weft_viewer_press(v, weft_view_x(v->view, 150000), y, WEFT_BUTTON_PRIMARY, 0, 1);
	weft_viewer_release(v, weft_view_x(v->view, 150000), y);
	assert_int_equal(v->selected, main_loop);
	/* A click beside all steps selects nothing, and keeps the selection. */
	weft_viewer_press(v, weft_view_x(v->view, p->start_ns) - 20, y, WEFT_BUTTON_PRIMARY, 0, 1);
	weft_viewer_release(v, weft_view_x(v->view, p->start_ns) - 20, y);
	assert_int_equal(v->selected, main_loop);
	assert_int_not_equal(press(v, WEFT_ROW_ANSWER, 0), SIZE_MAX);
	assert_true(lane->height_px <= 0 && near(v->panes[WEFT_PANE_PICTURE].height_px, picture_px, 0.01));
	/* Focus shows the lane of the promise automatically, until the focus ends; a pending promise has no lane. */
	weft_viewer_focus(v, asked);
	explain(v, WEFT_ASK_WHY);
	assert_true(lane->height_px > 20);
	weft_viewer_focus(v, WEFT_NONE);
	assert_true(lane->height_px <= 0);
	weft_viewer_focus(v, with_id(v, 4));
	assert_int_equal(v->questions[WEFT_ASK_WHY].state, WEFT_QUESTION_NONE);
	/* The answer to a question of the user stays when the focus changes before or after it. */
	weft_viewer_focus(v, WEFT_NONE);
	weft_viewer_select(v, asked);
	weft_viewer_ask_why(v);
	weft_viewer_focus(v, asked);
	explain(v, WEFT_ASK_WHY);
	assert_true(v->open_in == WEFT_ASK_WHY && v->open_finding == 0 && lane->height_px > 20);
	weft_viewer_focus(v, WEFT_NONE);
	weft_viewer_focus(v, asked);
	assert_int_equal(v->questions[WEFT_ASK_WHY].state, WEFT_QUESTION_NONE);
	weft_viewer_focus(v, WEFT_NONE);
	assert_non_null(v->answers[WEFT_ASK_WHY]);
	weft_viewer_destroy(v);
	weft_rows_finish(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_blame_pane_shares_add_up),
	    cmocka_unit_test(test_lane_of_the_critical_path_shows_all_steps),
	    cmocka_unit_test(test_figures_of_the_table_match_the_promises),
	    cmocka_unit_test(test_types_of_long_lived_promises_are_last_in_the_table),
	    cmocka_unit_test(test_table_is_sorted_filtered_and_limited_and_rows_select_promises),
	    cmocka_unit_test(test_table_keeps_its_open_type_after_a_refresh),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
