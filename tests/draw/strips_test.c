/* strips_test.c: checks overview and ruler on random programs, and compares some with goldens that a person has checked.
 * WEFT_RECORD=1 records the goldens again. SPDX-License-Identifier: ISC */
#include "draw/scene.h"

#include "draw/overview.h"
#include "draw/ruler.h"

#define WALL_NS 1700000000123456789 /* 2023-11-14 22:13:20.123456789 UTC */

static void check_clock(const struct weft_model *model, bool wall, int64_t time_ns, int64_t step_ns, const char *wanted)
{
	char text[64];
	const struct weft_clock clock = {.wall = wall};
	size_t len = weft_clock_print(text, sizeof text, model, &clock, time_ns, step_ns);
	assert_string_equal(text, wanted);
	assert_int_equal(len, strlen(text));
}

static void test_time_axis_labels_have_the_expected_formats(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	write_signs(&w);
	open_scene(&s, w.bytes, w.size);
	assert_false(weft_clock_is_known(s.model));
	check_clock(s.model, true, 1500000, 100000, "1.5 ms");
	struct weft_trace_info info = *s.model->trace;
	info.has_origin = true;
	info.clock_origin_ns = WALL_NS - s.model->start_ns;
	s.model->trace = &info;
	assert_true(weft_clock_is_known(s.model));
	check_clock(s.model, false, 0, 1, "0");
	check_clock(s.model, false, 1234567, 1, "1.234567 ms");
	check_clock(s.model, false, 1234567, 1000, "1.234 ms");
	check_clock(s.model, false, -2500, 100, "-2.5 \xc2\xb5s");
	check_clock(s.model, false, 63500000000, 500000000, "63.5 s");
	check_clock(s.model, false, 3725000000000, 1000000000, "1 h 2 min 5 s");
	check_clock(s.model, false, 120000000000, 60000000000, "2 min");
	check_clock(s.model, false, INT64_MIN, 1, "-9223372036.854775808 s");
	check_clock(s.model, true, 0, 1, "22:13:20.123456789");
	check_clock(s.model, true, 1000000000, 100000000, "22:13:21.1");
	check_clock(s.model, true, -20123456789, 60000000000, "22:13");
	check_clock(s.model, true, 86400000000000 * 107, 86400000000000, "2024-02-29");
	/* If the time of day does not fit into 64 bits, the ruler shows the time since the start of the trace. */
	check_clock(s.model, true, INT64_MAX, 1, "9223372036.854775807 s");
	close_scene(&s);
}

/* Checks that ticks with a time are apart, ascend, and show the right time. */
static void check_ticks(const struct scene *s)
{
	float last = -1000;
	for (size_t i = 0; i < s->list.count; i++) {
		const struct weft_prim *p = &s->list.prims[i];
		assert_true(p->x0 >= 0 && p->x1 <= s->list.width_px && p->y1 <= s->list.height_px);
		if (p->kind != WEFT_PRIM_RECT || p->paint != WEFT_PAINT_AXIS_TEXT)
			continue;
		assert_true(p->x0 - last >= 60);
		last = p->x0;
	}
}

static void test_ruler_ticks_are_in_order_at_any_interval(void **state)
{
	(void)state;
	static struct mirage_writer w;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct scene s;
		uint64_t r = seed;
		write_random_trace(&w, seed);
		open_scene(&s, w.bytes, w.size);
		struct weft_trace_info info = *s.model->trace;
		info.has_origin = true;
		info.clock_origin_ns = WALL_NS;
		s.model->trace = &info;
		for (int i = 0; i < 20; i++) {
			move_about(s.view, &r);
			const struct weft_ruler_options options = {
			    .clock = {.wall = i % 2, .utc_offset_s = i % 3 * 3600},
			    .has_pointer = true,
			    .pointer_ns = weft_view_time(s.view, s.view->width_px / 3),
			    .has_span = i % 4 == 0,
			    .span_from_ns = weft_view_time(s.view, s.view->width_px * 0.8),
			    .span_to_ns = weft_view_time(s.view, random_below(&r, 500)),
			};
			double x = weft_view_x(s.view, options.pointer_ns);
			assert_int_equal(weft_ruler_draw(&s.list, s.view, WEFT_RULER_PX, &options, NULL), WEFT_OK);
			check_primitives(&s.list);
			check_texts(&s.list);
			check_ticks(&s);
			if (s.view->width_px > 200)
				assert_true(is_painted(&s.list, WEFT_PAINT_LABEL, x, 10, 4));
			assert_int_equal(weft_ruler_guides(&s.list, s.view, &options, NULL), WEFT_OK);
			assert_true(is_painted(&s.list, WEFT_PAINT_LABEL, x, 10, 2));
			assert_int_equal(
			    is_painted(&s.list, WEFT_PAINT_ACCENT, weft_view_x(s.view, options.span_from_ns), 10, 2), i % 4 == 0);
		}
		/* Outside the trace, and at the ends of the number range. */
		weft_view_show(s.view, INT64_MAX - 1000, INT64_MAX);
		assert_int_equal(weft_ruler_draw(&s.list, s.view, WEFT_RULER_PX, NULL, NULL), WEFT_OK);
		weft_view_show(s.view, INT64_MIN, INT64_MAX);
		const struct weft_ruler_options wall = {.clock = {.wall = true}};
		assert_int_equal(weft_ruler_draw(&s.list, s.view, WEFT_RULER_PX, &wall, NULL), WEFT_OK);
		close_scene(&s);
	}
}

