/* compare_test.c: several viewers, one above the other, for a comparison of traces.  SPDX-License-Identifier: ISC */
#include "scene.h"

#include "viewer/compare.h"
#include "viewer/findings.h"
#include "viewer/search.h"
#include "viewer/url_state.h"

/* A trace of the same server as SERVER, with longer times. */
static const char SLOWER[] = "((time 5.000)(op(Creates -1 1 task)))((time 5.000001)(op(Label 1 \"main loop\")))"
			     "((time 5.001)(op(Creates 1 2 wait)))((time 5.001)(op(Label 2 \"GET /\")))"
			     "((time 5.004)(op(Resolves 1 2())))((time 5.005)(op(Creates 1 3 wait)))"
			     "((time 5.006)(op(Label 3 \"GET /other\")))((time 5.008)(op(Resolves 1 3())))";

static struct weft_compare two(void)
{
	struct weft_compare c = {0};
	assert_int_equal(weft_compare_add(&c, open_text(SERVER), NULL), WEFT_OK);
	assert_int_equal(weft_compare_add(&c, open_text(SLOWER), NULL), WEFT_OK);
	weft_compare_resize(&c, 1000, 604, 1);
	weft_compare_take_changes(&c);
	return c;
}

static bool same_times(const struct weft_compare *c)
{
	int64_t from, to, from2, to2;
	weft_viewer_times(c->viewers[0], &from, &to);
	weft_viewer_times(c->viewers[1], &from2, &to2);
	return from == from2 && to - to2 < 2 && to2 - to < 2;
}

static void test_locked_axes_show_the_same_times(void **state)
{
	(void)state;
	struct weft_compare c = two();
	struct weft_pane panes[WEFT_COMPARE_PANES];
	assert_true(near(c.tops_px[1], 304, 0.1));
	int count = weft_compare_draw(&c, panes, WEFT_COMPARE_PANES, NULL);
	assert_int_equal(count, 2 * WEFT_PANES);
	assert_true(near(panes[WEFT_PANES].y_px, c.viewers[1]->panes[0].y_px + 304, 0.1));
	assert_int_equal(weft_compare_draw(&c, panes, 1, NULL), 1);
	/* With locked time axes, the short trace is shown with the time range of the long one. */
	assert_true(same_times(&c));
	assert_int_equal(weft_compare_act(&c, WEFT_ACTION_SHOW_ALL), WEFT_OK);
	int64_t from, to;
	weft_viewer_times(c.viewers[0], &from, &to);
	assert_true(to > 8000000 && same_times(&c));
	weft_compare_wheel(&c, 300, 500, 0, -3, 0);
	assert_true(same_times(&c) && c.active == 0);
	weft_compare_press(&c, 500, 400, WEFT_BUTTON_PRIMARY, 0, 1);
	assert_int_equal(c.active, 1);
	weft_compare_motion(&c, 600, 100); /* a drag continues in the pane in which it started */
	weft_compare_release(&c, 600, 100);
	assert_true(same_times(&c) && c.active == 1);
	weft_compare_pinch(&c, 300, 100, 2, 5, 5);
	assert_true(same_times(&c));
	assert_int_equal(weft_compare_act(&c, WEFT_ACTION_FREE_AXES), WEFT_OK);
	assert_true(weft_compare_action_state(&c, WEFT_ACTION_FREE_AXES) & WEFT_ACTION_ON);
	weft_compare_act(&c, WEFT_ACTION_SHOW_ALL);
	weft_compare_press(&c, 500, 100, WEFT_BUTTON_PRIMARY, 0, 1);
	weft_compare_release(&c, 500, 100);
	weft_compare_act(&c, WEFT_ACTION_SHOW_ALL);
	weft_viewer_times(c.viewers[0], &from, &to);
	assert_true(to < 1200000 && !same_times(&c));
	weft_compare_set_free(&c, false);
	assert_true(same_times(&c));
	weft_compare_finish(&c);
	assert_null(weft_compare_active(&c));
}

