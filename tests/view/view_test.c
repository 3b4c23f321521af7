/* view_test.c: the places of rows and times in a view, and which of them stay after a zoom or a pan.  SPDX-License-Identifier:
 * ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw/random_trace.h"
#include "view/query.h"
#include "view/sleep.h"

struct scene {
	struct weft_trace *trace;
	struct weft_model *model;
	struct weft_layout *layout;
	struct weft_view *view;
};

/* Assigns the events to several OS threads if `streams` is more than one. */
static void open_scene_of(struct scene *s, const void *bytes, size_t size, uint16_t streams)
{
	assert_int_equal(weft_trace_open_memory(&s->trace, bytes, size, "test", NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&s->model, s->trace, NULL, NULL), WEFT_OK);
	for (size_t p = 1; p < s->model->promise_count; p++)
		s->model->promises[p].stream = (uint16_t)(s->model->promises[p].id % streams);
	assert_int_equal(weft_layout_create(&s->layout, s->model, NULL), WEFT_OK);
	assert_int_equal(weft_view_create(&s->view, s->model, s->layout, NULL), WEFT_OK);
}

static void open_scene(struct scene *s, const void *bytes, size_t size)
{
	open_scene_of(s, bytes, size, 1);
}

static void close_scene(struct scene *s)
{
	weft_view_destroy(s->view);
	weft_layout_destroy(s->layout);
	weft_model_destroy(s->model);
	weft_trace_close(s->trace);
}

static void open_view_of_random_trace(struct scene *s, uint64_t seed, uint16_t streams)
{
	static struct mirage_writer w;
	write_random_trace(&w, seed);
	open_scene_of(s, w.bytes, w.size, streams);
}

static void open_random(struct scene *s, uint64_t seed)
{
	open_view_of_random_trace(s, seed, 1);
}

static bool near(double a, double b, double slack)
{
	return a - b < slack && b - a < slack;
}

static void test_zoom_keeps_the_time_at_the_pointer_and_pan_stays_in_the_trace(void **state)
{
	(void)state;
	struct scene s;
	open_random(&s, 3);
	struct weft_view *v = s.view;
	double end = (double)s.model->end_ns;
	assert_true(near(weft_view_x(v, 0), WEFT_VIEW_MARGIN_PX, 0.01));
	assert_true(near(weft_view_x(v, s.model->end_ns), v->width_px - WEFT_VIEW_MARGIN_PX, 0.01));
	/* A zoom keeps the time under the pointer at its place. */
	for (double x = 100; x < 1200; x += 130) {
		int64_t under = weft_view_time(v, x);
		weft_view_zoom(v, 3, x);
		assert_true(near(weft_view_x(v, under), x, 1 + v->px_per_ns));
		weft_view_zoom(v, 1 / 3.0, x);
	}
	/* The view keeps at least a part of the trace, and at least 200 ns. */
	weft_view_zoom(v, 1e30, 640);
	assert_true(near((double)weft_view_time(v, v->width_px) - (double)v->from_ns, 200, 2));
	weft_view_pan(v, 1e30);
	assert_true(weft_view_x(v, 0) >= 0 && weft_view_x(v, 0) <= v->width_px);
	weft_view_pan(v, -1e30);
	assert_true(weft_view_x(v, s.model->end_ns) >= 0 && weft_view_x(v, s.model->end_ns) <= v->width_px);
	weft_view_zoom(v, 1e-30, 640);
	assert_true(near(weft_view_x(v, 0), WEFT_VIEW_MARGIN_PX, 0.1));
	weft_view_zoom(v, 0, 0);
	weft_view_zoom(v, -1, 0);
	weft_view_pan(v, 0.0 / 1);
	assert_true(near(weft_view_x(v, 0), WEFT_VIEW_MARGIN_PX, 0.1));
	weft_view_show(v, 5000, 1000);
	assert_true(v->from_ns == 1000 && weft_view_time(v, v->width_px) == 5000);
	weft_view_show(v, INT64_MIN, INT64_MAX);
	assert_true(weft_view_x(v, 0) >= 0 && weft_view_x(v, INT64_MAX) <= 1e6);
	assert_true(weft_view_time(v, 1e9) > 0 && end > 0);
	close_scene(&s);
}

