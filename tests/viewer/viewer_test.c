/* viewer_test.c: the effects of pointers, keys and links on the picture and the panel.  SPDX-License-Identifier: ISC */
#include "pressing.h"
#include "scene.h"

#include "draw/frame.h"
#include "viewer/actions.h"
#include "viewer/findings.h"
#include "viewer/matches.h"
#include "viewer/search.h"
#include "viewer/summary.h"
#include "viewer/table.h"
#include "viewer/url_state.h"

#include <inttypes.h>

static void test_draw_fills_the_panes(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	size_t count = v->lists[WEFT_PANE_PICTURE].count;
	assert_true(count > 10 && v->panes[WEFT_PANE_PICTURE].list == &v->lists[WEFT_PANE_PICTURE]);
	assert_true(v->is_drawn);
	weft_viewer_resize(v, 640, 480, 2);
	assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_PICTURE);
	assert_int_equal(weft_viewer_take_changes(v), 0);
	assert_false(v->is_drawn);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_true(near((double)v->lists[WEFT_PANE_PICTURE].width_px, 320, 0.1));
	weft_viewer_destroy(v);
	weft_viewer_destroy(NULL);
}

/* Returns the number of shapes that show counters. */
static size_t shapes_of_counters(struct weft_viewer *v)
{
	size_t found = 0;
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	const struct weft_draw_list *list = v->panes[WEFT_PANE_PICTURE].list;
	for (size_t i = 0; i < list->count; i++)
		found += list->prims[i].paint >= WEFT_PAINT_COUNTER_0 && list->prims[i].paint <= WEFT_PAINT_COUNTER_5;
	return found;
}

static void test_counters_are_hidden_and_shown(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	size_t shown = shapes_of_counters(v);
	assert_true(shown > 0);
	weft_viewer_act(v, WEFT_ACTION_METRICS);
	assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_PICTURE);
	assert_int_equal(shapes_of_counters(v), 0);
	weft_viewer_act(v, WEFT_ACTION_METRICS);
	assert_int_equal(shapes_of_counters(v), shown);
	weft_viewer_destroy(v);
}

static void test_panning_and_zooming_show_other_times(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	struct weft_error err;
	int64_t from, to, end = v->model->end_ns;
	weft_viewer_times(v, &from, &to);
	assert_true(from < 0 && to > end);
	int64_t under = weft_view_time(v->view, 300);
	weft_viewer_zoom(v, 4, 300);
	assert_true(near(weft_view_x(v->view, under), 300, 1));
	weft_viewer_pan(v, 50, 0);
	assert_true(near(weft_view_x(v->view, under), 350, 1));
	assert_int_equal(weft_viewer_set_start(v, "200us", &err), WEFT_OK);
	int64_t length, from2;
	weft_viewer_times(v, &from2, &length);
	assert_true(from2 == 200000);
	assert_int_equal(weft_viewer_set_duration(v, "0.1ms", &err), WEFT_OK);
	weft_viewer_times(v, &from, &to);
	assert_true(from == 200000 && to == 300000);
	/* If the shown time would end behind the trace, the viewer shows the rest of the trace up to its end. */
	weft_viewer_show_all(v);
	assert_int_equal(weft_viewer_set_start(v, "200us", &err), WEFT_OK);
	weft_viewer_times(v, &from, &to);
	assert_true(from == 200000 && to == v->model->end_ns);
	weft_viewer_show(v, 200000, 300000);
	assert_int_equal(weft_viewer_set_start(v, "soon", &err), WEFT_EINVAL);
	assert_string_equal(err.what, "a start must be a number with ns, us, ms or s");
	assert_int_equal(weft_viewer_set_duration(v, "0", &err), WEFT_EINVAL);
	weft_viewer_show_promise(v, with_id(v, 4));
	assert_true(weft_view_x(v->view, v->model->promises[with_id(v, 4)].start_ns) > 0);
	weft_viewer_show_promise(v, WEFT_SYSTEM);
	weft_viewer_show_promise(v, WEFT_NONE);
	struct weft_range r = weft_viewer_range_x(v);
	weft_viewer_scroll_to_x(v, r.lower);
	assert_true(near(weft_viewer_range_x(v).value, r.lower, 2 / v->view->px_per_ns));
	weft_viewer_show_all(v);
	r = weft_viewer_range_x(v);
	assert_true(near(r.page, r.upper - r.lower, r.page / 50));
	weft_viewer_destroy(v);

	v = open_random(11);
	weft_viewer_resize(v, 800, 300, 1);
	assert_true(v->view->curve > 0);
	r = weft_viewer_range_y(v);
	weft_viewer_scroll_to_y(v, r.lower);
	assert_true(near(v->view->focus, 0, 0.01));
	weft_viewer_scroll_to_y(v, r.upper - r.page);
	assert_true(near(v->view->focus, v->view->slots, 0.01));
	assert_true(near(weft_viewer_range_y(v).value + weft_viewer_range_y(v).page, weft_viewer_range_y(v).upper, 0.01));
	weft_viewer_destroy(v);
}

/* Writes a trace of a server that runs, then accepts a connection, and gets two requests on it. */
#define STARTS_UP(first)                                                                                                         \
	"((time 100.000000000)(op(Creates -1 1 listen)))\n"                                                                      \
	"((time 100.000001000)(op(Switch 1)))\n"                                                                                 \
	"((time 100.00" first "00000)(op(Creates 1 2 connection)))\n"                                                            \
	"((time 100.00" first "01000)(op(Creates 2 3 request)))\n"                                                               \
	"((time 100.00" first "02000)(op(Resolves 1 3())))\n"                                                                    \
	"((time 100.008000000)(op(Creates 2 4 request)))\n"                                                                      \
	"((time 100.009000000)(op(Resolves 1 4())))\n"                                                                           \
	"((time 100.009500000)(op(Switch -1)))\n"

static void test_picture_begins_with_the_first_request_after_a_long_start_up(void **state)
{
	(void)state;
	static const char *const traces[] = {STARTS_UP("50"), STARTS_UP("10")};
	for (int is_short = 0; is_short < 2; is_short++) {
		struct weft_viewer *v = open_text(traces[is_short]);
		const int64_t first_ns = v->model->promises[with_id(v, 3)].start_ns;
		char text[WEFT_SUMMARY_BYTES];
		int64_t from, to;
		weft_viewer_times(v, &from, &to);
		assert_true(is_short ? from <= 0 : from > first_ns / 10 * 9 && from < first_ns);
		assert_true(to >= v->model->end_ns);
		assert_int_equal(strstr(weft_viewer_summary(v, text), "Home shows all") != NULL, !is_short);
		weft_viewer_show_all(v);
		weft_viewer_times(v, &from, &to);
		assert_true(from <= 0 && to >= v->model->end_ns);
		assert_null(strstr(weft_viewer_summary(v, text), "Home shows all"));
		weft_viewer_destroy(v);
	}
}

static void test_reveal_makes_promise_visible(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 12; seed++) {
		struct weft_viewer *v = open_random(seed);
		weft_viewer_resize(v, 900, 400, 1);
		for (int zoom = 0; zoom < 3; zoom++) {
			for (uint32_t p = 1; p < v->model->promise_count; p += 7) {
				weft_viewer_reveal(v, p);
				double x0 = weft_view_x(v->view, v->model->promises[p].start_ns);
				double x1 = weft_view_x(v->view, v->model->promises[p].end_ns);
				double slot = weft_view_slot(v->view, v->layout->rows[p]);
				double y = weft_view_y(v->view, slot);
				assert_true(x1 > 0 && x0 < 900 && y > 0 && y < 400);
				assert_true(weft_view_y(v->view, slot + 0.5) - weft_view_y(v->view, slot - 0.5) > 8);
				/* If a promise is in view, reveal does not move the picture. */
				int64_t from = v->view->from_ns;
				double focus = v->view->focus;
				weft_viewer_reveal(v, p);
				assert_true(v->view->from_ns == from && near(v->view->focus, focus, 1e-9));
			}
			weft_viewer_zoom(v, 30, 450);
		}
		weft_viewer_destroy(v);
	}
}