/* In either pane, rows list the differences; a press on a row shows the place of the difference in both traces. */
static void test_row_of_a_difference_shows_its_place_in_both_traces(void **state)
{
	(void)state;
	struct weft_compare c = two();
	struct weft_rows rows = {0};
	for (size_t on = 0; on < 2; on++) {
		const struct weft_row *first = NULL, *summary = NULL;
		weft_compare_activate(&c, on);
		for (size_t i = 0; i < 2; i++) {
			weft_viewer_asked(c.viewers[i], WEFT_ASK_TRACE);
			assert_int_equal(weft_findings_fill(&rows, c.viewers[on], NULL), WEFT_OK);
			for (size_t r = 0; r < rows.count; r++)
				assert_false(rows.rows[r].topic == WEFT_ROWS_OF_DIFF); /* no rows of differences while another OS
											  thread still computes the findings */
			weft_viewer_answer(c.viewers[i], WEFT_ASK_TRACE, NULL);
		}
		weft_viewer_select(c.viewers[0], WEFT_NONE);
		weft_viewer_select(c.viewers[1], WEFT_NONE);
		assert_int_equal(weft_findings_fill(&rows, c.viewers[on], NULL), WEFT_OK);
		for (size_t r = 0; r < rows.count; r++) {
			summary = !summary && rows.rows[r].kind == WEFT_ROW_SUMMARY ? &rows.rows[r] : summary;
			first = !first && rows.rows[r].topic == WEFT_ROWS_OF_DIFF && rows.rows[r].leads ? &rows.rows[r] : first;
		}
		assert_non_null(summary);
		assert_non_null(strstr(summary->name, " differences between "));
		assert_true(first && first->leads && first->kind == WEFT_ROW_EVIDENCE);
		const struct weft_difference *d = &c.viewers[0]->diff->differences[first->line];
		assert_string_equal(first->name, d->text);
		weft_viewer_press_row(c.viewers[on], first);
		weft_compare_follow(&c);
		assert_int_equal(c.viewers[0]->selected, d->a);
		assert_int_equal(c.viewers[1]->selected, d->b);
		assert_true(d->a != WEFT_NONE || d->b != WEFT_NONE);
		/* Both viewers show the time of the difference. */
		for (size_t i = 0; i < 2; i++) {
			int64_t from, to;
			weft_viewer_times(c.viewers[i], &from, &to);
			assert_true(d->a_time_ns < 0 || (from <= d->a_time_ns && d->a_time_ns <= to));
			assert_true(d->b_time_ns < 0 || (from <= d->b_time_ns && d->b_time_ns <= to));
		}
	}
	/* Only two traces have rows of differences; one trace or three traces have none. */
	weft_compare_add(&c, open_text(SERVER), NULL);
	while (c.count > 0) {
		for (size_t v = 0; c.count != 2 && v < c.count; v++) {
			weft_viewer_answer(c.viewers[v], WEFT_ASK_TRACE, NULL);
			assert_int_equal(weft_findings_fill(&rows, c.viewers[v], NULL), WEFT_OK);
			for (size_t r = 0; r < rows.count; r++)
				assert_false(rows.rows[r].topic == WEFT_ROWS_OF_DIFF);
		}
		weft_compare_remove(&c, c.count - 1);
	}
	weft_rows_finish(&rows);
	weft_compare_finish(&c);
}