static void test_pixel_of_each_row_maps_back_to_the_row(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct scene s;
		open_view_of_random_trace(&s, seed, 1 + seed % 3);
		struct weft_view *v = s.view;
		for (int h = 100; h < 3000; h += 700) {
			weft_view_resize(v, 800, h);
			for (int f = 0; f <= 4; f++) {
				weft_view_focus(v, v->slots * f / 4);
				double last = WEFT_VIEW_TOP_PX;
				assert_int_equal(weft_view_row_at(v, weft_view_y(v, v->slots)), s.layout->row_count - 1);
				for (uint32_t r = 0; r < s.layout->row_count; r++) {
					double y = weft_view_y(v, weft_view_slot(v, r));
					assert_true(y > last && y < h - WEFT_VIEW_BOTTOM_PX + 20);
					assert_int_equal(weft_view_row_at(v, y), r);
					assert_true(near(weft_view_slot_at(v, y), weft_view_slot(v, r), 1e-6));
					last = y;
				}
				/* Above the rows of each OS thread, if there are several, is its name. */
				for (size_t b = 0; s.layout->band_count > 1 && b < s.layout->band_count; b++) {
					double name = weft_view_y(v, (double)s.layout->bands[b].first_row + (double)b + 0.5);
					assert_int_equal(weft_view_row_at(v, name), WEFT_NONE);
				}
			}
		}
		close_scene(&s);
	}
}

/* Returns whether a promise of the row is alive in the shown time. */
static bool has_anything(const struct scene *s, uint32_t row)
{
	int64_t from = s->view->from_ns, to = weft_view_time(s->view, s->view->width_px);
	for (uint32_t i = s->layout->row_begin[row]; i < s->layout->row_begin[row + 1]; i++) {
		uint32_t p = s->layout->by_row[i];
		if (s->model->promises[p].start_ns <= to && weft_layout_end(s->layout, s->model, p) >= from)
			return true;
	}
	return false;
}

/* Counts the bands with a name: those with a shown row or a visible pause, if there are several. */
static uint32_t count_headers(const struct scene *s, bool all)
{
	const struct weft_view *v = s->view;
	int64_t to = weft_view_time(v, v->width_px);
	uint32_t headers = 0;
	for (size_t b = 0; s->layout->band_count > 1 && b < s->layout->band_count; b++) {
		const struct weft_band *band = &s->layout->bands[b];
		bool seen = all;
		for (uint32_t r = band->first_row; r < band->first_row + band->row_count; r++)
			seen |= weft_view_is_shown(v, r);
		for (size_t i = 0; i < s->model->pause_count; i++)
			seen |= s->model->pauses[i].stream == band->stream && s->model->pauses[i].start_ns <= to &&
				s->model->pauses[i].end_ns > v->from_ns;
		if (seen)
			assert_int_equal(weft_view_row_at(v, weft_view_y(v, weft_view_header(v, b) + 0.5)), WEFT_NONE);
		assert_int_equal(weft_view_has_header(v, b), seen);
		headers += seen;
	}
	return headers;
}

/* Checks that shown rows and headers share the whole height; returns the number of rows. */
static uint32_t check_shown(const struct scene *s, bool all)
{
	const struct weft_view *v = s->view;
	uint32_t shown = 0;
	double above = -1;
	for (uint32_t r = 0; r < s->layout->row_count; r++) {
		double slot = weft_view_slot(v, r);
		assert_int_equal(weft_view_is_shown(v, r), all || has_anything(s, r));
		assert_int_equal(weft_view_rank(v, r), shown);
		assert_true(slot > above || !weft_view_is_shown(v, r > 0 ? r - 1 : r));
		above = slot;
		if (!weft_view_is_shown(v, r))
			continue;
		shown++;
		assert_int_equal(weft_view_row_at(v, weft_view_y(v, slot)), r);
	}
	assert_int_equal(v->slots, shown + count_headers(s, all));
	assert_true(
	    shown == 0 || near(weft_view_y(v, v->slots),
			      v->curve > 0 ? v->height_px - WEFT_VIEW_BOTTOM_PX : WEFT_VIEW_TOP_PX + v->slots * v->pitch_px, 1));
	return shown;
}

static void test_only_rows_with_a_promise_in_view_have_height(void **state)
{
	(void)state;
	uint32_t fewer = 0;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct scene s;
		open_view_of_random_trace(&s, seed, 1 + seed % 3);
		int64_t end = s.model->end_ns;
		assert_int_equal(check_shown(&s, false), s.layout->row_count);
		for (int64_t k = 0; k < 8; k++) {
			weft_view_show(s.view, end / 8 * k, end / 8 * k + end / 40);
			fewer += check_shown(&s, false) < s.layout->row_count;
			weft_view_pan(s.view, 100);
			check_shown(&s, false);
			weft_view_zoom(s.view, 1.5, 300);
			check_shown(&s, false);
			weft_view_resize(s.view, 500 + 100 * (double)k, 300);
			check_shown(&s, false);
			weft_view_hold_rows(s.view, true);
			check_shown(&s, true);
			for (uint32_t r = 0; r < s.layout->row_count; r++)
				assert_true(weft_view_whole_slot(s.view->layout, r) == weft_view_slot(s.view, r));
			weft_view_pan(s.view, -30);
			check_shown(&s, true);
			weft_view_hold_rows(s.view, false);
			check_shown(&s, false);
		}
		weft_view_show_all(s.view);
		assert_int_equal(check_shown(&s, false), s.layout->row_count);
		close_scene(&s);
	}
	assert_true(fewer > 100);
}