static void test_pointer_selects_drags_and_zooms(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	double x, y;
	spot_of(v, with_id(v, 4), &x, &y);
	weft_viewer_motion(v, x, y);
	assert_int_equal(v->hovered, with_id(v, 4));
	assert_int_equal(weft_viewer_take_changes(v), WEFT_CHANGED_HOVER | WEFT_CHANGED_OVERLAY);
	assert_int_equal(weft_viewer_cursor(v), WEFT_CURSOR_LINK);
	click(v, with_id(v, 4), 1);
	assert_int_equal(v->selected, with_id(v, 4));
	assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_SELECTION);
	/* A double click highlights the merged promise. */
	click(v, with_id(v, 8), 1);
	click(v, with_id(v, 8), 2);
	assert_int_equal(v->view->found, 2);
	assert_true(weft_view_is_highlighted(v->view, with_id(v, 9)));
	assert_int_equal(v->highlighting, WEFT_HIGHLIGHT_RELATED);
	/* A drag moves the picture and selects nothing. */
	weft_viewer_zoom(v, 4, 640);
	int64_t under = weft_view_time(v->view, 500);
	weft_viewer_press(v, 500, 200, WEFT_BUTTON_PRIMARY, 0, 1);
	weft_viewer_motion(v, 501, 200);
	assert_true(near(weft_view_x(v->view, under), 500, 1)); /* no drag yet: this may become a click */
	weft_viewer_motion(v, 540, 210);
	assert_true(near(weft_view_x(v->view, under), 540, 1));
	weft_viewer_release(v, 540, 210);
	assert_int_equal(v->selected, with_id(v, 8));
	/* A drag with shift measures the time. */
	weft_viewer_press(v, 600, 200, WEFT_BUTTON_PRIMARY, WEFT_SHIFT, 1);
	weft_viewer_motion(v, 400, 210);
	weft_viewer_release(v, 400, 210);
	assert_true(
	    v->has_span && v->span_from_ns == weft_view_time(v->view, 400) && v->span_to_ns == weft_view_time(v->view, 600));
	int64_t from, to, span_from = v->span_from_ns, span_to = v->span_to_ns;
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_ZOOM_SPAN), WEFT_OK);
	weft_viewer_times(v, &from, &to);
	assert_true(from == span_from && to == span_to);
	/* The wheel zooms at the pointer, and pans with shift. */
	under = weft_view_time(v->view, 100);
	double scale = v->view->px_per_ns;
	weft_viewer_wheel(v, 100, 150, 0, -1, 0);
	assert_true(v->view->px_per_ns > scale && near(weft_view_x(v->view, under), 100, 1));
	weft_viewer_wheel(v, 100, 150, 0, -1, WEFT_SHIFT);
	assert_true(near(weft_view_x(v->view, under), 180, 1));
	/* An extreme wheel value shows everything, or the smallest possible part. */
	weft_viewer_wheel(v, 100, 150, 0, 1e300, 0);
	weft_viewer_times(v, &from, &to);
	assert_true(from <= 0 && to >= v->model->end_ns);
	weft_viewer_wheel(v, 100, 150, 0, -1e300, 0);
	weft_viewer_times(v, &from, &to);
	assert_int_equal(to - from, 200);
	weft_viewer_wheel(v, 100, 150, 0, 1e300, 0);
	weft_viewer_pinch(v, 180, 150, 0.5, 10, 5);
	weft_viewer_show_all(v);
	/* The secondary button opens the menu. */
	spot_of(v, with_id(v, 6), &x, &y);
	weft_viewer_take_changes(v);
	weft_viewer_press(v, x, y, WEFT_BUTTON_SECONDARY, 0, 1);
	weft_viewer_release(v, x, y);
	assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_MENU);
	assert_int_equal(v->selected, with_id(v, 6));
	assert_true(near(v->menu_x_px, x, 0.01));
	weft_viewer_leave(v);
	assert_int_equal(v->hovered, WEFT_NONE);
	weft_viewer_destroy(v);
}

static void drag(struct weft_viewer *v, double x0, double x1, double y)
{
	weft_viewer_motion(v, x0, y);
	weft_viewer_press(v, x0, y, WEFT_BUTTON_PRIMARY, 0, 1);
	weft_viewer_motion(v, (x0 + x1) / 2, y);
	weft_viewer_motion(v, x1, y);
	weft_viewer_release(v, x1, y);
}

static void test_drags_in_overview_and_ruler_move_or_measure(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	int64_t from, to, from2, to2, length = v->model->end_ns;
	const struct weft_pane *overview = &v->panes[WEFT_PANE_OVERVIEW], *ruler = &v->panes[WEFT_PANE_RULER];
	/* The server sleeps for more than half of the time. */
	assert_non_null(v->view->lulls);
	weft_viewer_fold_sleep(v, false);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_true(overview->list->count > 5 && ruler->list->count > 5 && overview->y_px == 0);
	assert_true(near(ruler->y_px + ruler->height_px, v->panes[WEFT_PANE_PICTURE].y_px, 0.01));
	/* A drag in the overview moves the shown part. */
	weft_viewer_show(v, length / 4, length / 2);
	double x0 = weft_overview_x(v->overview, v->width_px, length / 4 + length / 8);
	double x1 = weft_overview_x(v->overview, v->width_px, length / 2 + length / 8);
	drag(v, x0, x1, 20);
	weft_viewer_times(v, &from, &to);
	assert_true(near((double)from, (double)length / 2, (double)length / 100));
	assert_true(near((double)(to - from), (double)length / 4, 10) && v->selected == WEFT_NONE);
	/* A drag at an end of the shown part moves only this end. */
	x0 = weft_overview_x(v->overview, v->width_px, to);
	x1 = weft_overview_x(v->overview, v->width_px, length - length / 8);
	weft_viewer_motion(v, x0, 20);
	assert_int_equal(weft_viewer_cursor(v), WEFT_CURSOR_RESIZE);
	drag(v, x0, x1, 20);
	weft_viewer_times(v, &from2, &to2);
	assert_true(near((double)from2, (double)from, 10) && near((double)to2, (double)length * 7 / 8, (double)length / 100));
	/* A click elsewhere in the overview moves the shown part there. */
	x0 = weft_overview_x(v->overview, v->width_px, length / 5);
	drag(v, x0, x0, 20);
	weft_viewer_times(v, &from, &to);
	assert_true(near((double)(from + to) / 2, (double)length / 5, (double)length / 50));
	/* A drag in the ruler measures; the ruler shows the time at the pointer. */
	weft_viewer_motion(v, 300, ruler->y_px + 5);
	assert_int_equal(weft_viewer_cursor(v), WEFT_CURSOR_MEASURE);
	drag(v, 300, 500, ruler->y_px + 5);
	assert_true(v->has_span && v->has_pointer && v->pointer_ns == weft_view_time(v->view, 500));
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_true(v->panes[WEFT_PANE_GUIDES].list->count >= 4);
	weft_viewer_leave(v);
	assert_false(v->has_pointer);
	/* The window has no space for the overview, or the user has switched it off. */
	double y = v->panes[WEFT_PANE_PICTURE].y_px;
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_OVERVIEW), WEFT_OK);
	assert_true(overview->height_px == 0 && near(v->panes[WEFT_PANE_PICTURE].y_px, y - WEFT_OVERVIEW_PX, 0.01));
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_int_equal(overview->list->count, 0);
	weft_viewer_set_overview(v, true);
	weft_viewer_resize(v, 100, 30, 1);
	assert_true(overview->height_px == 0 && ruler->height_px == 0);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	weft_viewer_resize(v, 1, 1, 1);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	weft_viewer_destroy(v);
}

static bool has_text(const struct weft_draw_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->prims[i].kind == WEFT_PRIM_TEXT && list->prims[i].count == strlen(text) &&
		    memcmp(list->text + list->prims[i].first, text, strlen(text)) == 0)
			return true;
	return false;
}