static void test_highlights_apply_to_both_traces(void **state)
{
	(void)state;
	struct weft_compare c = two();
	assert_int_equal(weft_compare_search(&c, "get", NULL), WEFT_OK);
	while (weft_compare_search_step(&c, 2))
		;
	assert_int_equal(weft_compare_found(&c), 5);
	assert_true(weft_compare_take_changes(&c) & WEFT_CHANGED_SEARCH);
	/* One action highlights the promises with label and kind of the selected one in both traces. */
	weft_viewer_select(weft_compare_active(&c), with_id(c.viewers[0], 2));
	assert_int_equal(weft_compare_act(&c, WEFT_ACTION_LIKE), WEFT_OK);
	assert_string_equal(c.viewers[1]->search_text, "label:=\"GET /\" kind:=\"wait\"");
	while (weft_compare_search_step(&c, 1000))
		;
	assert_int_equal(weft_compare_found(&c), 2);
	assert_true(weft_view_is_highlighted(c.viewers[1]->view, with_id(c.viewers[1], 2)));
	assert_int_equal(weft_compare_act(&c, WEFT_ACTION_FILTER), WEFT_OK);
	assert_int_equal(weft_compare_act(&c, WEFT_ACTION_METRICS), WEFT_OK);
	assert_true(c.viewers[1]->filter && !c.viewers[1]->metrics);
	/* A trace that is added later is searched, too. */
	assert_int_equal(weft_compare_add(&c, open_text(SLOWER), NULL), WEFT_OK);
	while (weft_compare_search_step(&c, 1000))
		;
	assert_int_equal(weft_compare_found(&c), 3);
	assert_int_equal(weft_compare_act(&c, WEFT_ACTION_CLEAR), WEFT_OK);
	assert_int_equal(weft_compare_found(&c), 0);
	while (c.count < WEFT_MAX_COMPARED)
		assert_int_equal(weft_compare_add(&c, open_text(SLOWER), NULL), WEFT_OK);
	struct weft_viewer *more = open_text(SLOWER);
	assert_int_equal(weft_compare_add(&c, more, NULL), WEFT_ETOOBIG);
	weft_viewer_destroy(more);
	c.active = WEFT_MAX_COMPARED - 1;
	while (c.count > 0)
		weft_compare_remove(&c, c.count / 2);
	assert_int_equal(weft_compare_act(&c, WEFT_ACTION_SHOW_ALL), WEFT_EINVAL);
	assert_int_equal(weft_compare_act(&c, WEFT_ACTION_OPEN), WEFT_ENOTSUP);
	weft_compare_motion(&c, 5, 5);
	weft_compare_press(&c, 5, 5, WEFT_BUTTON_PRIMARY, 0, 1);
	assert_int_equal(weft_compare_place(&c, NULL, 0), 0);
}

/* If only the other trace has a match, the next match is there. */
static void test_next_match_can_be_in_the_other_trace(void **state)
{
	(void)state;
	struct weft_compare c = two();
	assert_false(weft_compare_action_state(&c, WEFT_ACTION_NEXT_MATCH) & WEFT_ACTION_ENABLED);
	assert_int_equal(weft_compare_search(&c, "other", NULL), WEFT_OK);
	while (weft_compare_search_step(&c, 1000))
		;
	assert_int_equal(c.viewers[0]->view->found, 0);
	assert_true(weft_compare_action_state(&c, WEFT_ACTION_NEXT_MATCH) & WEFT_ACTION_ENABLED);
	assert_int_equal(weft_compare_act(&c, WEFT_ACTION_NEXT_MATCH), WEFT_OK);
	assert_int_equal(c.active, 1);
	assert_int_equal(c.viewers[1]->selected, with_id(c.viewers[1], 3));
	assert_int_equal(weft_compare_search(&c, "never", NULL), WEFT_OK);
	while (weft_compare_search_step(&c, 1000))
		;
	assert_int_equal(weft_compare_act(&c, WEFT_ACTION_PREVIOUS_MATCH), WEFT_OK);
	assert_int_equal(c.active, 0);
	assert_int_equal(c.viewers[0]->selected, with_id(c.viewers[0], 4));
	weft_compare_finish(&c);
}