/* Reads the times and slots at some places of the picture. */
static void see(const struct scene *s, double seen[6])
{
	for (int i = 0; i < 3; i++) {
		seen[i] = (double)weft_view_time(s->view, s->view->width_px / 2 * i);
		seen[3 + i] = weft_view_slot_at(s->view, s->view->height_px / 4 * (i + 1));
	}
}

static void test_restore_after_other_times_and_focus_shows_the_same_view(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct scene s;
		double before[6], elsewhere[6], again[6];
		open_random(&s, seed);
		weft_view_zoom(s.view, 7, 500);
		weft_view_focus(s.view, s.view->slots / 3);
		int64_t from_ns = s.view->from_ns;
		double px_per_ns = s.view->px_per_ns, focus = s.view->focus;
		see(&s, before);
		weft_view_show(s.view, s.model->end_ns / 2, s.model->end_ns / 3 * 2);
		weft_view_focus(s.view, 0);
		see(&s, elsewhere);
		assert_true(memcmp(elsewhere, before, sizeof before) != 0);
		weft_view_restore(s.view, from_ns, px_per_ns, focus);
		see(&s, again);
		assert_memory_equal(again, before, sizeof before);
		close_scene(&s);
	}
}

/* A focused row keeps its position while one of its promises is alive in the shown time. */
static void test_focused_row_keeps_its_position(void **state)
{
	(void)state;
	uint32_t looked = 0;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct scene s;
		open_random(&s, seed);
		for (uint32_t r = 0; r < s.layout->row_count; r += 7) {
			weft_view_show_all(s.view);
			weft_view_focus(s.view, weft_view_slot(s.view, r));
			for (int i = 0; i < 6; i++) {
				weft_view_zoom(s.view, 1.7, 400);
				if (!weft_view_is_shown(s.view, r))
					break;
				assert_true(near(s.view->focus, weft_view_slot(s.view, r), 1e-6));
				looked++;
			}
		}
		close_scene(&s);
	}
	assert_true(looked > 100);
}

static void test_focus_slot_at_y_moves_the_slot_to_the_pixel(void **state)
{
	(void)state;
	struct scene s;
	open_random(&s, 5);
	struct weft_view *v = s.view;
	weft_view_resize(v, 800, 300);
	assert_true(v->curve > 0);
	weft_view_focus(v, v->slots / 2);
	double slot = weft_view_slot_at(v, 150);
	weft_view_focus_slot_at_y(v, slot, 120);
	assert_true(near(weft_view_y(v, slot), 120, 1));
	weft_view_focus_slot_at_y(v, slot, 180);
	assert_true(near(weft_view_y(v, slot), 180, 1));
	weft_view_focus_slot_at_y(v, slot, -1e9);
	assert_true(v->focus >= 0 && v->focus <= v->slots);
	close_scene(&s);
}

/* If each row has space for its name, all rows have the same height.  In a lower window, some rows lose their names.  If there
 * are few rows, they share the whole height. */
static void test_height_of_rows_depends_on_the_space_for_their_names(void **state)
{
	const double named = 13, around = WEFT_VIEW_TOP_PX + WEFT_VIEW_BOTTOM_PX;
	struct scene s;
	(void)state;
	open_random(&s, 5);
	struct weft_view *v = s.view;
	weft_view_resize(v, 800, around + v->slots * named + 1);
	assert_true(v->curve == 0 && v->pitch_px >= named && v->pitch_px < named + 1);
	weft_view_resize(v, 800, around + v->slots * (named - 0.5));
	assert_true(v->curve > 0 && v->pitch_px >= named && v->pitch_px < named + 2);
	weft_view_resize(v, 800, around + v->slots * named / 3);
	assert_true(v->pitch_px > 24);
	weft_view_resize(v, 800, around + v->slots * 90);
	assert_true(near(weft_view_y(v, v->slots), v->height_px - WEFT_VIEW_BOTTOM_PX, 1));
	close_scene(&s);
}