static size_t rings(const struct weft_draw_list *list)
{
	size_t count = 0;
	for (size_t i = 0; i < list->count; i++)
		count += list->prims[i].kind == WEFT_PRIM_RECT && list->prims[i].paint == WEFT_PAINT_ACCENT;
	return count;
}

static void test_marks_are_drawn_over_the_picture(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	const struct weft_draw_list *marks = &v->lists[WEFT_PANE_MARKS];
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_int_equal(marks->count, 0);
	weft_viewer_select(v, with_id(v, 4));
	assert_true(v->is_drawn && !v->is_overlay_drawn); /* only the overlay has to be drawn again */
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_true(marks->count >= 5 && has_text(marks, "GET /never"));
	size_t count = rings(marks), all;
	double x, y;
	spot_of(v, with_id(v, 6), &x, &y);
	weft_viewer_motion(v, x, y);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_int_equal(rings(marks), count + 4);
	/* The filter draws a veil over the picture, through which only highlighted promises are visible. */
	weft_viewer_set_filter(v, true);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_int_equal(rings(marks), count + 4);
	all = marks->count;
	weft_viewer_search(v, "never", NULL);
	while (weft_viewer_search_step(v, 1000))
		;
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_int_equal(marks->prims[0].paint, WEFT_PAINT_BACKGROUND);
	assert_true(marks->prims[0].alpha < 255 && marks->count > all + 1);
	assert_false(has_text(marks, "GET /fails"));
	weft_viewer_destroy(v);
}

/* The legend has every sign of the picture; the corner names the active filter, and a click there removes it. */
static void test_legend_has_every_sign_and_the_corner_names_the_active_filter(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	const struct weft_draw_list *guides = &v->lists[WEFT_PANE_GUIDES], *picture = &v->lists[WEFT_PANE_PICTURE];
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_false(has_text(guides, "code of the promise runs"));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_LEGEND), WEFT_OK);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_true(has_text(guides, "code of the promise runs") && has_text(guides, "waits for a promise"));
	for (size_t i = 0; i < picture->count; i++) {
		const struct weft_prim *p = &picture->prims[i];
		bool is_sign = (p->paint >= WEFT_PAINT_CREATION && p->paint <= WEFT_PAINT_SIGNAL) || p->paint == WEFT_PAINT_SLEEP;
		bool found = !is_sign || p->kind == WEFT_PRIM_TEXT;
		for (size_t k = 0; k < guides->count && !found; k++)
			found = guides->prims[k].paint == p->paint && guides->prims[k].kind != WEFT_PRIM_TEXT;
		assert_true(found);
	}
	weft_viewer_act(v, WEFT_ACTION_LEGEND);
	weft_viewer_focus(v, with_id(v, 4));
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_false(has_text(guides, "code of the promise runs"));
	double x = 60, y = v->panes[WEFT_PANE_PICTURE].y_px + 12;
	weft_viewer_motion(v, x, y);
	assert_int_equal(weft_viewer_cursor(v), WEFT_CURSOR_LINK);
	weft_viewer_press(v, x, y, WEFT_BUTTON_PRIMARY, 0, 1);
	weft_viewer_release(v, x, y);
	assert_int_equal(v->focused, WEFT_NONE);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	weft_viewer_press(v, x, y, WEFT_BUTTON_PRIMARY, 0, 1);
	weft_viewer_release(v, x, y);
	weft_viewer_destroy(v);
}

/* The tip of an arrow is a sentence; the arrows of the selected promise are drawn over the picture. */
static void test_picture_for_a_file_has_a_title_and_on_request_the_legend(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	struct weft_draw_list list = {0};
	char facts[WEFT_SUMMARY_BYTES];
	weft_viewer_set_name(v, "server.ctf");
	weft_viewer_show(v, 200000, 400000);
	for (int legend = 0; legend < 2; legend++) {
		weft_viewer_set_legend(v, legend);
		assert_int_equal(weft_viewer_draw_file(v, &list, NULL, NULL, NULL), WEFT_OK);
		assert_non_null(strstr(weft_viewer_caption_facts(v, facts), "trace server.ctf \xc2\xb7 "));
		assert_non_null(strstr(facts, "shown from 200 "));
		assert_true(has_text(&list, facts));
		assert_int_equal(has_text(&list, "waits for a promise"), legend);
	}
	weft_draw_finish(&list);
	weft_viewer_destroy(v);
}

static void test_tips_describe_arrows(void **state)
{
	(void)state;
	static const char *const verbs[] = {[WEFT_LINK_RESOLVE] = " resolved ",
	    [WEFT_LINK_READ] = " read the result of ",
	    [WEFT_LINK_AWAIT] = " waited for ",
	    [WEFT_LINK_SIGNAL] = " sent "};
	struct weft_viewer *v = open_text(SERVER);
	char tip[WEFT_TIP_BYTES], id[32];
	size_t told = 0;
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	for (uint32_t i = 0; i < v->model->link_count; i++) {
		const struct weft_link *link = &v->model->links[i];
		struct weft_arrow_ends e = weft__arrow_ends(v->model, link);
		if (!weft__is_arrow(v->layout, link) || v->layout->rows[e.from] == v->layout->rows[e.to])
			continue;
		double x = (weft_view_x(v->view, e.from_ns) + weft_view_x(v->view, e.to_ns)) / 2;
		double y0 = weft_view_y(v->view, weft_view_slot(v->view, v->layout->rows[e.from]));
		double y1 = weft_view_y(v->view, weft_view_slot(v->view, v->layout->rows[e.to]));
		weft_viewer_motion(v, x, v->panes[WEFT_PANE_PICTURE].y_px + (y0 + y1) / 2);
		assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
		if (v->hovered_link != i) /* another arrow is drawn over it */
			continue;
		assert_true(weft_viewer_tip(v, tip));
		assert_true(has_text(&v->lists[WEFT_PANE_GUIDES], tip));
		bool failed = v->model->promises[link->to].end == WEFT_END_FAILED;
		assert_true(failed || strstr(tip, verbs[link->kind]));
		snprintf(id, sizeof id, " %" PRId64, v->model->promises[link->to].id);
		assert_non_null(strstr(tip, id));
		told++;
	}
	assert_true(told >= 3);
	weft_viewer_leave(v);
	assert_false(weft_viewer_tip(v, tip));
	/* All arrows of the selected promise are over the picture. */
	uint32_t link = 0;
	while (!weft__is_arrow(v->layout, &v->model->links[link]))
		link++;
	weft_viewer_select(v, v->model->links[link].to);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	size_t arrows = 0;
	for (size_t i = 0; i < v->lists[WEFT_PANE_MARKS].count; i++)
		arrows += v->lists[WEFT_PANE_MARKS].prims[i].kind == WEFT_PRIM_TRIANGLE;
	assert_true(arrows > 0);
	weft_viewer_destroy(v);
}

static void test_go_to_actions_follow_links(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	assert_false(weft_viewer_walk(v, WEFT_WALK_CREATOR));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_GO_CREATOR), WEFT_EINVAL);
	weft_viewer_select(v, with_id(v, 2));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_GO_WOKEN), WEFT_OK);
	assert_int_equal(v->selected, with_id(v, 3));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_GO_AWAITED), WEFT_OK);
	assert_int_equal(v->selected, with_id(v, 2));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_GO_RESOLVER), WEFT_OK);
	assert_int_equal(v->selected, with_id(v, 1));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_GO_CREATOR), WEFT_EINVAL); /* the system has no row to go to */
	for (int i = 0; i < 3; i++)
		assert_int_equal(weft_viewer_act(v, WEFT_ACTION_BACK), WEFT_OK);
	assert_int_equal(v->selected, with_id(v, 2));
	weft_viewer_destroy(v);
}