static void check_overview(const struct scene *s, const struct weft_overview *o, double width)
{
	for (uint32_t p = 1; p < s->model->promise_count; p++) {
		const struct weft_promise *promise = &s->model->promises[p];
		/* A promise that ends after the last event is drawn to the end. */
		int64_t end = promise->end_ns < s->model->end_ns ? promise->end_ns : s->model->end_ns;
		double x = weft_overview_x(o, width, end), y = s->list.height_px / 2;
		double x0 = weft_overview_x(o, width, 0), x1 = weft_overview_x(o, width, s->model->end_ns);
		for (size_t i = 0; p == 1 && i < s->list.count; i++) {
			const struct weft_prim *prim = &s->list.prims[i];
			if (prim->paint == WEFT_PAINT_PROMISE || prim->paint == WEFT_PAINT_FAILED)
				assert_true((double)prim->x0 >= x0 - 4 && (double)prim->x1 <= x1 + 4);
		}
		if (weft_promise_went_wrong(promise))
			assert_true(is_painted(&s->list, WEFT_PAINT_FAILED, x, y, y));
		if (weft_view_is_highlighted(s->view, p))
			assert_true(is_painted(&s->list, WEFT_PAINT_HIGHLIGHT, x, y, y));
	}
	for (size_t i = 0; i < s->model->pause_count; i++)
		assert_true(
		    is_painted(&s->list, WEFT_PAINT_PAUSE, weft_overview_x(o, width, s->model->pauses[i].start_ns), 5, 3));
	/* Checks both ends of the shown part, if they are inside the overview. */
	double x0 = weft_overview_x(o, width, s->view->from_ns);
	double x1 = weft_overview_x(o, width, weft_view_time(s->view, s->view->width_px));
	assert_true(is_painted(&s->list, WEFT_PAINT_ACCENT, x0 > 0 ? x0 : 0, 5, 4));
	assert_true(is_painted(&s->list, WEFT_PAINT_ACCENT, x1 < width ? x1 : width, 5, 4));
}

static void test_overview_has_a_valid_draw_list_at_any_interval(void **state)
{
	(void)state;
	static struct mirage_writer w;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct scene s;
		struct weft_overview *overview;
		uint64_t r = seed;
		write_random_trace(&w, seed);
		open_scene(&s, w.bytes, w.size);
		assert_int_equal(weft_overview_create(&overview, s.view, NULL), WEFT_OK);
		for (int i = 0; i < 5; i++) {
			double width = 100 + random_below(&r, 4000), height = 24 + random_below(&r, 100);
			move_about(s.view, &r);
			weft_overview_highlight(overview, s.view);
			assert_int_equal(weft_overview_draw(&s.list, overview, s.view, width, height, NULL), WEFT_OK);
			check_primitives(&s.list);
			check_overview(&s, overview, width);
			int64_t time = weft_overview_time(overview, width, weft_overview_x(overview, width, s.model->end_ns / 3));
			assert_true(llabs(time - s.model->end_ns / 3) <= 2);
		}
		weft_overview_destroy(overview);
		close_scene(&s);
	}
	weft_overview_destroy(NULL);
}