/* Opens a trace of 400 rows; `count` rows from `first` on have long promises, and the others have very short ones. */
static void open_with_long_lines(struct scene *s, int first, int count)
{
	static struct mirage_writer w;
	w.size = 0;
	mw_packet(&w, 801);
	for (int i = 0; i < 400; i++)
		mw_create(&w, 1000 + i, -1, i + 1, WEFT_KIND_TASK);
	for (int i = 0; i < 400; i++)
		if (i < first || i >= first + count)
			mw_link(&w, 2000 + i, WEFT_OP_RESOLVE, -1, i + 1);
	for (int i = first; i < first + count; i++)
		mw_link(&w, 10000000, WEFT_OP_RESOLVE, -1, i + 1);
	mw_create(&w, 20000000, -1, 401, WEFT_KIND_TASK);
	mw_end(&w, 0);
	open_scene(s, w.bytes, w.size);
}

static void test_automatic_focus_is_on_rows_of_long_promises(void **state)
{
	(void)state;
	static const struct {
		int first, count;
	} places[] = {{0, 20}, {95, 20}, {190, 20}, {285, 20}, {380, 20}, {0, 4}, {396, 4}};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const int first = places[i].first, count = places[i].count;
		struct scene s;
		open_with_long_lines(&s, first, count);
		weft_view_resize(s.view, 800, 300);
		weft_view_focus(s.view, 200);
		weft_view_focus_best(s.view);
		assert_true((long)s.view->focus >= (long)first && (long)s.view->focus <= (long)first + count);
		/* If all rows are high enough, the focus does not matter. */
		weft_view_resize(s.view, 800, 20000);
		weft_view_focus(s.view, 77);
		weft_view_focus_best(s.view);
		assert_true(s.view->focus == 77);
		close_scene(&s);
	}
}

/* The trace has many short promises at the right, and fewer, longer ones at the left; the focus is on the longer ones. */
static void test_automatic_focus_is_on_promises_that_are_long_in_view(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	w.size = 0;
	mw_packet(&w, 841);
	for (int i = 0; i < 400; i++)
		mw_create(&w, 1000 + i, -1, i + 1, WEFT_KIND_TASK);
	for (int i = 0; i < 400; i++)
		if (i < 300 || i >= 320)
			mw_link(&w, 2000 + i, WEFT_OP_RESOLVE, -1, i + 1);
	for (int i = 300; i < 320; i++)
		mw_link(&w, 3500000, WEFT_OP_RESOLVE, -1, i + 1);
	for (int i = 400; i < 420; i++)
		mw_create(&w, 17000000, -1, i + 1, WEFT_KIND_TASK);
	for (int i = 400; i < 420; i++)
		mw_link(&w, 18500000, WEFT_OP_RESOLVE, -1, i + 1);
	mw_create(&w, 20000000, -1, 421, WEFT_KIND_TASK);
	mw_end(&w, 0);
	open_scene(&s, w.bytes, w.size);
	weft_view_resize(s.view, 800, 300);
	assert_true(weft_view_x(s.view, 18500000) - weft_view_x(s.view, 17000000) > 30);
	assert_true(s.layout->rows[weft_model_find(s.model, 420)] < 280);
	weft_view_focus_best(s.view);
	double first = weft_view_slot(s.view, s.layout->rows[weft_model_find(s.model, 301)]);
	assert_true(s.view->focus >= first - 1 && s.view->focus <= first + 20);
	close_scene(&s);
}

static void test_hit_test_finds_the_promise_nearest_to_the_pointer(void **state)
{
	(void)state;
	struct scene s;
	open_random(&s, 11);
	struct weft_view *v = s.view;
	weft_view_resize(v, 1280, 4000);
	for (uint32_t p = 1; p < s.model->promise_count; p++) {
		double x = (weft_view_x(v, s.model->promises[p].start_ns) + weft_view_x(v, s.model->promises[p].end_ns)) / 2;
		double y = weft_view_y(v, weft_view_slot(v, s.layout->rows[p]));
		uint32_t hit = weft_view_hit(v, x, y);
		/* The hit test returns this promise, or another one of the row that is as near. */
		assert_true(hit != WEFT_NONE && s.layout->rows[hit] == s.layout->rows[p]);
		if (!weft_kind_has(s.model->promises[p].kind, WEFT_TRAIT_FOLDS) &&
		    weft_view_x(v, s.model->promises[p].end_ns) - weft_view_x(v, s.model->promises[p].start_ns) > 1)
			assert_int_equal(hit, p);
	}
	assert_int_equal(weft_view_hit(v, -500, -500), WEFT_NONE);
	assert_int_equal(weft_view_hit(v, 1e300, 1e300), WEFT_NONE);
	close_scene(&s);
}