static void test_history_goes_back_and_forward(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	assert_false(weft_viewer_back(v));
	weft_viewer_select(v, with_id(v, 1));
	weft_viewer_select(v, with_id(v, 2));
	weft_viewer_select(v, with_id(v, 4));
	assert_true(weft_viewer_back(v));
	assert_int_equal(v->selected, with_id(v, 2));
	assert_true(weft_viewer_back(v));
	assert_int_equal(v->selected, with_id(v, 1));
	assert_true(weft_viewer_back(v));
	assert_int_equal(v->selected, WEFT_NONE);
	assert_false(weft_viewer_back(v));
	assert_true(weft_viewer_forward(v) && weft_viewer_forward(v));
	assert_int_equal(v->selected, with_id(v, 2));
	/* A new action replaces the actions that could be done again. */
	weft_viewer_select(v, with_id(v, 6));
	assert_false(weft_viewer_can_go_forward(v));
	weft_viewer_select(v, WEFT_NONE);
	assert_true(weft_viewer_back(v));
	assert_int_equal(v->selected, with_id(v, 6));
	for (int i = 0; i < 5000; i++)
		weft_viewer_select(v, 1 + (uint32_t)i % 3);
	assert_true(v->history.count <= 1000);
	weft_viewer_select(v, WEFT_SYSTEM);
	assert_int_equal(v->selected, WEFT_NONE);
	weft_viewer_destroy(v);
}

/* Returns the picture and everything around it as text, which the caller frees. */
static char *whole_picture(struct weft_viewer *v)
{
	char *all = NULL;
	size_t at = 0;
	while (weft_viewer_search_step(v, 1000))
		;
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	for (int pane = 0; pane < WEFT_PANES; pane++) {
		char *text;
		size_t size;
		assert_int_equal(weft_draw_dump(v->panes[pane].list, &text, &size), WEFT_OK);
		all = realloc(all, at + size + 1);
		memcpy(all + at, text, size + 1);
		at += size;
		free(text);
	}
	return all;
}

/* Performs an action of a user; each action is one step back. */
static void do_one(struct weft_viewer *v, int which)
{
	uint32_t count = (uint32_t)v->model->promise_count;
	weft_viewer_leave(v);
	switch (which) {
	case 0: weft_viewer_act(v, WEFT_ACTION_ZOOM_IN); break;
	case 1:
		for (int notch = 0; notch < 5; notch++)
			weft_viewer_wheel(v, 300, 400, 0, -1, 0);
		break;
	case 2: weft_viewer_select_and_reveal(v, 1 + count / 2); break;
	case 3: weft_viewer_act(v, WEFT_ACTION_FOLD_KIND); break;
	case 4: weft_viewer_wheel(v, 300, 400, 0, 3, WEFT_CONTROL); break;
	case 5: weft_viewer_act(v, WEFT_ACTION_FOCUS); break;
	case 6: weft_viewer_act(v, WEFT_ACTION_ZOOM_OUT); break;
	case 7:
		weft_viewer_press(v, 400, 350, WEFT_BUTTON_PRIMARY, 0, 1);
		weft_viewer_motion(v, 420, 380);
		weft_viewer_motion(v, 350, 380);
		weft_viewer_release(v, 350, 380);
		break;
	case 8: weft_viewer_act(v, WEFT_ACTION_METRICS); break;
	case 9: weft_viewer_act(v, WEFT_ACTION_RELATED); break;
	case 10: weft_viewer_search(v, "kind:task", NULL); break;
	case 11: weft_viewer_act(v, WEFT_ACTION_FILTER); break;
	case 12: weft_viewer_act(v, WEFT_ACTION_GROUP); break;
	case 13: weft_viewer_act(v, WEFT_ACTION_RELATED); break;
	default: weft_viewer_act(v, WEFT_ACTION_ZOOM_PROMISE); break;
	}
	weft_viewer_leave(v);
}

static void test_every_action_can_be_undone(void **state)
{
	(void)state;
	size_t all = 0;
	for (uint64_t seed = 1; seed < 9; seed++) {
		struct weft_viewer *v = open_random(seed);
		enum { STEPS = 15 };
		char *seen[STEPS + 1] = {whole_picture(v)};
		int steps = 0;
		for (int i = 0; i < STEPS; i++) {
			do_one(v, i);
			char *now = whole_picture(v);
			if (strcmp(now, seen[steps]) != 0)
				seen[++steps] = now;
			else /* if everything is in view, a drag moves nothing */
				free(now);
		}
		all += (size_t)steps;
		for (int i = steps; i-- > 0;) {
			assert_int_equal(weft_viewer_act(v, WEFT_ACTION_BACK), WEFT_OK);
			char *now = whole_picture(v);
			assert_string_equal(now, seen[i]);
			free(now);
		}
		assert_int_equal(weft_viewer_act(v, WEFT_ACTION_BACK), WEFT_EINVAL);
		for (int i = 1; i <= steps; i++) {
			assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FORWARD), WEFT_OK);
			char *now = whole_picture(v);
			assert_string_equal(now, seen[i]);
			free(now);
		}
		assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FORWARD), WEFT_EINVAL);
		for (int i = 0; i <= steps; i++)
			free(seen[i]);
		weft_viewer_destroy(v);
	}
	assert_true(all >= 105);
}

/* A link shows the same picture, to a pixel, as the steps by hand. */
static void test_link_restores_the_same_picture(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 9; seed++) {
		struct weft_viewer *v = open_random(seed), *other = open_random(seed);
		for (int i = 0; i < 60; i++) {
			char link[2048];
			static const enum weft_action also[] = {WEFT_ACTION_SHOW_ALL, WEFT_ACTION_GROUP, WEFT_ACTION_FOLD_KIND,
			    WEFT_ACTION_FOLD_SLEEP, WEFT_ACTION_ROWS_DOWN};
			do_one(v, i % 15);
			weft_viewer_act(v, also[i % (sizeof also / sizeof *also)]);
			if (i % 7 == 0)
				weft_viewer_resize(v, 600 + 97 * i % 700, 500, 1);
			weft_viewer_resize(other, v->width_px, v->height_px, 1);
			char *here = whole_picture(v);
			weft_viewer_place(v, link, sizeof link);
			assert_int_equal(weft_viewer_go(other, link, NULL), WEFT_OK);
			char *there = whole_picture(other);
			assert_string_equal(here, there);
			free(here);
			free(there);
		}
		weft_viewer_destroy(v);
		weft_viewer_destroy(other);
	}
}

static size_t search(struct weft_viewer *v, const char *text, uint32_t step)
{
	assert_int_equal(weft_viewer_search(v, text, NULL), WEFT_OK);
	while (weft_viewer_search_step(v, step))
		;
	assert_false(weft_viewer_is_searching(v));
	return v->view->found;
}

static void test_search_text_is_kept_on_one_line(void **state)
{
	struct weft_viewer *v = open_text("((time 1.0)(op(Creates -1 1 task)))((time 1.1)(op(Label 1 \"two\\nlines\")))"
					  "((time 1.2)(op(Creates -1 2 task)))((time 1.3)(op(Label 2 one)))");
	(void)state;
	weft_viewer_search_like(v, with_id(v, 1));
	assert_string_equal(v->search_text, "label:\"two\" kind:=\"task\"");
	while (weft_viewer_search_step(v, 1))
		;
	assert_int_equal(v->view->found, 1);
	assert_int_equal(search(v, "task\none\t", 1), 1);
	assert_string_equal(v->search_text, "task one ");
	weft_viewer_destroy(v);
}