static void test_overview_grips_move_the_interval(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	struct weft_overview *o;
	const double width = 1000;
	write_signs(&w);
	open_scene(&s, w.bytes, w.size);
	assert_int_equal(weft_overview_create(&o, s.view, NULL), WEFT_OK);
	const int64_t from = 1000000, to = 2000000, moved = 100000;
	double x0 = weft_overview_x(o, width, from), x1 = weft_overview_x(o, width, to);
	weft_view_show(s.view, from, to);
	assert_int_equal(weft_overview_grip(o, s.view, width, x0 - 1), WEFT_GRIP_LEFT);
	assert_int_equal(weft_overview_grip(o, s.view, width, x1 + 1), WEFT_GRIP_RIGHT);
	assert_int_equal(weft_overview_grip(o, s.view, width, (x0 + x1) / 2), WEFT_GRIP_FRAME);
	assert_int_equal(weft_overview_grip(o, s.view, width, x0 - 20), WEFT_GRIP_NONE);
	double step = weft_overview_x(o, width, from + moved) - x0;
	weft_overview_drag(o, s.view, width, WEFT_GRIP_LEFT, x0, x0 + step);
	assert_true(llabs(s.view->from_ns - from - moved) <= 2);
	assert_true(llabs(weft_view_time(s.view, s.view->width_px) - to) <= 2);
	weft_overview_drag(o, s.view, width, WEFT_GRIP_RIGHT, x1, x1 + step);
	assert_true(llabs(weft_view_time(s.view, s.view->width_px) - to - moved) <= 4);
	weft_overview_drag(o, s.view, width, WEFT_GRIP_FRAME, x1, x1 - step);
	assert_true(llabs(s.view->from_ns - from) <= 8);
	weft_overview_drag(o, s.view, width, WEFT_GRIP_NONE, 0, weft_overview_x(o, width, 1700000));
	assert_true(llabs(weft_view_time(s.view, s.view->width_px / 2) - 1700000) <= 8);
	/* The frame of the shown part can be dragged however narrow it is. */
	weft_view_show(s.view, from, from);
	assert_int_equal(weft_overview_grip(o, s.view, width, x0), WEFT_GRIP_FRAME);
	weft_overview_destroy(o);
	close_scene(&s);
}

static void test_draw_lists_of_overview_and_ruler_equal_goldens(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	struct weft_overview *o;
	write_random_trace(&w, 7);
	open_scene(&s, w.bytes, w.size);
	weft_view_show(s.view, s.model->end_ns / 4, s.model->end_ns / 2);
	assert_true(weft_view_find(s.view, "tcp") > 0);
	assert_int_equal(weft_overview_create(&o, s.view, NULL), WEFT_OK);
	assert_int_equal(weft_overview_draw(&s.list, o, s.view, 320, WEFT_OVERVIEW_PX, NULL), WEFT_OK);
	check_golden(&s.list, "overview");
	weft_overview_destroy(o);
	struct weft_trace_info info = *s.model->trace;
	info.has_origin = true;
	info.clock_origin_ns = WALL_NS;
	s.model->trace = &info;
	const struct weft_ruler_options options = {.clock = {.wall = true, .utc_offset_s = 3600},
	    .has_pointer = true,
	    .pointer_ns = s.model->end_ns / 3,
	    .has_span = true,
	    .span_from_ns = s.model->end_ns * 5 / 12,
	    .span_to_ns = s.model->end_ns * 6 / 12};
	weft_view_resize(s.view, 640, 200);
	assert_int_equal(weft_ruler_draw(&s.list, s.view, WEFT_RULER_PX, &options, NULL), WEFT_OK);
	check_golden(&s.list, "ruler-wall");
	weft_view_show(s.view, s.model->end_ns / 3, s.model->end_ns / 3 + 5000);
	assert_int_equal(weft_ruler_draw(&s.list, s.view, WEFT_RULER_PX, NULL, NULL), WEFT_OK);
	check_golden(&s.list, "ruler-zoomed");
	close_scene(&s);
}

int main(int argc, char **argv)
{
	golden_dir = argc > 1 ? argv[1] : "golden";
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_time_axis_labels_have_the_expected_formats),
	    cmocka_unit_test(test_ruler_ticks_are_in_order_at_any_interval),
	    cmocka_unit_test(test_overview_has_a_valid_draw_list_at_any_interval),
	    cmocka_unit_test(test_overview_grips_move_the_interval),
	    cmocka_unit_test(test_draw_lists_of_overview_and_ruler_equal_goldens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