/* Idle handles: three together, and one after their end. */
static void test_folded_handles_share_one_line(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	w.size = 0;
	mw_packet(&w, 1);
	mw_create(&w, 1000, -1, 1, WEFT_KIND_TASK);
	for (int i = 0; i < 3; i++)
		mw_create(&w, 2000 + i * 1000, 1, 10 + i, WEFT_KIND_OS_SIGNAL);
	for (int i = 0; i < 3; i++)
		mw_link(&w, 50000 + i * 10000, WEFT_OP_RESOLVE, 1, 10 + i);
	mw_create(&w, 80000, 1, 13, WEFT_KIND_OS_SIGNAL);
	mw_link(&w, 95000, WEFT_OP_RESOLVE, 1, 13);
	mw_op(&w, 100000, WEFT_OP_RUN, 1);
	mw_end(&w, 0);
	open_scene(&s, w.bytes, w.size);
	struct weft_view *v = s.view;
	uint32_t leader = weft_model_find(s.model, 10), last = weft_model_find(s.model, 12), alone = weft_model_find(s.model, 13);
	double y = weft_view_y(v, weft_view_slot(v, s.layout->rows[last]));
	/* The line can be hit up to the end of its last handle, and is highlighted with any of them. */
	assert_int_equal(weft_view_hit(v, weft_view_x(v, 1500), y), leader);
	assert_int_equal(weft_view_hit(v, weft_view_x(v, s.model->promises[last].end_ns) - 1, y), leader);
	assert_int_equal(
	    weft_view_hit(v, weft_view_x(v, 90000), weft_view_y(v, weft_view_slot(v, s.layout->rows[alone]))), alone);
	assert_int_equal(weft_view_find(v, "id:12"), 1);
	assert_true(weft_view_is_line_highlighted(v, leader) && !weft_view_is_highlighted(v, leader));
	assert_false(weft_view_is_line_highlighted(v, alone));
	assert_int_equal(weft_view_find(v, "id:13"), 1);
	assert_true(weft_view_is_line_highlighted(v, alone) && !weft_view_is_line_highlighted(v, leader));
	close_scene(&s);
}

static const char CIRCLE[] =
    "((time 0.0)(op(Creates -1 1 task)))((time 0.1)(op(Label 1 First)))((time 0.1)(op(Creates 1 5 bind)))"
    "((time 0.2)(op(Becomes 1 5)))((time 0.3)(op(Becomes 5 1)))((time 0.4)(op(Creates 1 6 wait)))"
    "((time 0.5)(op(Resolves 1 6(Not_found))))((time 0.6)(op(Creates 1 17 join)))((time 0.7)(op(Increases 17 hits 2)))";

static uint32_t with_id(const struct scene *s, int64_t id)
{
	uint32_t p = weft_model_find(s->model, id);
	assert_int_not_equal(p, WEFT_NONE);
	return p;
}

static void test_search_text_matches_labels_kinds_ids_and_failures(void **state)
{
	(void)state;
	struct scene s;
	open_scene(&s, CIRCLE, sizeof CIRCLE - 1);
	struct weft_view *v = s.view;
	assert_true(weft_view_find(v, "fIRs") >= 1);
	assert_true(weft_view_is_highlighted(v, with_id(&s, 1)) || s.model->promise_count > 5);
	assert_int_equal(weft_view_find(v, "not_FOUND"), 1);
	assert_true(weft_view_is_highlighted(v, with_id(&s, 6)));
	assert_int_equal(weft_view_find(v, "join"), 1);
	assert_int_equal(weft_view_find(v, "17"), 1);
	assert_int_equal(weft_view_find(v, "hits+2"), 1);
	assert_true(weft_view_is_highlighted(v, with_id(&s, 17)));
	assert_int_equal(weft_view_find(v, "nowhere"), 0);
	assert_int_equal(weft_view_find(v, ""), 0);
	assert_int_equal(weft_view_find_related(v, WEFT_NONE), 0);
	/* Promises 1 and 5 became each other: the search for related promises still ends, and finds both. */
	size_t related = weft_view_find_related(v, with_id(&s, 5));
	assert_true(related >= 2 && related == v->found);
	weft_view_unhighlight(v);
	assert_int_equal(v->found, 0);
	close_scene(&s);
}