static void test_search_finds_matches_in_time_order(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	struct weft_error err;
	assert_int_equal(search(v, "get", 2), 3);
	assert_int_equal(search(v, "get never", 1), 1);
	assert_int_equal(search(v, "get", 100), 3);
	assert_int_equal(v->highlighting, WEFT_HIGHLIGHT_SEARCH);
	/* The next match is the next one in time; after the last comes the first. */
	assert_int_equal(weft_viewer_match_number(v), 0);
	assert_int_equal(weft_viewer_next_match(v), with_id(v, 2));
	assert_int_equal(weft_viewer_match_number(v), 1);
	assert_int_equal(weft_viewer_next_match(v), with_id(v, 4));
	assert_int_equal(weft_viewer_next_match(v), with_id(v, 6));
	assert_int_equal(weft_viewer_match_number(v), 3);
	assert_int_equal(weft_viewer_next_match(v), with_id(v, 2));
	assert_int_equal(weft_viewer_previous_match(v), with_id(v, 6));
	assert_int_equal(v->selected, with_id(v, 6));
	assert_int_equal(weft_viewer_search(v, "longer:soon", &err), WEFT_EINVAL);
	assert_string_equal(err.what, "longer: needs a duration, for example longer:5ms");
	assert_int_equal(v->view->found, 0);
	assert_string_equal(v->search_text, "longer:soon");
	assert_int_equal(weft_viewer_next_match(v), WEFT_NONE);
	assert_int_equal(search(v, "", 1), 0);
	assert_int_equal(v->highlighting, WEFT_HIGHLIGHT_NONE);
	/* The matches are the same however many promises each step of the search reads. */
	weft_viewer_destroy(v);
	static const char *const words[] = {"r", "re", "rea", "read", "read ", "read f", "pending", "kind:t", "kind:ta", "1",
	    "12", "longer:1us", "longer:50us", "failed", "longer:50us failed", "", "tcp"};
	for (uint64_t seed = 1; seed < 8; seed++) {
		v = open_random(seed);
		for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
			size_t words_bytes = (v->model->promise_count / 64 + 1) * sizeof *v->view->highlight;
			search(v, words[i], 1 + (uint32_t)seed * 13);
			size_t found = v->view->found;
			uint64_t *highlight = malloc(words_bytes);
			assert_non_null(highlight);
			memcpy(highlight, v->view->highlight, words_bytes);
			assert_int_equal(weft_view_find(v->view, words[i]), found);
			assert_memory_equal(highlight, v->view->highlight, words_bytes);
			free(highlight);
		}
		weft_viewer_destroy(v);
	}
}

static void test_clear_removes_first_the_interval_then_the_search_then_the_selection(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	search(v, "get", 100);
	weft_viewer_next_match(v);
	weft_viewer_press(v, 600, 200, WEFT_BUTTON_PRIMARY, WEFT_SHIFT, 1);
	weft_viewer_release(v, 600, 200);
	assert_false(v->has_span); /* an interval of length 0 */
	weft_viewer_press(v, 600, 200, WEFT_BUTTON_PRIMARY, WEFT_SHIFT, 1);
	weft_viewer_motion(v, 700, 200);
	weft_viewer_release(v, 700, 200);
	assert_true(v->has_span);
	assert_true(weft_viewer_clear(v));
	assert_true(!v->has_span && v->view->found == 3);
	assert_true(weft_viewer_clear(v));
	assert_true(v->view->found == 0 && v->selected != WEFT_NONE && v->search_text[0] == '\0');
	assert_true(weft_viewer_clear(v));
	assert_int_equal(v->selected, WEFT_NONE);
	assert_false(weft_viewer_clear(v));
	weft_viewer_destroy(v);
}

static void test_saved_url_restores_the_view(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	char text[1024], again[1024];
	struct weft_error err;
	assert_int_equal(
	    weft_viewer_go(v, "#t=0.1ms..0.6ms&find=GET+%2Fne&sel=4&filter=1&metrics=0&hold=1&what=ever", &err), WEFT_OK);
	assert_true(weft_viewer_is_searching(v));
	while (weft_viewer_search_step(v, 3))
		;
	assert_int_equal(v->view->found, 1);
	assert_int_equal(v->selected, with_id(v, 4));
	assert_true(v->filter && !v->metrics);
	size_t len = weft_viewer_place(v, text, sizeof text);
	assert_string_equal(text, "t=100us..600us&find=GET%20%2Fne&filter=1&sel=4&metrics=0&hold=1");
	assert_int_equal(len, strlen(text));
	assert_int_equal(weft_viewer_place(v, again, 8), len);
	assert_string_equal(again, "t=100us");
	assert_int_equal(weft_viewer_place(v, NULL, 0), len);
	/* A link with an invalid place changes nothing. */
	static const struct {
		const char *place, *what;
	} wrong[] = {
	    {"t=5", "t=5 is not a time range, for example 1.2ms..3.4ms"},
	    {"t=5ms..4ms", "t=5ms..4ms is not a time range, for example 1.2ms..3.4ms"},
	    {"sel=99", "there is no promise 99 in this trace"},
	    {"mark=4,99", "there is no promise 99 in this trace"},
	    {"related=what", "related=what is not the id of a promise"},
	    {"group=colour", "group=colour is none of kind, site, library and thread"},
	    {"sel=x&t=1ms..2ms", "sel=x is not the id of a promise"},
	    {"find=%4", "find=%4 is not URL-encoded, or is too long"},
	    {"find=id:x", "id: needs a number, for example id:18"},
	    {"y=-1", "y=-1 is not a row, for example 12.5"},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_true(weft_viewer_go(v, wrong[i].place, &err) < 0);
		assert_string_equal(err.what, wrong[i].what);
		weft_viewer_place(v, again, sizeof again);
		assert_string_equal(again, text);
	}
	assert_int_equal(weft_viewer_go(v, "", &err), WEFT_OK);
	assert_true(v->selected == WEFT_NONE && v->view->found == 0 && !v->view->holds_rows);
	/* Promises can be highlighted without a search. */
	assert_int_equal(weft_viewer_go(v, "mark=4,6&related=8", &err), WEFT_OK);
	assert_true(v->highlighting == WEFT_HIGHLIGHT_RELATED && v->view->found == 2);
	assert_int_equal(weft_viewer_go(v, "mark=4,6", &err), WEFT_OK);
	assert_true(v->view->found == 2 && weft_view_is_highlighted(v->view, with_id(v, 6)));
	weft_viewer_place(v, text, sizeof text);
	assert_non_null(strstr(text, "&mark=4,6"));
	assert_int_equal(weft_viewer_go(v, "", &err), WEFT_OK);
	assert_int_equal(v->view->found, 0);
	/* At a time without live promises there are no rows, but a scrollbar. */
	assert_int_equal(weft_viewer_go(v, "t=-90ms..-80ms", &err), WEFT_OK);
	struct weft_range range = weft_viewer_range_y(v);
	assert_true(v->view->slots == 0 && range.upper > range.lower && range.page > 0);
	assert_int_equal(weft_viewer_draw(v, &err), WEFT_OK);
	/* One action keeps the rows at their places, and the same action releases them. */
	assert_int_equal(weft_viewer_go(v, "t=0.5ms..0.6ms", &err), WEFT_OK);
	double collapsed = v->view->slots;
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_HOLD_ROWS), WEFT_OK);
	assert_true(weft_viewer_action_state(v, WEFT_ACTION_HOLD_ROWS) & WEFT_ACTION_ON);
	assert_true(v->view->slots == v->layout->row_count && collapsed < v->view->slots);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_HOLD_ROWS), WEFT_OK);
	assert_false(weft_viewer_action_state(v, WEFT_ACTION_HOLD_ROWS) & WEFT_ACTION_ON);
	assert_true(v->view->slots == collapsed);
	weft_viewer_destroy(v);
}