static void test_pointer_acts_only_on_the_trace_below_it(void **state)
{
	(void)state;
	struct weft_compare c = two();
	double x, y;
	spot_of(c.viewers[1], with_id(c.viewers[1], 3), &x, &y);
	weft_compare_motion(&c, x, y + c.tops_px[1]);
	assert_int_equal(c.viewers[1]->hovered, with_id(c.viewers[1], 3));
	assert_int_equal(c.viewers[0]->hovered, WEFT_NONE);
	weft_compare_press(&c, x, y + c.tops_px[1], WEFT_BUTTON_SECONDARY, 0, 1);
	assert_true(near(c.viewers[1]->menu_y_px, y + c.tops_px[1], 0.1));
	assert_int_equal(c.viewers[1]->selected, with_id(c.viewers[1], 3));
	spot_of(c.viewers[0], with_id(c.viewers[0], 4), &x, &y);
	weft_compare_motion(&c, x, y);
	assert_int_equal(c.viewers[1]->hovered, WEFT_NONE);
	weft_compare_leave(&c);
	assert_int_equal(c.viewers[0]->hovered, WEFT_NONE);
	weft_compare_finish(&c);
}

static void test_saved_url_restores_both_views(void **state)
{
	(void)state;
	struct weft_compare c = two();
	char text[600], again[600];
	assert_int_equal(weft_compare_go(&c, "#t=1ms..4ms&find=other&sel=3&on=1&free=1", NULL), WEFT_OK);
	assert_true(c.active == 1 && c.free);
	while (weft_compare_search_step(&c, 100))
		;
	assert_int_equal(weft_compare_found(&c), 1);
	weft_compare_place(&c, text, sizeof text);
	assert_string_equal(text, "t=1ms..4ms&find=other&sel=3&on=1&free=1");
	assert_true(weft_compare_go(&c, "sel=77", NULL) < 0);
	weft_compare_place(&c, again, sizeof again);
	assert_string_equal(again, text);
	assert_int_equal(weft_compare_go(&c, "t=2ms..3ms", NULL), WEFT_OK);
	assert_true(same_times(&c) && !c.free && c.active == 0);
	weft_compare_finish(&c);
}

static void test_replaced_trace_keeps_the_view(void **state)
{
	(void)state;
	struct weft_compare c = two();
	struct weft_viewer *v = c.viewers[0];
	weft_viewer_select(v, with_id(v, 4));
	weft_viewer_show(v, 100000, 400000);
	weft_viewer_set_metric(v, 0, false);
	weft_viewer_search(v, "never", NULL);
	v->has_span = true;
	weft_compare_follow(&c);
	weft_viewer_destroy(weft_compare_replace(&c, 0, open_text(SERVER)));
	v = c.viewers[0];
	while (weft_compare_search_step(&c, 100))
		;
	int64_t from, to;
	weft_viewer_times(v, &from, &to);
	assert_true(from == 100000 && to == 400000 && same_times(&c));
	assert_int_equal(v->selected, with_id(v, 4));
	assert_true(v->view->found == 1 && v->hidden_metrics[0] && v->has_span);
	assert_true(weft_compare_take_changes(&c) & WEFT_CHANGED_SELECTION);
	/* When a trace is replaced, a selected promise that the new trace lacks is no longer selected, and a view of the end of
	 * the trace still shows its end. */
	weft_compare_remove(&c, 1);
	weft_viewer_show(v, 500000, v->model->end_ns + 1000);
	weft_viewer_destroy(weft_compare_replace(&c, 0, open_text(SLOWER)));
	weft_viewer_times(c.viewers[0], &from, &to);
	assert_true(to >= c.viewers[0]->model->end_ns && from > 7000000);
	assert_int_equal(c.viewers[0]->selected, WEFT_NONE);
	weft_compare_finish(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_locked_axes_show_the_same_times),
	    cmocka_unit_test(test_row_of_a_difference_shows_its_place_in_both_traces),
	    cmocka_unit_test(test_highlights_apply_to_both_traces),
	    cmocka_unit_test(test_next_match_can_be_in_the_other_trace),
	    cmocka_unit_test(test_pointer_acts_only_on_the_trace_below_it),
	    cmocka_unit_test(test_saved_url_restores_both_views),
	    cmocka_unit_test(test_replaced_trace_keeps_the_view),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