static void test_search_expressions_find_the_expected_promises(void **state)
{
	(void)state;
	struct scene s;
	struct weft_query q, wider;
	struct weft_error err;
	open_scene(&s, CIRCLE, sizeof CIRCLE - 1);
	/* 1 task "First", 5 bind, 6 wait that failed, 17 join with a counter; 1 and 5 became each other. */
	static const struct {
		const char *text;
		size_t found;
	} finds[] = {{"kind:join", 1}, {"kind:jo", 1}, {"kind:oin", 0}, {"kind:=joi", 0}, {"label:first", 1}, {"label:=FIRST", 1},
	    {"label:join", 0}, {"id:17", 1}, {"id:7", 0}, {"7", 1}, {"failed", 1}, {"\"failed\"", 0}, {"pending kind:join", 1},
	    {"failure:not_", 1}, {"longer:250ms kind:task", 0}, {"shorter:150ms kind:wait", 1}, {"wait failed", 1},
	    {"wait pending", 0}, {"a:b", 0}, {"\"irs", 1}, {"hits", 1}, {"its+2", 1}, {"label:=hits", 0}, {"label:=hits+2", 1},
	    {"  \t", 0}, {"\"\"", 0}, {"type:join", 1}, {"type:task > 250ms", 0}, {"kind:wait < 150ms", 1},
	    {"kind:wait <150ms", 1}, {"slowest:1", 1}, {"slowest:1 failed", 1}, {"failed slowest:5", 1},
	    {"kind:join slowest:2", 1}, {"thread:nobody", 0}};
	for (size_t i = 0; i < sizeof finds / sizeof *finds; i++)
		assert_int_equal(weft_view_find(s.view, finds[i].text), finds[i].found);
	static const struct {
		const char *text, *what;
	} wrong[] = {{"id:", "id: needs a number, for example id:18"}, {"id:1x", "id: needs a number, for example id:18"},
	    {"> 5", "> needs a duration, for example > 20ms"}, {"a <", "< needs a duration, for example < 20ms"},
	    {"slowest:0", "slowest: needs a number, for example slowest:10"},
	    {"slowest:x", "slowest: needs a number, for example slowest:10"}, {"kind:", "kind: needs a text after the colon"},
	    {"longer:5", "longer: needs a duration, for example longer:5ms"},
	    {"id:99999999999999999999", "id: needs a number, for example id:18"},
	    {"a b c d e f g h i j k l m n o p q", "a search has at most 16 words"}};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(weft_query_parse(&q, wrong[i].text, strlen(wrong[i].text), &err), WEFT_EINVAL);
		assert_string_equal(err.what, wrong[i].what);
		assert_int_equal(weft_view_find(s.view, wrong[i].text), 0);
	}
	char text[300];
	memset(text, 'a', sizeof text);
	assert_int_equal(weft_query_parse(&q, text, WEFT_QUERY_BYTES, &err), WEFT_OK);
	assert_int_equal(weft_query_parse(&q, text, WEFT_QUERY_BYTES + 1, &err), WEFT_EINVAL);
	static const struct {
		const char *query, *wider;
		bool narrows;
	} pairs[] = {{"arp", "ar", true}, {"ar", "arp", false}, {"arp x", "arp", true}, {"kind:bind", "bi", true},
	    {"bind", "kind:bi", false}, {"kind:=bind", "kind:bin", true}, {"kind:bind", "kind:ind", false},
	    {"kind:bind", "kind:=bind", false}, {"longer:5ms", "longer:1ms", true}, {"longer:1ms", "longer:5ms", false},
	    {"shorter:1ms", "shorter:5ms", true}, {"failed a", "failed", true}, {"a", "failed", false}, {"id:18", "id:18 ", true},
	    {"id:18", "18", false}, {"", "", true}, {"a", "", false}, {"arp slowest:3", "arp", true},
	    {"arp", "arp slowest:3", false}, {"arp x slowest:3", "arp slowest:3", false}, {"thread:pool", "thread:po", true}};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		assert_int_equal(weft_query_parse(&q, pairs[i].query, strlen(pairs[i].query), NULL), WEFT_OK);
		assert_int_equal(weft_query_parse(&wider, pairs[i].wider, strlen(pairs[i].wider), NULL), WEFT_OK);
		assert_int_equal(weft_query_is_narrower(&q, &wider), pairs[i].narrows);
	}
	weft_query_for_similar(s.model, with_id(&s, 1), text);
	assert_string_equal(text, "label:=\"First\" kind:=\"task\"");
	assert_int_equal(weft_view_find(s.view, text), 1);
	weft_query_for_similar(s.model, with_id(&s, 17), text);
	assert_string_equal(text, "kind:=\"join\"");
	close_scene(&s);
	/* In each random trace, the query for promises similar to one finds this promise, and a query with more terms finds a
	 * subset. */
	static const char *const words[] = {"read", "rea", "kind:t", "kind:=task", "pending", "longer:3us", "1", "12", "failed"};
	for (uint64_t seed = 1; seed < 6; seed++) {
		open_random(&s, seed);
		for (uint32_t p = 1; p < s.model->promise_count; p += 3) {
			size_t len = weft_query_for_similar(s.model, p, text);
			assert_true(len <= WEFT_QUERY_BYTES && weft_query_parse(&q, text, len, NULL) == WEFT_OK);
			assert_true(weft_query_matches(&q, s.model, p));
			weft_query_finish(&q);
		}
		for (size_t a = 0; a < 81; a++) {
			const char *x = words[a / 9], *y = words[a % 9];
			assert_int_equal(weft_query_parse(&q, x, strlen(x), NULL), WEFT_OK);
			assert_int_equal(weft_query_parse(&wider, y, strlen(y), NULL), WEFT_OK);
			for (uint32_t p = 1; weft_query_is_narrower(&q, &wider) && p < s.model->promise_count; p++)
				assert_true(!weft_query_matches(&q, s.model, p) || weft_query_matches(&wider, s.model, p));
			weft_query_finish(&q);
			weft_query_finish(&wider);
		}
		close_scene(&s);
	}
}