/* Focus shows only the promises that belong to one; a link contains the focus; after the focus, the view is as before. */
static void test_focus_shows_the_promises_belonging_to_one_promise(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	char before[1024], text[1024];
	struct weft_error err;
	assert_int_equal(weft_viewer_go(v, "t=0.1ms..0.6ms&find=GET", &err), WEFT_OK);
	while (weft_viewer_search_step(v, 100))
		;
	weft_viewer_place(v, before, sizeof before);
	uint32_t row_count = v->layout->row_count, all = (uint32_t)v->model->promise_count;
	size_t found = v->view->found;
	assert_true(found > 0);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FOCUS), WEFT_EINVAL);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_UNFOCUS), WEFT_EINVAL);
	for (uint32_t p = 1; p < all; p++) {
		weft_viewer_select(v, p);
		assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FOCUS), WEFT_OK);
		assert_true(v->focused == p && v->layout->rows[p] != WEFT_NONE && v->layout->row_count <= row_count);
		assert_true(weft_view_x(v->view, v->model->promises[p].start_ns) > 0);
		assert_int_equal(v->view->found, found);
		assert_false(weft_viewer_action_state(v, WEFT_ACTION_FOCUS) & WEFT_ACTION_ENABLED);
		assert_int_equal(weft_viewer_draw(v, &err), WEFT_OK);
		/* The link shows the same focus in a viewer of another place. */
		weft_viewer_place(v, text, sizeof text);
		assert_non_null(strstr(text, "&focus="));
		struct weft_viewer *other = open_text(SERVER);
		assert_int_equal(weft_viewer_go(other, text, &err), WEFT_OK);
		assert_true(other->focused == p && other->layout->row_count == v->layout->row_count);
		weft_viewer_copy_state(other, v);
		assert_int_equal(other->focused, p);
		weft_viewer_destroy(other);
		/* A click can select each promise that is shown, and no hidden one. */
		for (uint32_t q = 1; q < all; q++)
			if (v->layout->rows[q] == WEFT_NONE)
				weft_viewer_select(v, q);
		weft_viewer_menu(v);
		weft_viewer_select(v, WEFT_NONE);
		assert_int_equal(weft_viewer_act(v, WEFT_ACTION_UNFOCUS), WEFT_OK);
		assert_int_equal(v->layout->row_count, row_count);
	}
	weft_viewer_place(v, text, sizeof text);
	assert_string_equal(text, before);
	assert_true(weft_viewer_go(v, "focus=99", &err) < 0);
	assert_string_equal(err.what, "there is no promise 99 in this trace");
	weft_viewer_destroy(v);
}

static void test_actions_have_distinct_keys(void **state)
{
	(void)state;
	for (int a = 0; a < WEFT_ACTION_COUNT; a++) {
		const struct weft_action_info *info = weft_action_info((enum weft_action)a);
		char key[16];
		unsigned modifiers;
		assert_int_equal(weft_action_find(info->name), a);
		assert_true(strspn(info->name, "abcdefghijklmnopqrstuvwxyz-") == strlen(info->name));
		assert_non_null(weft_action_group_label((enum weft_action_group)info->group));
		int n = 0;
		for (; weft_action_key((enum weft_action)a, n, key, &modifiers); n++)
			assert_int_equal(weft_action_of_key(key, modifiers), a); /* no two actions have the same key */
		assert_true(n > 0);
	}
	size_t gestures;
	assert_non_null(weft_gestures(&gestures)[0].effect);
	assert_true(gestures > 5);
	assert_int_equal(weft_action_find("nothing"), WEFT_ACTION_COUNT);
	assert_int_equal(weft_action_of_key("Q", 0), WEFT_ACTION_COUNT);
	assert_int_equal(weft_action_of_key(" ", 0), WEFT_ACTION_METRICS);
	assert_int_equal(weft_action_of_key("+", WEFT_SHIFT), WEFT_ACTION_ZOOM_IN);
	assert_int_equal(weft_action_of_key("?", WEFT_SHIFT), WEFT_ACTION_SHORTCUTS);
	assert_int_equal(weft_action_of_key("N", WEFT_SHIFT), WEFT_ACTION_PREVIOUS_MATCH);
	assert_int_equal(weft_action_of_key("E", WEFT_CONTROL | WEFT_SHIFT), WEFT_ACTION_EXPORT_PNG);
	assert_int_equal(weft_action_of_key("e", WEFT_CONTROL), WEFT_ACTION_EXPORT_SVG);
	struct weft_viewer *v = open_text(SERVER);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_OPEN), WEFT_ENOTSUP);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_BACK), WEFT_EINVAL);
	for (int a = 0; a < WEFT_ACTION_COUNT; a++) {
		weft_viewer_select(v, with_id(v, 8));
		bool does = weft_action_info((enum weft_action)a)->who == WEFT_BY_CORE &&
			    (weft_viewer_action_state(v, (enum weft_action)a) & WEFT_ACTION_ENABLED);
		weft_viewer_take_changes(v);
		assert_int_equal(weft_viewer_act(v, (enum weft_action)a) == WEFT_OK, does);
		if (does && a != WEFT_ACTION_CLEAR)
			assert_int_not_equal(weft_viewer_take_changes(v), 0);
	}
	assert_int_equal(weft_viewer_action_state(v, WEFT_ACTION_METRICS), WEFT_ACTION_ENABLED | WEFT_ACTION_IS_SWITCH);
	weft_viewer_act(v, WEFT_ACTION_METRICS);
	assert_true(v->metrics);
	weft_viewer_destroy(v);
}

/* Presses the name of a promise in the gutter, `x` px from its left edge. */
static void press_name(struct weft_viewer *v, uint32_t promise, double x)
{
	double line_x, y;
	spot_of(v, promise, &line_x, &y);
	weft_viewer_motion(v, x, y);
	weft_viewer_press(v, x, y, WEFT_BUTTON_PRIMARY, 0, 1);
	weft_viewer_release(v, x, y);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
}

static void test_gutter_selects_folds_and_resizes(void **state)
{
	(void)state;
	static const char *const words[] = {"names=0", "names=300"};
	struct weft_viewer *v = open_text(SERVER);
	const struct weft_pane *gutter = &v->panes[WEFT_PANE_GUTTER], *picture = &v->panes[WEFT_PANE_PICTURE];
	const uint32_t loop = with_id(v, 1), request = with_id(v, 4);
	char place[400], tip[WEFT_TIP_BYTES];
	weft_viewer_set_names(v, true, 0);
	weft_viewer_resize(v, 1000, 600, 1);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_true(near(gutter->width_px, 192, 1) && near(picture->x_px, 192, 1) && near(picture->width_px, 808, 1));
	assert_true(has_text(gutter->list, "GET /never") && !has_text(picture->list, "GET /never"));
	press_name(v, request, 100);
	assert_int_equal(v->selected, request);
	assert_true(weft_viewer_tip(v, tip) && strstr(tip, "GET /never"));
	/* A click on the triangle beside a name folds or unfolds its row. */
	press_name(v, loop, 6);
	assert_true(v->layout->rows[request] == v->layout->rows[loop]);
	press_name(v, loop, 6);
	assert_true(v->layout->rows[request] != v->layout->rows[loop]);
	/* A drag of the gutter's edge changes its width, which links contain. */
	for (int i = 0; i < 2; i++) {
		weft_viewer_motion(v, gutter->width_px, 400);
		assert_int_equal(weft_viewer_cursor(v), WEFT_CURSOR_RESIZE);
		weft_viewer_press(v, gutter->width_px, 400, WEFT_BUTTON_PRIMARY, 0, 1);
		weft_viewer_motion(v, i ? 900 : 300, 400);
		weft_viewer_release(v, i ? 900 : 300, 400);
		assert_true(near(gutter->width_px, i ? 400 : 300, 1));
	}
	weft_viewer_set_names(v, true, 300);
	for (int i = 1; i >= 0; i--) {
		weft_viewer_place(v, place, sizeof place);
		assert_non_null(strstr(place, words[i]));
		weft_viewer_set_names(v, !i, 0);
		assert_int_equal(weft_viewer_go(v, place, NULL), WEFT_OK);
		assert_true(near(picture->x_px, i ? 300 : 0, 1));
		weft_viewer_act(v, WEFT_ACTION_NAMES);
	}
	/* A narrow viewer has no space for the gutter. */
	weft_viewer_resize(v, 440, 400, 1);
	assert_true(near(picture->x_px, 0, 1));
	weft_viewer_destroy(v);
}

static bool has_row(const struct weft_viewer *v, int64_t id)
{
	return v->layout->rows[with_id(v, id)] != WEFT_NONE;
}