/* Checks that no promise runs, starts, ends or has a link in a folded sleep. */
static void check_lull(const struct weft_model *m, const struct weft_lull *lull)
{
	assert_true(lull->start_ns < lull->end_ns && lull->start_ns >= 0 && lull->end_ns <= m->end_ns);
	for (size_t r = m->promises[1].runs; r < m->run_count; r++)
		assert_true(m->runs[r].end_ns <= lull->start_ns || m->runs[r].start_ns >= lull->end_ns);
	for (size_t p = 1; p < m->promise_count; p++) {
		assert_true(m->promises[p].start_ns <= lull->start_ns || m->promises[p].start_ns >= lull->end_ns);
		assert_true(m->promises[p].end == WEFT_END_PENDING || m->promises[p].end_ns <= lull->start_ns ||
			    m->promises[p].end_ns >= lull->end_ns);
	}
	for (size_t l = 0; l < m->link_count; l++)
		assert_true(m->links[l].time_ns <= lull->start_ns || m->links[l].time_ns >= lull->end_ns);
}

/* Checks that the mapping from times to places has an inverse, and that no folded sleep is wide. */
static void check_folded(const struct weft_view *v)
{
	double last = -1e9;
	for (double x = 0; x <= v->width_px; x += 7.25) {
		int64_t time = weft_view_time(v, x);
		assert_true(near(weft_view_x(v, time), x, 0.01 + v->px_per_ns));
		assert_true(weft_view_x(v, time) > last);
		last = weft_view_x(v, time) - v->px_per_ns;
	}
	for (size_t i = 0; i < v->lulls->count; i++) {
		const struct weft_lull *lull = &v->lulls->items[i];
		double wide = weft_view_x(v, lull->end_ns) - weft_view_x(v, lull->start_ns);
		double length = ((double)lull->end_ns - (double)lull->start_ns) * v->px_per_ns;
		bool is_seen = weft_view_x(v, lull->end_ns) < 1e5 && weft_view_x(v, lull->start_ns) > -1e5;
		const bool is_folded = weft_view_is_folded(v, lull);
		assert_true(!is_seen || (wide < WEFT_LULL_PX + 0.01 && wide < length + 0.01));
		assert_true(!is_seen || is_folded || near(wide, length, 0.01));
		assert_true(is_folded || length <= WEFT_LULL_PX);
		int64_t middle = lull->start_ns + (lull->end_ns - lull->start_ns) / 2;
		assert_true(weft_view_past_lull(v, middle) == (is_folded ? lull->end_ns : middle));
		assert_true(weft_view_past_lull(v, lull->end_ns) == lull->end_ns);
	}
}