static void test_promises_of_a_kind_or_label_can_be_hidden(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	char place[600], crumb[WEFT_CRUMB_BYTES];
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_HIDE_KIND), WEFT_EINVAL);
	weft_viewer_select(v, with_id(v, 4)); /* a wait */
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_HIDE_LIKE), WEFT_OK);
	assert_true(!has_row(v, 4) && has_row(v, 2) && has_row(v, 6) && has_row(v, 3));
	weft_viewer_select(v, with_id(v, 2));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_HIDE_KIND), WEFT_OK);
	assert_true(!has_row(v, 2) && !has_row(v, 6) && has_row(v, 3));
	assert_true(weft_viewer_crumb(v, crumb) && strstr(crumb, "kind:=wait"));
	weft_viewer_place(v, place, sizeof place);
	assert_non_null(strstr(place, "hide=kind:%3Dwait"));
	/* The history and links contain the hidden kinds and labels. */
	assert_true(weft_viewer_back(v) && has_row(v, 2) && !has_row(v, 4));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_UNFOCUS), WEFT_OK);
	assert_true(has_row(v, 4) && !weft_viewer_crumb(v, crumb));
	assert_int_equal(weft_viewer_go(v, place, NULL), WEFT_OK);
	assert_true(!has_row(v, 2) && !has_row(v, 4) && has_row(v, 3));
	weft_viewer_unhide_all(v);
	weft_viewer_select(v, with_id(v, 6));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_ONLY_KIND), WEFT_OK);
	assert_true(has_row(v, 2) && has_row(v, 4) && !has_row(v, 3) && !has_row(v, 1));
	assert_true(weft_viewer_crumb(v, crumb) && strstr(crumb, "only kind:=wait"));
	/* The last kind cannot be hidden, because no promise would be left. */
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_HIDE_KIND), WEFT_OK);
	assert_true(has_row(v, 2) && weft_viewer_draw(v, NULL) == WEFT_OK);
	assert_true(weft_viewer_crumb(v, crumb) && strcmp(crumb, "Not hidden: no promise would be left") == 0);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_STEP_DOWN), WEFT_OK);
	assert_true(weft_viewer_crumb(v, crumb) && strstr(crumb, "only kind:=wait"));
	weft_viewer_destroy(v);
}

/* Returns the id of match number n of the list. */
static int64_t listed_match(const struct weft_viewer *v, size_t n)
{
	assert_int_equal(weft_matches_fill(&rows, v, NULL), WEFT_OK);
	assert_true(n < rows.count);
	return v->model->promises[rows.rows[n].promise].id;
}

static void test_matches_of_a_search_are_sorted_by_time_duration_or_name(void **state)
{
	(void)state;
	/* The matches are 2 "GET /", 4 "GET /never" and 6 "GET /fails"; they are sorted by time, duration and name. */
	static const int64_t wanted[][3] = {{2, 4, 6}, {4, 2, 6}, {2, 6, 4}};
	struct weft_viewer *v = open_text(SERVER);
	struct weft_compare one = {.viewers = {v}, .count = 1};
	char count[WEFT_MATCHES_BYTES];
	assert_int_equal(weft_viewer_search(v, "GET", NULL), WEFT_OK);
	while (weft_viewer_search_step(v, 2))
		;
	for (int order = 0; order < WEFT_MATCH_ORDERS; order++) {
		weft_viewer_select(v, WEFT_NONE);
		for (size_t i = 0; i < 3; i++) {
			assert_int_equal(listed_match(v, i), wanted[order][i]);
			assert_int_equal(v->model->promises[weft_viewer_next_match(v)].id, wanted[order][i]);
			assert_int_equal(weft_viewer_match_number(v), i + 1);
		}
		assert_true((order == 1) == (strstr(weft_matches_count(&one, count), "longest first") != NULL));
		assert_int_equal(weft_viewer_act(v, WEFT_ACTION_SORT_MATCHES), WEFT_OK);
	}
	/* slowest:N keeps the N longest of the other matches, and lists the longest first. */
	weft_viewer_select(v, WEFT_NONE);
	assert_int_equal(weft_viewer_search(v, "GET slowest:2", NULL), WEFT_OK);
	while (weft_viewer_search_step(v, 2))
		;
	assert_true(v->view->found == 2 && listed_match(v, 0) == 4 && listed_match(v, 1) == 2);
	assert_string_equal(weft_matches_count(&one, count), "2 found, longest first");
	weft_viewer_destroy(v);
}

static void test_menu_opens_at_the_selection(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	double x, y;
	weft_viewer_resize(v, 800, 600, 1.5);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_MENU), WEFT_OK);
	assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_MENU && near(v->menu_x_px, 400, 1));
	weft_viewer_select(v, with_id(v, 4));
	spot_of(v, with_id(v, 4), &x, &y);
	weft_viewer_menu(v);
	assert_true(near(v->menu_x_px, x, 1) && near(v->menu_y_px, y, 1));
	weft_viewer_show(v, 900000, 950000); /* the promise is out of view */
	weft_viewer_menu(v);
	assert_true(v->menu_x_px >= 0 && v->menu_x_px <= 800 && v->menu_y_px <= 600);
	weft_viewer_destroy(v);
}

/* Checks that row `at` is an open finding, and that each row of its evidence leads to the promise of the row. */
static void check_finding(struct weft_viewer *v, const struct weft_finding *f, size_t at)
{
	int64_t from, to;
	size_t lines = 0;
	assert_true(rows.rows[at].is_open);
	assert_string_equal(rows.rows[at].name, f->title);
	assert_int_equal(rows.rows[at].tone, f->severity == WEFT_SEVERITY_INFORMATION ? WEFT_TONE_CALM
					     : f->sure                                ? WEFT_TONE_ALARM
										      : WEFT_TONE_DOUBT);
	assert_true(f->sure == !strstr(rows.rows[at].value, "uncertain"));
	assert_string_equal(v->search_text, "");
	assert_int_equal(v->highlighting, v->view->found > 0 ? WEFT_HIGHLIGHT_FINDING : WEFT_HIGHLIGHT_NONE);
	if (f->root != WEFT_SYSTEM)
		assert_true(v->selected == f->root && weft_view_is_highlighted(v->view, f->root));
	assert_false(weft_view_is_highlighted(v->view, WEFT_SYSTEM));
	for (size_t i = at + 1; i < rows.count && rows.rows[i].kind != WEFT_ROW_FINDING; i++) {
		const struct weft_row row = rows.rows[i];
		if (row.kind != WEFT_ROW_EVIDENCE)
			continue;
		const struct weft_evidence *line = &f->evidence[row.line];
		bool is_promise = line->promise != WEFT_NONE && line->promise != WEFT_SYSTEM;
		lines++;
		assert_string_equal(row.name, line->text);
		assert_int_equal(row.value[0] != '\0', line->time_ns != WEFT_NO_TIME);
		assert_int_equal(row.leads, is_promise || line->time_ns != WEFT_NO_TIME);
		if (is_promise)
			assert_true(weft_view_is_highlighted(v->view, line->promise));
		weft_viewer_press_row(v, &row);
		if (is_promise)
			assert_int_equal(v->selected, line->promise);
		weft_viewer_times(v, &from, &to);
		if (line->time_ns != WEFT_NO_TIME)
			assert_true(from <= line->time_ns && line->time_ns <= to && v->pointer_ns == line->time_ns);
	}
	assert_int_equal(lines, f->evidence_count);
}