static void test_folded_sleep_is_narrow(void **state)
{
	(void)state;
	size_t found = 0;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct scene s;
		struct weft_lulls *lulls;
		open_random(&s, seed);
		struct weft_view *v = s.view;
		assert_int_equal(weft_lulls_find(&lulls, s.model, NULL), WEFT_OK);
		for (size_t i = 0; i < lulls->count; i++) {
			check_lull(s.model, &lulls->items[i]);
			assert_true(i == 0 || lulls->items[i - 1].end_ns <= lulls->items[i].start_ns);
		}
		found += lulls->count;
		assert_int_equal(weft_view_fold_sleep(v, lulls, NULL), WEFT_OK);
		/* The whole trace stays in view. */
		assert_true(near(weft_view_x(v, 0), WEFT_VIEW_MARGIN_PX, 0.01 + v->px_per_ns));
		assert_true(near(weft_view_x(v, s.model->end_ns), v->width_px - WEFT_VIEW_MARGIN_PX, 0.1 + v->px_per_ns));
		check_folded(v);
		for (double x = 100; x < 1200; x += 130) {
			int64_t under = weft_view_time(v, x);
			weft_view_zoom(v, 3, x);
			assert_true(near(weft_view_x(v, under), x, 1 + v->px_per_ns));
			check_folded(v);
			int64_t here = weft_view_time(v, 500);
			bool has_room = weft_view_x(v, 0) < WEFT_VIEW_MARGIN_PX - 60;
			weft_view_pan(v, 60);
			assert_true(!has_room || near(weft_view_x(v, here), 560, 1 + v->px_per_ns));
			weft_view_pan(v, 1e30);
			assert_true(weft_view_x(v, 0) >= 0 && weft_view_x(v, 0) <= v->width_px);
			weft_view_pan(v, -1e30);
			assert_true(weft_view_x(v, s.model->end_ns) >= 0 && weft_view_x(v, s.model->end_ns) <= v->width_px);
			weft_view_show(v, s.model->end_ns / 4, s.model->end_ns / 2);
			assert_true(v->from_ns == s.model->end_ns / 4);
			assert_true(near(weft_view_x(v, s.model->end_ns / 2), v->width_px, 0.01 + v->px_per_ns));
			int64_t from = v->from_ns, to = weft_view_time(v, v->width_px);
			weft_view_resize(v, v->width_px + 10, v->height_px);
			assert_true(v->from_ns == from && near(weft_view_x(v, to), v->width_px, 0.01 + v->px_per_ns));
			assert_int_equal(weft_view_fold_sleep(v, NULL, NULL), WEFT_OK);
			assert_true(v->from_ns == from && weft_view_time(v, v->width_px) - to < 2 &&
				    to - weft_view_time(v, v->width_px) < 2);
			assert_int_equal(weft_view_fold_sleep(v, lulls, NULL), WEFT_OK);
			weft_view_resize(v, v->width_px - 10, v->height_px);
		}
		close_scene(&s);
		weft_lulls_destroy(lulls);
	}
	assert_true(found > 20);
}

/* 20 us of work in a second of sleep take most of the width. */
static void test_folded_sleep_leaves_space_for_work(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	struct weft_lulls *lulls;
	w.size = 0;
	mw_packet(&w, 1);
	mw_create(&w, 1000, -1, 1, WEFT_KIND_TASK);
	mw_op(&w, 1000, WEFT_OP_RUN, 1);
	mw_op(&w, 11000, WEFT_OP_RUN, -1);
	mw_op(&w, 500011000, WEFT_OP_RUN, 1);
	mw_op(&w, 500021000, WEFT_OP_RUN, -1);
	mw_op(&w, 1000000000, WEFT_OP_RUN, 1);
	mw_link(&w, 1000001000, WEFT_OP_RESOLVE, 1, 1);
	mw_end(&w, 0);
	open_scene(&s, w.bytes, w.size);
	assert_int_equal(weft_lulls_find(&lulls, s.model, NULL), WEFT_OK);
	assert_int_equal(lulls->count, 2);
	assert_int_equal(lulls->items[0].start_ns, 10000);
	assert_int_equal(lulls->items[0].end_ns, 500010000);
	assert_int_equal(lulls->items[1].start_ns, 500020000);
	assert_int_equal(lulls->items[1].end_ns, 999999000);
	assert_int_equal(weft_view_fold_sleep(s.view, lulls, NULL), WEFT_OK);
	double work = weft_view_x(s.view, 500020000) - weft_view_x(s.view, 500010000);
	assert_true(near(work, (1240 - 2 * WEFT_LULL_PX) * 10 / 21, 1));
	close_scene(&s);
	weft_lulls_destroy(lulls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_zoom_keeps_the_time_at_the_pointer_and_pan_stays_in_the_trace),
	    cmocka_unit_test(test_pixel_of_each_row_maps_back_to_the_row),
	    cmocka_unit_test(test_only_rows_with_a_promise_in_view_have_height),
	    cmocka_unit_test(test_restore_after_other_times_and_focus_shows_the_same_view),
	    cmocka_unit_test(test_focused_row_keeps_its_position),
	    cmocka_unit_test(test_focus_slot_at_y_moves_the_slot_to_the_pixel),
	    cmocka_unit_test(test_height_of_rows_depends_on_the_space_for_their_names),
	    cmocka_unit_test(test_automatic_focus_is_on_rows_of_long_promises),
	    cmocka_unit_test(test_automatic_focus_is_on_promises_that_are_long_in_view),
	    cmocka_unit_test(test_hit_test_finds_the_promise_nearest_to_the_pointer),
	    cmocka_unit_test(test_folded_handles_share_one_line),
	    cmocka_unit_test(test_search_text_matches_labels_kinds_ids_and_failures),
	    cmocka_unit_test(test_folded_sleep_is_narrow),
	    cmocka_unit_test(test_folded_sleep_leaves_space_for_work),
	    cmocka_unit_test(test_search_expressions_find_the_expected_promises),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