static void test_opened_finding_lists_its_evidence(void **state)
{
	(void)state;
	size_t seen = 0;
	for (uint64_t seed = 1; seed < 20; seed++) {
		struct weft_viewer *v = open_random(seed), *again = open_random(seed);
		assert_int_equal(press(v, WEFT_ROW_FINDING, 0), SIZE_MAX);
		assert_true(rows.count == 1 && rows.rows[0].kind == WEFT_ROW_WORKING);
		explain(v, WEFT_ASK_TRACE);
		const struct weft_findings *findings = v->answers[WEFT_ASK_TRACE];
		size_t at = 0;
		for (size_t i = 0; i < findings->count; i++, seen++) {
			weft_viewer_search(v, "never", NULL);
			if (i == v->findings_shown)
				assert_int_not_equal(press(v, WEFT_ROW_MORE, at), SIZE_MAX);
			/* When the user opens a finding, the finding that was open is closed, and its evidence is removed. */
			v->open_finding = WEFT_NONE;
			at = press(v, WEFT_ROW_FINDING, i + 1);
			assert_int_equal(at, i + 1);
			check_finding(v, &findings->findings[i], at);
		}
		weft_viewer_take_changes(v);
		if (findings->count > 0) {
			char title[600];
			size_t count = findings->count, found = v->view->found;
			snprintf(title, sizeof title, "%s", findings->findings[count - 1].title);
			weft_viewer_copy_state(again, v);
			assert_true(
			    again->highlighting == v->highlighting && again->view->found > 0 && again->view->found <= found);
			/* After a reload, the old findings stay visible, without links, until the new ones are computed; then the
			 * same finding is open. */
			assert_int_equal(press(again, WEFT_ROW_FINDING, 0), 1);
			assert_true(!rows.rows[1].leads && again->open_finding == count - 1);
			explain(again, WEFT_ASK_TRACE);
			assert_int_equal(press(again, WEFT_ROW_HEADING, 0) != SIZE_MAX, true);
			assert_string_equal(again->answers[WEFT_ASK_TRACE]->findings[again->open_finding].title, title);
		}
		weft_viewer_destroy(v);
		weft_viewer_destroy(again);
	}
	assert_true(seen > 10);
	weft_rows_finish(&rows);
}

/* Returns the first row of the findings in a trace that the test writes. */
static const char *summary(struct weft_viewer *v, size_t left_out, const char *doubt)
{
	struct weft_findings *f = NULL;
	assert_int_equal(weft_explain(&f, v->model, NULL, NULL), WEFT_OK);
	f->left_out = left_out;
	f->doubt = doubt;
	weft_viewer_answer(v, WEFT_ASK_TRACE, f);
	assert_int_equal(weft_findings_fill(&rows, v, NULL), WEFT_OK);
	return rows.rows[0].name;
}

static void test_findings_summary_counts_omitted_findings_and_names_the_doubt(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	size_t count = 0;
	char wanted[80];
	summary(v, 0, NULL);
	count = v->answers[WEFT_ASK_TRACE]->count;
	assert_true(count > 0);
	snprintf(wanted, sizeof wanted, "%zu %s; events were lost", count, count == 1 ? "finding" : "findings");
	assert_string_equal(summary(v, 0, "events were lost"), wanted);
	snprintf(wanted, sizeof wanted, "%zu findings", count + 4);
	assert_string_equal(summary(v, 4, NULL), wanted);
	assert_string_equal(rows.rows[rows.count - 1].name, "4 more findings of these types are not listed");
	assert_int_equal(weft_findings_count(v), count + 4);
	weft_viewer_answer(v, WEFT_ASK_TRACE, NULL);
	assert_int_equal(weft_findings_fill(&rows, v, NULL), WEFT_OK);
	assert_true(rows.count == 1 && rows.rows[0].kind == WEFT_ROW_NOTHING && !rows.rows[0].leads);
	assert_string_equal(rows.rows[0].name, "Not analysed");
	weft_viewer_destroy(v);
	weft_rows_finish(&rows);
}

static void test_why_action_explains_the_selected_promise(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER), *again = open_text(SERVER);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_WHY), WEFT_EINVAL);
	weft_viewer_select(v, with_id(v, 4));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_WHY), WEFT_OK);
	assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_FINDINGS);
	weft_viewer_progress(v, WEFT_ASK_WHY, 30);
	assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_FINDINGS);
	assert_int_equal(weft_findings_fill(&rows, v, NULL), WEFT_OK);
	assert_true(rows.rows[0].kind == WEFT_ROW_WORKING && rows.rows[0].of_answer);
	assert_string_equal(rows.rows[0].value, "30 %");
	explain(v, WEFT_ASK_WHY);
	assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_ANSWER);
	assert_int_equal(weft_findings_fill(&rows, v, NULL), WEFT_OK);
	assert_true(rows.rows[0].kind == WEFT_ROW_ANSWER && rows.rows[1].kind == WEFT_ROW_FINDING && rows.rows[1].is_open);
	assert_true(v->highlighting == WEFT_HIGHLIGHT_FINDING && v->selected == with_id(v, 4));
	/* After a reload, the question "why?" is answered again, and the shown time stays the same. */
	weft_viewer_copy_state(again, v);
	assert_true(again->questions[WEFT_ASK_WHY].again);
	weft_viewer_take_changes(again);
	explain(again, WEFT_ASK_WHY);
	assert_false(weft_viewer_take_changes(again) & WEFT_CHANGED_ANSWER);
	assert_int_not_equal(press(again, WEFT_ROW_ANSWER, 0), SIZE_MAX);
	assert_true(rows.rows[0].kind == WEFT_ROW_WORKING && !rows.rows[0].of_answer);
	/* A press on the row cancels the computation of findings, and another press starts it again. */
	assert_int_equal(press(again, WEFT_ROW_WORKING, 0), 0);
	assert_int_equal(again->questions[WEFT_ASK_TRACE].state, WEFT_QUESTION_CALLED_OFF);
	assert_true(rows.rows[0].kind == WEFT_ROW_NOTHING && rows.rows[0].leads);
	press(again, WEFT_ROW_NOTHING, 0);
	explain(again, WEFT_ASK_TRACE);
	assert_int_equal(weft_findings_fill(&rows, again, NULL), WEFT_OK);
	assert_int_equal(rows.rows[0].kind, WEFT_ROW_SUMMARY);
	weft_viewer_destroy(v);
	weft_viewer_destroy(again);
	weft_rows_finish(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_draw_fills_the_panes),
	    cmocka_unit_test(test_counters_are_hidden_and_shown),
	    cmocka_unit_test(test_panning_and_zooming_show_other_times),
	    cmocka_unit_test(test_picture_begins_with_the_first_request_after_a_long_start_up),
	    cmocka_unit_test(test_reveal_makes_promise_visible),
	    cmocka_unit_test(test_pointer_selects_drags_and_zooms),
	    cmocka_unit_test(test_drags_in_overview_and_ruler_move_or_measure),
	    cmocka_unit_test(test_marks_are_drawn_over_the_picture),
	    cmocka_unit_test(test_legend_has_every_sign_and_the_corner_names_the_active_filter),
	    cmocka_unit_test(test_picture_for_a_file_has_a_title_and_on_request_the_legend),
	    cmocka_unit_test(test_tips_describe_arrows),
	    cmocka_unit_test(test_go_to_actions_follow_links),
	    cmocka_unit_test(test_history_goes_back_and_forward),
	    cmocka_unit_test(test_every_action_can_be_undone),
	    cmocka_unit_test(test_link_restores_the_same_picture),
	    cmocka_unit_test(test_search_finds_matches_in_time_order),
	    cmocka_unit_test(test_search_text_is_kept_on_one_line),
	    cmocka_unit_test(test_clear_removes_first_the_interval_then_the_search_then_the_selection),
	    cmocka_unit_test(test_saved_url_restores_the_view),
	    cmocka_unit_test(test_focus_shows_the_promises_belonging_to_one_promise),
	    cmocka_unit_test(test_actions_have_distinct_keys),
	    cmocka_unit_test(test_gutter_selects_folds_and_resizes),
	    cmocka_unit_test(test_promises_of_a_kind_or_label_can_be_hidden),
	    cmocka_unit_test(test_matches_of_a_search_are_sorted_by_time_duration_or_name),
	    cmocka_unit_test(test_menu_opens_at_the_selection),
	    cmocka_unit_test(test_opened_finding_lists_its_evidence),
	    cmocka_unit_test(test_findings_summary_counts_omitted_findings_and_names_the_doubt),
	    cmocka_unit_test(test_why_action_explains_the_selected_promise),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
