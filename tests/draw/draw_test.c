/* draw_test.c: checks invariants of every frame on random programs at random places, and compares some frames with goldens that a
 * person has checked.  WEFT_RECORD=1 records the goldens again. SPDX-License-Identifier: ISC */
#include "draw/scene.h"

#include "draw/crowded_trace.h"

#include "draw/frame.h"
#include "draw/gutter.h"
#include "draw/marks.h"
#include "draw/ruler.h"
#include "view/fold.h"
#include "view/sleep.h"

/* Returns the area that a paint covers, in pixels.  Other paints are ignored, because no hiding colour is drawn over this one. */
static uint8_t *raster_of(const struct weft_draw_list *list, enum weft_paint paint)
{
	size_t width = (size_t)list->width_px + 1, height = (size_t)list->height_px + 1;
	uint8_t *pixels = calloc(width, height);
	assert_non_null(pixels);
	for (size_t i = 0; i < list->count; i++) {
		const struct weft_prim *p = &list->prims[i];
		if (p->kind != WEFT_PRIM_RECT || p->paint != paint)
			continue;
		for (size_t y = (size_t)p->y0; y < (size_t)p->y1; y++)
			memset(pixels + y * width + (size_t)p->x0, 1, (size_t)(p->x1 - p->x0));
	}
	return pixels;
}

static bool is_near(const struct weft_draw_list *list, const uint8_t *pixels, double x, double y, int away)
{
	int width = (int)list->width_px + 1, height = (int)list->height_px + 1;
	for (int at_y = (int)y - away; at_y <= (int)y + away; at_y++)
		for (int at_x = (int)x - away; at_x <= (int)x + away; at_x++)
			if (at_x >= 0 && at_y >= 0 && at_x < width && at_y < height && pixels[at_y * width + at_x])
				return true;
	return false;
}

static void check_important(const struct scene *s)
{
	const struct weft_view *v = s->view;
	uint8_t *failures = raster_of(&s->list, WEFT_PAINT_FAILED), *highlights = raster_of(&s->list, WEFT_PAINT_HIGHLIGHT);
	for (uint32_t p = 1; p < s->model->promise_count; p++) {
		const struct weft_promise *promise = &s->model->promises[p];
		double y = weft_view_y(v, weft_view_slot(v, s->layout->rows[p]));
		double x0 = weft_view_x(v, promise->start_ns), x1 = weft_view_x(v, promise->end_ns);
		if (y < 0 || y >= v->height_px)
			continue;
		if (weft_promise_went_wrong(promise) && x1 >= 1 && x1 < v->width_px - 1)
			assert_true(is_near(&s->list, failures, x1, y, 4));
		if (weft_view_is_highlighted(v, p) && x1 >= 0 && x0 < v->width_px - 1)
			assert_true(is_near(&s->list, highlights, x0 < 0 ? 0 : x0, y, 5));
	}
	free(failures);
	free(highlights);
	for (size_t i = 0; i < s->model->pause_count; i++) {
		double x0 = weft_view_x(v, s->model->pauses[i].start_ns), x1 = weft_view_x(v, s->model->pauses[i].end_ns);
		if (x1 >= 0 && x0 < v->width_px - 1) {
			bool painted = false;
			x0 = x0 > 0 ? x0 : 0;
			for (size_t k = 0; k < s->list.count && !painted; k++)
				painted = s->list.prims[k].paint == WEFT_PAINT_PAUSE && (double)s->list.prims[k].x0 <= x0 + 1 &&
					  (double)s->list.prims[k].x1 >= x0 - 1;
			assert_true(painted);
		}
	}
}

/* Returns whether a line or a narrow, high rectangle crosses the middle of a text. */
static bool crosses(const struct weft_prim *p, const struct weft_prim *text)
{
	double left = (double)text->x0 + 5, right = (double)(text->x0 + text->width) - 5;
	double top = (double)text->y0 - weft_font_px(text->font) * 0.6, bottom = (double)text->y0 - 1;
	bool is_arrow = p->paint >= WEFT_PAINT_AWAIT && p->paint <= WEFT_PAINT_SIGNAL;
	if (!is_arrow && p->paint != WEFT_PAINT_CREATION && p->paint != WEFT_PAINT_AXIS_TEXT)
		return false;
	if (p->kind == WEFT_PRIM_RECT)
		return p->x1 - p->x0 < 4 && p->y1 - p->y0 > 20 && (double)p->x0 > left && (double)p->x1 < right &&
		       (double)p->y0 < top && (double)p->y1 > bottom;
	for (int i = 0; p->kind == WEFT_PRIM_LINE && i <= 1000; i++) {
		double x = (double)p->x0 + (double)(p->x1 - p->x0) * i / 1000,
		       y = (double)p->y0 + (double)(p->y1 - p->y0) * i / 1000;
		if (x > left && x < right && y > top && y < bottom)
			return true;
	}
	return false;
}

/* Checks that shapes that cross a text are drawn before the halo of the text. */
static size_t check_halos(const struct weft_draw_list *list)
{
	size_t halos = 0;
	for (size_t i = 0; i < list->count; i++) {
		if (list->prims[i].kind != WEFT_PRIM_TEXT)
			continue;
		halos += list->prims[i].halo;
		for (size_t k = 0; k < list->count && !list->prims[i].halo; k++)
			assert_false(crosses(&list->prims[k], &list->prims[i]));
	}
	return halos;
}

static void test_frames_of_random_traces_have_valid_draw_lists(void **state)
{
	(void)state;
	static struct mirage_writer w;
	size_t halos = 0;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct scene s;
		uint64_t r = seed;
		write_random_trace(&w, seed);
		open_scene_of(&s, w.bytes, w.size, (uint16_t)(seed % 3 ? 1 : 2 + seed % 7));
		for (int frame = 0; frame < 5; frame++) {
			move_about(s.view, &r);
			assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
			check_primitives(&s.list);
			check_texts(&s.list);
			halos += check_halos(&s.list);
			check_important(&s);
			/* Checks that the frame is the same when it is drawn into new buffers. */
			struct weft_draw_list fresh = {0};
			assert_int_equal(weft_draw_frame(&fresh, s.view, NULL, NULL), WEFT_OK);
			char *one = dump_of(&s.list), *other = dump_of(&fresh);
			assert_string_equal(one, other);
			free(one);
			free(other);
			weft_draw_finish(&fresh);
		}
		close_scene(&s);
	}
	assert_true(halos > 0);
}

/* Returns whether a row, or the header of a band, is at the height of a name. */
static bool is_at_row(const struct weft_view *v, double y)
{
	for (uint32_t r = 0; r < v->layout->row_count; r++)
		if (weft_view_is_shown(v, r) && (int)(weft_view_y(v, weft_view_slot(v, r)) + 4096) - 4096 + 5 == (int)y)
			return true;
	return false;
}

/* The names of rows are beside the frame: none floats over another row, and each is at the height of its row. */
static void test_gutter_names_are_at_their_rows(void **state)
{
	(void)state;
	static struct mirage_writer w;
	size_t names = 0, kinds = 0;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct scene s;
		struct weft_draw_list gutter = {0};
		uint64_t r = seed;
		const struct weft_draw_options options = {.names_beside = true};
		write_random_trace(&w, seed);
		open_scene_of(&s, w.bytes, w.size, (uint16_t)(seed % 3 ? 1 : 2 + seed % 7));
		move_about(s.view, &r);
		assert_int_equal(draw_scene(&s, &options), WEFT_OK);
		assert_int_equal(weft_gutter_draw(&gutter, &s.list, s.view, &options, 192, 0, NULL), WEFT_OK);
		check_primitives(&gutter);
		check_texts(&gutter);
		for (size_t i = 0; i < gutter.count; i++) {
			const struct weft_prim *p = &gutter.prims[i];
			const bool is_name =
			    p->paint == WEFT_PAINT_LABEL || p->paint == WEFT_PAINT_LABEL_ID || p->paint == WEFT_PAINT_FAILED;
			if (p->kind != WEFT_PRIM_TEXT || (!is_name && p->paint != WEFT_PAINT_KIND))
				continue;
			assert_true(is_at_row(s.view, (double)p->y0));
			names += is_name;
			kinds += !is_name;
		}
		weft_draw_finish(&gutter);
		close_scene(&s);
	}
	assert_true(names > 300 && kinds > 100);
}

/* If rows are too low for all names, the row that ran most is named. */
static void test_gutter_names_the_busiest_row(void **state)
{
	(void)state;
	enum { ROWS = 200, BUSY = 137 };
	static struct mirage_writer w;
	struct scene s;
	const struct weft_draw_options options = {.names_beside = true};
	w.size = 0;
	mw_packet(&w, 1);
	for (int i = 0; i < ROWS; i++) {
		char name[16];
		snprintf(name, sizeof name, "row %d", i);
		mw_create(&w, 1000000 + i, -1, i, WEFT_KIND_WAIT);
		mw_label(&w, 1000000 + i, i, name);
	}
	mw_op(&w, 2000000, WEFT_OP_RUN, BUSY);
	mw_op(&w, 4000000, WEFT_OP_RUN, -1);
	mw_op(&w, 5000000, WEFT_OP_RUN, 1);
	mw_end(&w, 0);
	open_scene(&s, w.bytes, w.size);
	weft_view_resize(s.view, 800, 700);
	for (int focus = 0; focus < ROWS; focus += 50) {
		struct weft_draw_list gutter = {0};
		weft_view_focus(s.view, focus);
		assert_int_equal(draw_scene(&s, &options), WEFT_OK);
		assert_int_equal(weft_gutter_draw(&gutter, &s.list, s.view, &options, 192, 0, NULL), WEFT_OK);
		/* Only rows that are drawn as lines have names. */
		for (size_t i = 0; i < s.list.scratch->lines.count; i++)
			if (s.layout->by_row[s.layout->row_begin[s.list.scratch->lines.items[i].row]] ==
			    weft_model_find(s.model, BUSY))
				assert_true(has_text(&gutter, "row 137"));
		assert_false(has_text(&s.list, "row 137"));
		weft_draw_finish(&gutter);
	}
	close_scene(&s);
}

static struct weft_str str(const char *text)
{
	return (struct weft_str){text, (uint32_t)strlen(text)};
}

/* A runtime of JavaScript makes two locks, a condition and a handle; a task of the script waits for one of the locks. */
static void test_internals_of_a_runtime_share_a_line(void **state)
{
	(void)state;
	static struct mirage_writer w;
	static struct weft_trace_info info;
	struct weft_module program = {.path = str("/usr/bin/node")};
	const struct weft_site sites[] = {{.file = str("/srv/server.js"), .function = str("serve"), .line = 7},
	    {.function = str("v8::Lock"), .module = &program, .offset = 64}};
	static const enum weft_kind kinds[] = {
	    WEFT_KIND_TASK, WEFT_KIND_LOCK, WEFT_KIND_LOCK, WEFT_KIND_CONDITION, WEFT_KIND_HANDLE, WEFT_KIND_LISTEN};
	enum { TASK, AWAITED, KINDS = sizeof kinds / sizeof *kinds };
	struct scene s;
	struct weft_folding folding = {0};
	struct weft_layout *layout;
	uint32_t *leader_of;
	struct weft_draw_list gutter = {0};
	const struct weft_draw_options options = {.names_beside = true};
	w.size = 0;
	mw_packet(&w, 1);
	for (int i = 0; i < KINDS; i++)
		mw_create(&w, 1000000 + i * 1000, -1, i, kinds[i]);
	mw_op(&w, 1500000, WEFT_OP_RUN, TASK);
	mw_link(&w, 1600000, WEFT_OP_AWAIT, TASK, AWAITED);
	for (int i = 0; i < KINDS; i++)
		mw_label(&w, 3000000, i, "still there");
	mw_op(&w, 4000000, WEFT_OP_RUN, -1);
	mw_end(&w, 0);
	s = (struct scene){0};
	assert_int_equal(weft_trace_open_memory(&s.trace, w.bytes, w.size, "test", NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&s.model, s.trace, NULL, NULL), WEFT_OK);
	info = *s.model->trace;
	info.sites = sites;
	info.site_count = 2;
	info.process = str("node");
	s.model->trace = &info;
	for (int i = 0; i < KINDS; i++)
		s.model->promises[weft_model_find(s.model, i)].site = i != TASK;
	assert_int_equal(weft_layout_create(&s.layout, s.model, NULL), WEFT_OK);
	assert_int_equal(weft_folding_find(&leader_of, &folding, s.model, s.layout, NULL, NULL), WEFT_OK);
	assert_non_null(leader_of);
	for (int i = 0; i < KINDS; i++)
		assert_int_equal(
		    leader_of[weft_model_find(s.model, i)], i == 3 || i == 4 ? weft_model_find(s.model, 2) : WEFT_NONE);
	assert_int_equal(weft_layout_create_folded(&layout, s.model, NULL, NULL, leader_of, NULL), WEFT_OK);
	weft_layout_destroy(s.layout);
	s.layout = layout;
	assert_int_equal(weft_view_create(&s.view, s.model, layout, NULL), WEFT_OK);
	assert_int_equal(draw_scene(&s, &options), WEFT_OK);
	assert_int_equal(weft_gutter_draw(&gutter, &s.list, s.view, &options, 192, 0, NULL), WEFT_OK);
	assert_true(has_text(&gutter, "internals of node") && has_text(&gutter, "+2"));
	free(leader_of);
	folding.shows_internals = true;
	assert_int_equal(weft_folding_find(&leader_of, &folding, s.model, s.layout, NULL, NULL), WEFT_OK);
	assert_null(leader_of);
	weft_draw_finish(&gutter);
	close_scene(&s);
}

static void test_draw_lists_of_frames_equal_goldens(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	write_signs(&w);
	open_scene(&s, w.bytes, w.size);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	check_golden(&s.list, "signs");
	weft_view_resize(s.view, s.view->width_px - 192, s.view->height_px);
	weft_view_show_all(s.view);
	assert_int_equal(weft_gutter_draw_both(&s.list, s.view, &(struct weft_draw_options){0}, 192, NULL), WEFT_OK);
	check_golden(&s.list, "gutter");
	weft_view_resize(s.view, s.view->width_px + 192, s.view->height_px);
	weft_view_show_all(s.view);
	weft_view_resize(s.view, 640, 360);
	weft_view_show(s.view, 1000000, 1400000);
	assert_int_equal(weft_view_find(s.view, "WRITE"), 1);
	struct weft_draw_options options = {.no_metrics = true};
	assert_int_equal(draw_scene(&s, &options), WEFT_OK);
	check_golden(&s.list, "signs-zoomed");
	close_scene(&s);
	write_random_trace(&w, 7);
	open_scene(&s, w.bytes, w.size);
	weft_view_resize(s.view, 400, 200);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	check_golden(&s.list, "crowded");
	close_scene(&s);
}

/* Each sign of the picture has its own paint or word. */
/* A picture of so many rows that it is made of sums, with wide time slices. */
static void test_crowded_rows_are_summed(void **state)
{
	(void)state;
	struct scene s;
	size_t size;
	unsigned char *bytes = crowded_trace(&size);
	assert_non_null(bytes);
	open_scene(&s, bytes, size);
	assert_non_null(s.view->index->sums.sums);
	weft_view_resize(s.view, 300, 88);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	check_primitives(&s.list);
	check_golden(&s.list, "rows-of-sums");
	weft_view_resize(s.view, 1200, 88);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	check_golden(&s.list, "rows-too-wide-for-sums");
	close_scene(&s);
	free(bytes);
}

static void test_picture_of_all_signs_has_each_paint_and_name(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	write_signs(&w);
	open_scene(&s, w.bytes, w.size);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	static const enum weft_paint paints[] = {WEFT_PAINT_SLEEP, WEFT_PAINT_PAUSE, WEFT_PAINT_GRID, WEFT_PAINT_CREATION,
	    WEFT_PAINT_PROMISE, WEFT_PAINT_RUN, WEFT_PAINT_FAILED, WEFT_PAINT_READ, WEFT_PAINT_READ_FAILED, WEFT_PAINT_RESOLVE,
	    WEFT_PAINT_SIGNAL, WEFT_PAINT_KIND, WEFT_PAINT_COUNTER_0};
	for (size_t i = 0; i < sizeof paints / sizeof *paints; i++)
		if (count_of(&s.list, paints[i]) == 0)
			fail_msg("nothing in the picture has paint %d", paints[i]);
	static const char *const words[] = {"sleeping", "main", "read a block", "task", "bytes", "1 division = 200 \xc2\xb5s"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!has_text(&s.list, words[i]))
			fail_msg("the picture does not say \"%s\"", words[i]);
	struct weft_draw_options options = {.no_metrics = true};
	assert_int_equal(draw_scene(&s, &options), WEFT_OK);
	assert_int_equal(count_of(&s.list, WEFT_PAINT_COUNTER_0), 0);
	/* The label of a line that starts left of the picture is at the left edge. */
	weft_view_show(s.view, 500000, 900000);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	assert_true(has_text(&s.list, "read a block"));
	close_scene(&s);
}

static bool is_of_counter(const struct weft_prim *p)
{
	return p->kind == WEFT_PRIM_RECT && p->paint >= WEFT_PAINT_COUNTER_0 && p->paint <= WEFT_PAINT_COUNTER_5;
}

/* Counters are drawn below all promises, also if there are more counters than space; each shows its value at the pointer. */
static void test_counter_lanes_are_below_rows(void **state)
{
	(void)state;
	enum { COUNTERS = 40 };
	static struct mirage_writer w;
	static const char value[] = "1,017";
	struct scene s;
	for (int counters = 1; counters <= COUNTERS; counters += COUNTERS - 1) {
		w.size = 0;
		mw_packet(&w, 1);
		for (int i = 0; i < counters; i++) {
			char name[16];
			snprintf(name, sizeof name, "counter %d", i);
			mw_create(&w, 1000000 + i, -1, i, WEFT_KIND_TASK);
			mw_text(&w, 2000000 + i, WEFT_OP_COUNTER_ADD, i, i == 0 ? 1017 : 17, name);
		}
		mw_end(&w, 0);
		open_scene(&s, w.bytes, w.size);
		assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
		assert_true(s.view->lanes_px > 0 && s.view->lanes_px <= s.view->height_px / 3);
		double lanes = s.view->height_px - s.view->lanes_px - 24, lowest = 0;
		bool any = false;
		for (size_t i = 0; i < s.list.count; i++) {
			const struct weft_prim *p = &s.list.prims[i];
			if (is_of_counter(p)) {
				any = true;
				assert_true((double)p->y0 >= lanes);
			}
			if (p->kind == WEFT_PRIM_RECT && p->paint == WEFT_PAINT_PROMISE)
				lowest = (double)p->y1 > lowest ? (double)p->y1 : lowest;
		}
		assert_true(any && lowest > 0 && lowest <= lanes);
		assert_true(has_text(&s.list, "counter 0") && has_text(&s.list, value));
		assert_true(has_text(&s.list, "and 28 more lanes that do not fit") == (counters == COUNTERS));
		struct weft_ruler_options at = {.has_pointer = true, .pointer_ns = s.model->end_ns};
		assert_int_equal(weft_ruler_guides(&s.list, s.view, &at, NULL), WEFT_OK);
		assert_true(has_text(&s.list, value) && !has_text(&s.list, "counter 0"));
		at.no_metrics = true;
		assert_int_equal(weft_ruler_guides(&s.list, s.view, &at, NULL), WEFT_OK);
		assert_false(has_text(&s.list, value));
		struct weft_draw_options none = {.no_metrics = true};
		assert_int_equal(draw_scene(&s, &none), WEFT_OK);
		assert_true(s.view->lanes_px == 0);
		close_scene(&s);
	}
}

/* Draws 100 steps of one counter: 90 in the first half of a second, then 10. */
static void open_growing_counter(struct scene *s, int step)
{
	static struct mirage_writer w;
	w.size = 0;
	mw_packet(&w, 1);
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	for (int64_t i = 0; i < 100; i++)
		mw_text(&w, i < 90 ? i * 500000000 / 90 : 500000000 + (i - 90) * 50000000, WEFT_OP_COUNTER_ADD, 1,
		    i == 50 ? step : 1, "served");
	mw_create(&w, 1000000000, -1, 2, WEFT_KIND_TASK);
	mw_end(&w, 0);
	open_scene(s, w.bytes, w.size);
	assert_int_equal(draw_scene(s, NULL), WEFT_OK);
}

/* Returns the top of the counter's line at a time. */
static double find_counter_top(const struct scene *s, int64_t time_ns)
{
	const double x = weft_view_x(s->view, time_ns);
	double top = s->view->height_px;
	for (size_t i = 0; i < s->list.count; i++) {
		const struct weft_prim *p = &s->list.prims[i];
		if (is_of_counter(p) && (double)p->x0 <= x && x < (double)p->x1 && (double)p->y0 < top)
			top = (double)p->y0;
	}
	return top;
}

/* A counter that only grows is drawn as its changes per second, which do not depend on the visible interval; other counters are
 * drawn as values. */
static void test_growing_counter_is_drawn_as_rate(void **state)
{
	(void)state;
	struct scene s;
	open_growing_counter(&s, 1);
	assert_true(has_text(&s.list, "served") && has_text(&s.list, "0/s") && !has_text(&s.list, "100"));
	assert_true(find_counter_top(&s, 250000000) + 20 < find_counter_top(&s, 750000000));
	struct weft_ruler_options at = {.has_pointer = true, .pointer_ns = 250000000};
	assert_int_equal(weft_ruler_guides(&s.list, s.view, &at, NULL), WEFT_OK);
	assert_true(has_text(&s.list, "46, 180/s") || has_text(&s.list, "45, 180/s"));
	weft_view_show(s.view, 200000000, 300000000);
	assert_int_equal(weft_ruler_guides(&s.list, s.view, &at, NULL), WEFT_OK);
	assert_true(has_text(&s.list, "46, 180/s") || has_text(&s.list, "45, 180/s"));
	close_scene(&s);
	open_growing_counter(&s, -1);
	assert_true(has_text(&s.list, "98") && !has_text(&s.list, "0/s"));
	close_scene(&s);
}

/* In a wrapped ring, "tasks" has only changes, and the first value of "level" is unknown. */
static void test_counters_of_wrapped_ring_have_values(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	for (uint16_t first = 0; first < 2; first++) {
		const bool is_round = first > 0;
		w.size = 0;
		mw_packet(&w, first);
		mw_create(&w, 1000000, -1, 1, WEFT_KIND_TASK);
		mw_text(&w, 2000000, WEFT_OP_COUNTER_ADD, 1, -1, "tasks");
		mw_text(&w, 2500000, WEFT_OP_COUNTER, 1, 33, "level");
		mw_text(&w, 3000000, WEFT_OP_COUNTER_ADD, 1, 1, "tasks");
		mw_end(&w, 0);
		open_scene(&s, w.bytes, w.size);
		assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
		assert_true(has_text(&s.list, "tasks") && has_text(&s.list, "level"));
		assert_true(has_text(&s.list, "changes only") == is_round);
		const int level = weft_str_equal(s.model->counters[0].name, (struct weft_str){"level", 5}) ? 0 : 1;
		float begins = s.list.width_px;
		for (size_t i = 0; i < s.list.count; i++) {
			const struct weft_prim *p = &s.list.prims[i];
			if (is_of_counter(p) && p->paint == WEFT_PAINT_COUNTER_0 + (unsigned)level && p->x0 < begins)
				begins = p->x0;
		}
		const double told = weft_view_x(s.view, 1500000);
		assert_true((double)begins <= told && ((double)begins > told - 4) == is_round);
		/* Values at the pointer: before the first change, between two changes, at the end. */
		static const char *const values[2][3] = {{"0", "-1", "0"}, {"1", "0", "1"}};
		for (int i = 0; i < 3; i++) {
			struct weft_ruler_options at = {.has_pointer = true, .pointer_ns = 500000 + i * 750000};
			assert_int_equal(weft_ruler_guides(&s.list, s.view, &at, NULL), WEFT_OK);
			assert_true(has_text(&s.list, values[is_round][i]));
			assert_true(has_text(&s.list, "33") == (i == 2));
		}
		close_scene(&s);
	}
}

/* Red marks failures, but not cancellations, and not a missing object that some caller handled. */
static void test_only_unexpected_failures_are_red(void **state)
{
	(void)state;
	static const struct {
		const char *error;
		bool is_read, goes_on, is_red;
	} cases[] = {{"ECANCELED: operation canceled", false, false, false}, {"Lwt.Canceled", true, false, false},
	    {"no such file or directory", true, true, false}, {"ENOENT", true, true, false}, {"ENOENT", true, false, true},
	    {"ENOENT", false, false, true}, {"disk on fire", true, true, true}, {"disk on fire", false, false, true}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		static struct mirage_writer w;
		struct scene s;
		w.size = 0;
		mw_packet(&w, 1);
		for (int p = 1; p <= 3; p++)
			mw_create(&w, 1000000, -1, p, WEFT_KIND_TASK);
		mw_op(&w, 1100000, WEFT_OP_RUN, 3);
		mw_text(&w, 2000000, WEFT_OP_FAIL, 3, 3, cases[i].error);
		if (cases[i].is_read) { /* the error is read by a promise that passes it on to another */
			mw_link(&w, 2100000, WEFT_OP_READ, 2, 3);
			mw_text(&w, 2200000, WEFT_OP_FAIL, 2, 2, cases[i].error);
			mw_link(&w, 2300000, WEFT_OP_READ, 1, 2);
			if (cases[i].goes_on)
				mw_link(&w, 2400000, WEFT_OP_RESOLVE, 1, 1);
			else
				mw_text(&w, 2400000, WEFT_OP_FAIL, 1, 1, cases[i].error);
		}
		mw_op(&w, 3000000, WEFT_OP_RUN, -1);
		mw_end(&w, 0);
		open_scene(&s, w.bytes, w.size);
		assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
		assert_int_equal(count_of(&s.list, WEFT_PAINT_FAILED) > 0, cases[i].is_red);
		assert_int_equal(count_of(&s.list, WEFT_PAINT_READ_FAILED) > 0, cases[i].is_red && cases[i].is_read);
		close_scene(&s);
	}
}

/* Counters get a third of the height if rows keep 200 px; each gets its full height if there is space. */
static void test_counter_lanes_share_the_height(void **state)
{
	(void)state;
	static const struct {
		int counters;
		double height_px, lanes_px;
	} heights[] = {{1, 720, 44}, {5, 720, 220}, {8, 720, 240}, {40, 720, 240}, {8, 600, 200}, {40, 900, 300}, {8, 336, 100},
	    {4, 330, 108}, {8, 264, 60}, {8, 219, 0}, {1, 219, 0}, {1, 221, 21}, {0, 720, 0}};
	struct weft_counter counters[40] = {0};
	for (size_t i = 0; i < 40; i++)
		counters[i].count = 1;
	for (size_t i = 0; i < sizeof heights / sizeof *heights; i++) {
		struct weft_model m = {.counters = counters, .counter_count = (size_t)heights[i].counters};
		assert_float_equal(weft_draw_lanes_px(&m, NULL, heights[i].height_px), heights[i].lanes_px, 0);
	}
}

/* Idle handles share one line, whose name counts them; a handle that runs has its own line and name. */
static void test_idle_handles_share_one_line(void **state)
{
	(void)state;
	static struct mirage_writer w;
	static const char *const names[] = {"SIGHUP", "SIGINT", "SIGTERM", "SIGUSR1"};
	struct scene s;
	w.size = 0;
	mw_packet(&w, 1);
	mw_create(&w, 1000000, -1, 1, WEFT_KIND_TASK);
	mw_label(&w, 1000000, 1, "main");
	for (int i = 0; i < 4; i++) {
		mw_create(&w, 1100000 + i * 10000, 1, 2 + i, WEFT_KIND_OS_SIGNAL);
		mw_label(&w, 1100000 + i * 10000, 2 + i, names[i]);
	}
	mw_op(&w, 1500000, WEFT_OP_RUN, 5);
	mw_op(&w, 1600000, WEFT_OP_RUN, 1);
	for (int i = 0; i < 3; i++)
		mw_link(&w, 2000000 + i * 100000, WEFT_OP_RESOLVE, 1, 2 + i);
	mw_op(&w, 2500000, WEFT_OP_RUN, -1);
	mw_end(&w, 0);
	open_scene(&s, w.bytes, w.size);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	check_golden(&s.list, "fold");
	assert_true(has_text(&s.list, "3 signals") && has_text(&s.list, "SIGUSR1"));
	for (int i = 0; i < 3; i++)
		assert_false(has_text(&s.list, names[i]));
	/* If one of the idle handles is a search result, the shared line is highlighted. */
	assert_int_equal(weft_view_find(s.view, "SIGTERM"), 1);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	assert_int_equal(count_of(&s.list, WEFT_PAINT_HIGHLIGHT), 1);
	struct weft_marks marks = {.hovered = WEFT_NONE, .selected = WEFT_NONE, .dim = true};
	assert_int_equal(weft_marks_draw(&s.list, s.view, &marks, NULL), WEFT_OK);
	assert_int_equal(count_of(&s.list, WEFT_PAINT_HIGHLIGHT), 1);
	assert_true(has_text(&s.list, "3 signals"));
	/* The selected promise has its own name. */
	marks = (struct weft_marks){.hovered = WEFT_NONE, .selected = weft_model_find(s.model, 4)};
	assert_int_equal(weft_marks_draw(&s.list, s.view, &marks, NULL), WEFT_OK);
	assert_true(has_text(&s.list, "SIGTERM"));
	close_scene(&s);
}

/* A promise without a label is named by the function that created it, else by the site, else by its id. */
/* Returns the start of a text, or NULL if the text is missing. */
static const struct weft_prim *text_of(const struct weft_draw_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->prims[i].kind == WEFT_PRIM_TEXT && list->prims[i].count == strlen(text) &&
		    memcmp(list->text + list->prims[i].first, text, strlen(text)) == 0)
			return &list->prims[i];
	return NULL;
}

/* Returns the opacity of the arrows of a selected promise that waited `waits` times. */
static int marked_alpha(int waits)
{
	static struct mirage_writer w;
	struct scene s;
	uint32_t links[512];
	size_t count = 0;
	int alpha = 0;
	w.size = 0;
	mw_packet(&w, 1);
	mw_create(&w, 1000000, -1, 1, WEFT_KIND_TASK);
	for (int i = 0; i < waits; i++) {
		const int64_t at_ns = 2000000 + (int64_t)i * 100000000 / waits;
		mw_create(&w, at_ns, 1, 2 + i, WEFT_KIND_TASK);
		mw_link(&w, at_ns + 1000, WEFT_OP_AWAIT, 1, 2 + i);
		mw_link(&w, at_ns + 100000, WEFT_OP_RESOLVE, -1, 2 + i);
	}
	mw_end(&w, 0);
	open_scene(&s, w.bytes, w.size);
	for (uint32_t l = 0; l < s.model->link_count; l++)
		if (s.model->links[l].kind == WEFT_LINK_AWAIT && count < sizeof links / sizeof *links)
			links[count++] = l;
	assert_int_equal(count, waits);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	struct weft_marks marks = {.hovered = WEFT_NONE, .selected = weft_model_find(s.model, 1)};
	marks.arrows[0].links = links;
	marks.arrows[0].count = count;
	assert_int_equal(weft_marks_draw(&s.list, s.view, &marks, NULL), WEFT_OK);
	for (size_t i = 0; i < s.list.count; i++)
		if (s.list.prims[i].paint == WEFT_PAINT_AWAIT && s.list.prims[i].alpha > alpha)
			alpha = s.list.prims[i].alpha;
	/* The arrows cross the plate, whose text needs no halo, since a halo would have the colour of the plate. */
	marks.selected = weft_model_find(s.model, 2);
	assert_int_equal(weft_marks_draw(&s.list, s.view, &marks, NULL), WEFT_OK);
	for (size_t i = 0; i < s.list.count; i++)
		assert_false(s.list.prims[i].kind == WEFT_PRIM_TEXT && s.list.prims[i].halo);
	close_scene(&s);
	return alpha;
}

/* Names stay readable through the arrows of a connection that waited for thousands of reads. */
static void test_arrows_of_a_promise_with_many_arrows_are_pale(void **state)
{
	(void)state;
	assert_true(marked_alpha(10) > 200);
	const int crowd = marked_alpha(400);
	assert_true(crowd > 40 && crowd < 128);
}

/* The name of the selected promise is where the frame has it, on a plate that hides the background. */
static void test_name_of_selected_promise_has_an_opaque_background(void **state)
{
	(void)state;
	static const char *const names[] = {"main", "read a block", "nobody signals", "write it"};
	static struct mirage_writer w;
	struct scene s;
	size_t seen = 0;
	write_signs(&w);
	open_scene(&s, w.bytes, w.size);
	for (uint32_t p = 1; p < s.model->promise_count; p++) {
		char name[100];
		weft_model_name(s.model, p, name, sizeof name);
		for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
			if (strcmp(name, names[n]) != 0)
				continue;
			assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
			assert_non_null(text_of(&s.list, name));
			const struct weft_prim frame = *text_of(&s.list, name);
			struct weft_marks marks = {.hovered = WEFT_NONE, .selected = p};
			assert_int_equal(weft_marks_draw(&s.list, s.view, &marks, NULL), WEFT_OK);
			const struct weft_prim *on_plate = text_of(&s.list, name);
			assert_non_null(on_plate);
			assert_true(on_plate->x0 == frame.x0 && on_plate->y0 == frame.y0);
			bool hidden = false;
			for (size_t i = 0; i < s.list.count; i++) {
				const struct weft_prim *r = &s.list.prims[i];
				hidden |= r->kind == WEFT_PRIM_RECT && r->paint == WEFT_PAINT_ACCENT && r->x0 < frame.x0 &&
					  r->x1 > frame.x0 + frame.width && r->y0 < frame.y0 - 11 && r->y1 > frame.y0 + 3;
			}
			assert_true(hidden);
			seen++;
		}
	}
	assert_int_equal(seen, sizeof names / sizeof *names);
	close_scene(&s);
}

/* A long C++ name that does not fit is cut in its middle: its end names the function. */
static void test_long_names_are_cut_in_the_middle(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	w.size = 0;
	mw_packet(&w, 1);
	mw_create(&w, 1000000, -1, 1, WEFT_KIND_TASK);
	mw_label(&w, 1000000, 1, "server::detail::connection_handler<server::http::session>::on_read(int)");
	mw_link(&w, 9000000, WEFT_OP_RESOLVE, -1, 1);
	mw_op(&w, 10000000, WEFT_OP_RUN, -1);
	mw_end(&w, 0);
	open_scene(&s, w.bytes, w.size);
	for (int width = 240; width < 440; width += 20) {
		bool is_there = false;
		weft_view_resize(s.view, width, 300);
		weft_view_show(s.view, 1000000, 8000000);
		assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
		for (size_t i = 0; i < s.list.count; i++) {
			const struct weft_prim *p = &s.list.prims[i];
			const char *text = s.list.text + p->first;
			if (p->kind != WEFT_PRIM_TEXT || p->count < 12 || memcmp(text, "server", 6) != 0)
				continue;
			is_there = memcmp(text + p->count - 11, "n_read(int)", 11) == 0 && p->x0 + p->width < (float)width;
			for (size_t k = 0; k + 3 < p->count && is_there; k++)
				is_there = memcmp(text + k, "\xe2\x80\xa6", 3) != 0 || k < p->count - 11;
		}
		assert_true(is_there);
	}
	close_scene(&s);
}

static bool overlap(double from, double to, double other_from, double other_to)
{
	return from < other_to && other_from < to;
}

/* A name does not overlap a run of its row, and there is a gap between a kind and the name below it, at every row height. */
static void test_names_do_not_overlap_runs(void **state)
{
	(void)state;
	static struct mirage_writer w;
	size_t kinds = 0, names = 0;
	w.size = 0;
	mw_packet(&w, 1);
	for (int64_t p = 1; p <= 8; p++) {
		mw_create(&w, 1000000 + p, -1, p, WEFT_KIND_TASK);
		mw_label(&w, 1000000 + p, p, "a quite long name");
	}
	for (int64_t p = 1; p <= 8; p++)
		mw_op(&w, p * 1000000 + 1000, WEFT_OP_RUN, p);
	mw_op(&w, 10000000, WEFT_OP_RUN, -1);
	mw_end(&w, 0);
	struct scene s;
	open_scene(&s, w.bytes, w.size);
	for (int height = 100; height < 500; height += 3) {
		weft_view_resize(s.view, 1000, height);
		weft_view_show(s.view, height % 7 * 1000000, (height % 7 + 3) * 1000000);
		assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
		for (size_t i = 0; i < s.list.count; i++) {
			const struct weft_prim *name = &s.list.prims[i];
			double top = (double)name->y0 - weft_font_px(name->font) * 0.7;
			for (size_t k = 0; k < s.list.count && name->kind == WEFT_PRIM_TEXT && name->paint == WEFT_PAINT_LABEL;
			     k++) {
				const struct weft_prim *p = &s.list.prims[k];
				bool is_kind = p->kind == WEFT_PRIM_TEXT && p->paint == WEFT_PAINT_KIND;
				if (is_kind && overlap((double)p->x0, (double)(p->x0 + p->width), (double)name->x0,
						   (double)(name->x0 + name->width))) {
					assert_false(overlap((double)p->y0 - 7, (double)p->y0 + 4, top, (double)name->y0));
					kinds++;
				}
				if (p->kind == WEFT_PRIM_RECT && p->paint == WEFT_PAINT_RUN && p->x1 - p->x0 > 10 &&
				    overlap((double)p->x0, (double)p->x1, (double)name->x0, (double)(name->x0 + name->width))) {
					assert_false(overlap((double)p->y0, (double)p->y1, top + 1, (double)name->y0 - 1));
					names++;
				}
			}
		}
	}
	assert_true(kinds > 100 && names > 100);
	close_scene(&s);
}

/* A hundred promises are created and resolved within a moment of a long trace: the frame shows a number instead of their arrows,
 * and that number is not in front of the columns.  The same arrows over the whole trace are drawn; so are few arrows, however
 * close they are. */
static void test_dense_arrows_are_replaced_by_their_number(void **state)
{
	(void)state;
	enum { NEAR, WIDE, FEW, CASES };
	for (int which = NEAR; which < CASES; which++) {
		const int64_t ARROWS = which == FEW ? 30 : 100;
		const bool wide = which == WIDE;
		static struct mirage_writer w;
		struct scene s;
		int64_t now = 1000;
		w.size = 0;
		mw_packet(&w, 1);
		mw_create(&w, now, -1, 1, WEFT_KIND_TASK);
		mw_op(&w, now, WEFT_OP_RUN, 1);
		for (int64_t i = 0; i < ARROWS; i++)
			mw_create(&w, now += 10, 1, 2 + i, WEFT_KIND_TASK);
		for (int64_t i = 0; i < ARROWS; i++)
			mw_link(&w, now += wide ? 1000000 : 10000, WEFT_OP_RESOLVE, 1, 2 + i);
		mw_op(&w, now + 10, WEFT_OP_RUN, -1);
		mw_op(&w, 100000000, WEFT_OP_RUN, 1);
		mw_op(&w, 100001000, WEFT_OP_RUN, -1);
		mw_end(&w, 0);
		open_scene(&s, w.bytes, w.size);
		assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
		size_t heads = 0;
		const struct weft_prim *said = text_of(&s.list, "100 arrows, at most 9 per pixel");
		for (size_t i = 0; i < s.list.count; i++)
			heads += s.list.prims[i].kind == WEFT_PRIM_TRIANGLE && s.list.prims[i].paint == WEFT_PAINT_RESOLVE;
		if (which != NEAR) {
			assert_true(heads >= (size_t)ARROWS && !said);
		} else {
			assert_int_equal(heads, 0);
			assert_true(said && said->x0 > 640);
		}
		close_scene(&s);
	}
}

/* Two crowds with a second of sleep between them, in very low rows: each is drawn on its side of the gap, and the gap is empty.
 */
static void test_text_crossed_by_a_folded_sleep_bound_has_a_halo(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	struct weft_lulls *lulls;
	w.size = 0;
	mw_packet(&w, 1);
	mw_create(&w, 1000, -1, 1, WEFT_KIND_TASK);
	mw_label(&w, 1001, 1, "whose name is longer than what is seen of it before it sleeps");
	mw_create(&w, 1002, 1, 2, WEFT_KIND_TASK);
	mw_op(&w, 1003, WEFT_OP_RUN, 2);
	mw_op(&w, 11000, WEFT_OP_RUN, -1);
	mw_op(&w, 1000000000, WEFT_OP_RUN, 2);
	mw_op(&w, 1000200000, WEFT_OP_RUN, -1);
	mw_end(&w, 0);
	open_scene(&s, w.bytes, w.size);
	assert_int_equal(weft_lulls_find(&lulls, s.model, NULL), WEFT_OK);
	assert_int_equal(weft_view_fold_sleep(s.view, lulls, NULL), WEFT_OK);
	weft_view_show_all(s.view);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	assert_true(check_halos(&s.list) > 0);
	assert_int_equal(weft_view_fold_sleep(s.view, NULL, NULL), WEFT_OK);
	weft_lulls_destroy(lulls);
	close_scene(&s);
}

static void summed_rows_are_drawn_beside_a_folded_sleep_not_in_it(void **state)
{
	(void)state;
	enum { CROWD = 400 };
	static struct mirage_writer w;
	struct scene s;
	struct weft_lulls *lulls;
	int64_t now = 1000;
	w.size = 0;
	mw_packet(&w, 1);
	for (int64_t crowd = 0; crowd < 2; crowd++) {
		const int64_t first = 1 + crowd * CROWD;
		for (int64_t i = 0; i < CROWD; i++)
			mw_create(&w, now += 10, -1, first + i, WEFT_KIND_TASK);
		mw_op(&w, now += 10, WEFT_OP_RUN, first);
		for (int64_t i = 0; i < CROWD; i++)
			mw_link(&w, now += 10, WEFT_OP_RESOLVE, first, first + i);
		mw_op(&w, now += 10, WEFT_OP_RUN, -1);
		now += 1000000000;
	}
	mw_end(&w, 0);
	open_scene(&s, w.bytes, w.size);
	assert_int_equal(weft_lulls_find(&lulls, s.model, NULL), WEFT_OK);
	assert_int_equal(weft_view_fold_sleep(s.view, lulls, NULL), WEFT_OK);
	weft_view_resize(s.view, 1280, 100);
	weft_view_show_all(s.view);
	assert_int_equal(draw_scene(&s, &(struct weft_draw_options){.no_metrics = true}), WEFT_OK);
	double gap_from = 0, gap_to = 0, before = 0, behind = 0;
	for (size_t i = 0; i < lulls->count; i++)
		if (lulls->items[i].end_ns - lulls->items[i].start_ns > 900000000) {
			gap_from = weft_view_x(s.view, lulls->items[i].start_ns);
			gap_to = weft_view_x(s.view, lulls->items[i].end_ns);
		}
	assert_true(gap_to - gap_from > 30 && gap_to - gap_from < 100);
	for (size_t i = 0; i < s.list.count; i++) {
		const struct weft_prim *p = &s.list.prims[i];
		if (p->kind != WEFT_PRIM_RECT || p->paint != WEFT_PAINT_PROMISE || p->y1 - p->y0 > 3)
			continue;
		double x0 = (double)p->x0, x1 = (double)p->x1;
		assert_true(x1 <= gap_from + 4 || x0 >= gap_to - 4);
		before += x1 <= gap_from + 4 ? x1 - x0 : 0;
		behind += x0 >= gap_to - 4 ? x1 - x0 : 0;
	}
	/* Both crowds took equally long, so both are equally wide. */
	assert_true(before > 1000 && behind > before * 0.8 && before > behind * 0.8);
	close_scene(&s);
	weft_lulls_destroy(lulls);
}

static void test_promise_without_a_label_is_named_by_its_creation_site(void **state)
{
	(void)state;
	static const char libffi[] = "/usr/lib/libffi.so.8.1.2";
	static const struct weft_module bridge = {.path = {libffi, sizeof libffi - 1}};
	static const struct weft_site sites[] = {
	    {.file = {"net/echo.c", 10}, .function = {"await_input", 11}, .line = 42},
	    {.file = {"net/pool.c", 10}, .function = {"", 0}, .line = 7},
	    {.function = {"ffi_call", 8}, .offset = 0x6f28, .module = &bridge},
	};
	char format[64];
	static struct mirage_writer w;
	struct scene s;
	write_signs(&w);
	open_scene(&s, w.bytes, w.size);
	struct weft_trace_info info = *s.model->trace;
	info.sites = sites;
	info.site_count = 3;
	s.model->trace = &info;
	uint32_t unlabelled = weft_model_find(s.model, 6), labelled = weft_model_find(s.model, 1);
	s.model->promises[labelled].site = 0;
	static const char *const names[] = {"await_input", "pool.c:7", "6"};
	static const uint32_t site_of[] = {0, 1, WEFT_NONE};
	for (size_t i = 0; i < 3; i++) {
		s.model->promises[unlabelled].site = site_of[i];
		assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(has_text(&s.list, names[k]), k == i);
		assert_true(has_text(&s.list, "read a block"));
	}
	/* Programs such as Python call through libffi, whose functions are never shown as the site. */
	weft_site_format(&sites[2], format, sizeof format);
	assert_string_equal(format, "a call through libffi");
	s.model->promises[unlabelled].site = 2;
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	assert_false(has_text(&s.list, "ffi_call"));
	s.model->promises[unlabelled].site = 1;
	assert_int_equal(weft_view_find(s.view, "AWAIT_in"), 1);
	assert_true(weft_view_is_highlighted(s.view, labelled));
	assert_int_equal(weft_view_find(s.view, "pool"), 1);
	assert_true(weft_view_is_highlighted(s.view, unlabelled));
	assert_int_equal(weft_view_find(s.view, "net/"), 2);
	close_scene(&s);
}

static int append(void *ctx, const void *bytes, size_t size)
{
	char **text = ctx;
	size_t len = *text ? strlen(*text) : 0;
	*text = realloc(*text, len + size + 1);
	assert_non_null(*text);
	memcpy(*text + len, bytes, size);
	(*text)[len + size] = '\0';
	return 0;
}

static int refuse(void *ctx, const void *bytes, size_t size)
{
	(void)ctx;
	(void)bytes;
	(void)size;
	return -1;
}

static void test_labels_in_svg_are_escaped(void **state)
{
	(void)state;
	static const char hostile[] = "((time 0.0)(op(Creates -1 0 task)))((time 0.0)(op(Label 0 \"</text><script>&x\")))"
				      "((time 0.1)(op(Switch 0)))";
	struct scene s;
	char *svg = NULL;
	open_scene(&s, hostile, sizeof hostile - 1);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	assert_int_equal(weft_svg_write(&s.list, WEFT_THEME_DARK, append, &svg, NULL), WEFT_OK);
	assert_null(strstr(svg, "<script>"));
	assert_non_null(strstr(svg, "&lt;/text&gt;&lt;script&gt;&amp;x</text>"));
	assert_int_equal(strncmp(svg + strlen(svg) - 7, "</svg>\n", 7), 0);
	free(svg);
	assert_int_equal(weft_svg_write(&s.list, WEFT_THEME_LIGHT, refuse, NULL, NULL), WEFT_EIO);
	close_scene(&s);
}

/* A trace has half a million promises, runs and links: the size of a frame is limited by the visible pixels at any zoom. */
static void test_frame_size_is_bounded(void **state)
{
	(void)state;
	enum { EVENTS = 60000 };
	size_t room = 64 + EVENTS * 80, at = 0;
	char *text = malloc(room);
	assert_non_null(text);
	at += (size_t)snprintf(text, room, "((time 0.0)(op(Creates -1 0 task)))");
	for (int i = 1; i < EVENTS; i++)
		at += (size_t)(i % 3 ? snprintf(text + at, room - at, "((time 0.%06d)(op(Creates %d %d task)))", i, i / 50, i)
				     : snprintf(text + at, room - at, "((time 0.%06d)(op(Resolves 0 %d%s)))", i, i / 2,
					   i % 300 ? "()" : "(Bad)"));
	struct scene s;
	open_scene(&s, text, at);
	for (double zoom = 1; zoom < 1e6; zoom *= 4) {
		weft_view_show_all(s.view);
		weft_view_zoom(s.view, zoom, 700);
		weft_view_focus(s.view, s.view->slots * 0.4);
		assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
		check_primitives(&s.list);
		check_texts(&s.list);
		check_important(&s);
		assert_true(s.list.count < 20000);
		if (zoom == 1)
			assert_true(count_of(&s.list, WEFT_PAINT_FAILED) > 10);
	}
	close_scene(&s);
	free(text);
}

/* A row of many promises that are too short for names shows counts by kind. */
static void test_rows_of_short_promises_show_counts(void **state)
{
	(void)state;
	enum { PROMISES = 1200 };
	const size_t room = (size_t)PROMISES * 200;
	char *text = malloc(room);
	struct scene s;
	assert_non_null(text);
	for (int is_mixed = 0; is_mixed < 2; is_mixed++) {
		size_t at = 0;
		for (int i = 0; i < PROMISES; i++)
			at += (size_t)snprintf(text + at, room - at,
			    "((time %d.%03d)(op(Creates -1 %d task)))((time %d.%03d)(op(Label %d \"%s\")))"
			    "((time %d.%03d5)(op(Resolves -1 %d())))",
			    i / 1000, i % 1000, i, i / 1000, i % 1000, i, is_mixed && i % 2 ? "POST /" : "GET /", i / 1000,
			    i % 1000, i);
		open_scene(&s, text, at);
		weft_view_resize(s.view, 800, 200);
		assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
		assert_true(has_text(&s.list, is_mixed ? "1,200 \xc3\x97 task" : "1,200 \xc3\x97 GET /"));
		check_texts(&s.list);
		/* A promise that is long enough has its own name. */
		weft_view_show(s.view, 500000, 1100000);
		assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
		assert_true(has_text(&s.list, "GET /") || has_text(&s.list, "POST /"));
		assert_false(has_text(&s.list, "2 \xc3\x97 GET /") || has_text(&s.list, "2 \xc3\x97 task"));
		close_scene(&s);
	}
	free(text);
}

/* Returns the amount of red in a picture of 4,000 consecutive promises, one in `each` of which fails. */
static double red_of(int each)
{
	enum { PROMISES = 4000 };
	const size_t room = (size_t)PROMISES * 160;
	char *text = malloc(room);
	size_t at = 0;
	double red = 0;
	struct scene s;
	assert_non_null(text);
	for (int i = 0; i < PROMISES; i++)
		at += (size_t)snprintf(text + at, room - at, "((time 0.%06d)(op(Creates -1 %d task)))", i, i);
	for (int i = 0; i < PROMISES; i++)
		at += (size_t)snprintf(text + at, room - at, "((time 0.%06d)(op(Resolves -1 %d%s)))", PROMISES + i * 10, i,
		    i % each ? "()" : "(Bad)");
	open_scene(&s, text, at);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	for (size_t i = 0; i < s.list.count; i++) {
		const struct weft_prim *p = &s.list.prims[i];
		if (p->kind == WEFT_PRIM_RECT && p->paint == WEFT_PAINT_FAILED)
			red += (double)(p->x1 - p->x0) * (double)(p->y1 - p->y0) * p->alpha / 255;
	}
	check_important(&s);
	close_scene(&s);
	free(text);
	return red;
}

/* Returns the amount of red in a picture of 800 promises, `of_ten` of ten of which should resolve and never do. */
static double red_of_pending(int of_ten)
{
	static struct mirage_writer w;
	struct scene s;
	double red = 0;
	w.size = 0;
	mw_packet(&w, 1);
	for (int64_t i = 1; i <= 800; i++)
		mw_create(&w, 1000, -1, i, WEFT_KIND_TASK);
	for (int64_t i = 1; i <= 800; i++)
		if (i * 7 % 10 < of_ten)
			mw_label(&w, 2000, i, "__should_resolve");
	mw_op(&w, 1000000000, WEFT_OP_RUN, -1);
	mw_end(&w, 0);
	open_scene(&s, w.bytes, w.size);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	for (size_t i = 0; i < s.list.count; i++) {
		const struct weft_prim *p = &s.list.prims[i];
		if (p->kind == WEFT_PRIM_RECT && p->paint == WEFT_PAINT_FAILED)
			red += (double)(p->x1 - p->x0) * (double)(p->y1 - p->y0) * p->alpha / 255;
	}
	close_scene(&s);
	return red;
}

/* In very low rows, few failures are less red than failures everywhere. */
static void test_amount_of_red_grows_with_the_share_of_failures(void **state)
{
	(void)state;
	const double few = red_of(20), all = red_of(1), six = red_of_pending(6), ten = red_of_pending(10);
	assert_true(few > 0);
	assert_true(all > 4 * few);
	assert_true(six > 0.5 * ten && six < 0.7 * ten);
}

/* Returns the amount of pink in a picture of a program that is paused for `us` of each ms. */
static double pink_of(int64_t us)
{
	static struct mirage_writer w;
	struct scene s;
	double pink = 0;
	w.size = 0;
	mw_packet(&w, 1);
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	for (int64_t i = 1; i <= 3000; i++)
		mw_op(&w, i * 1000000, WEFT_OP_PAUSE, us * 1000);
	mw_end(&w, 0);
	open_scene(&s, w.bytes, w.size);
	assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
	for (size_t i = 0; i < s.list.count; i++) {
		const struct weft_prim *p = &s.list.prims[i];
		if (p->kind == WEFT_PRIM_RECT && p->paint == WEFT_PAINT_PAUSE)
			pink += (double)(p->x1 - p->x0) * p->alpha / 255 / s.view->width_px;
	}
	close_scene(&s);
	return pink;
}

/* If a pixel has many pauses, the strength of their colour is also their share of the time. */
static void test_pause_colour_shows_the_share_of_paused_time(void **state)
{
	(void)state;
	const double few = pink_of(50), half = pink_of(450), nearly_all = pink_of(950);
	assert_true(few > 0.02 && few < 0.3);
	assert_true(half > 0.4 && half < 0.6);
	assert_true(nearly_all > 0.8);
}

/* Returns the ratio of luminances, from 1 to 21, as defined by the web accessibility guidelines (WCAG). */
static double contrast(uint32_t one, uint32_t other)
{
	double light[2] = {0, 0};
	for (int i = 0; i < 2; i++) {
		for (int c = 0; c < 3; c++) {
			static const double part[] = {0.0722, 0.7152, 0.2126};
			double v = ((i ? other : one) >> 8 * c & 255) / 255.0;
			light[i] += part[c] * v * v * (0.8 + 0.2 * v); /* an approximation of the power of 2.4 */
		}
	}
	double high = light[0] > light[1] ? light[0] : light[1], low = light[0] + light[1] - high;
	return (high + 0.05) / (low + 0.05);
}

/* Every paint has enough contrast on every ground, in both themes. */
static void test_themes_have_enough_contrast(void **state)
{
	(void)state;
	static const struct {
		enum weft_paint paint;
		double least;
	} wanted[] = {{WEFT_PAINT_LABEL, 7}, {WEFT_PAINT_FAILED, 3.4}, {WEFT_PAINT_PROMISE, 4.5}, {WEFT_PAINT_LABEL_ID, 2.7},
	    {WEFT_PAINT_BAND_TEXT, 4.5}, {WEFT_PAINT_AXIS_TEXT, 2.7}, {WEFT_PAINT_READ, 3.4}, {WEFT_PAINT_RESOLVE, 2.7},
	    {WEFT_PAINT_SIGNAL, 1.9}, {WEFT_PAINT_AWAIT, 1.7}, {WEFT_PAINT_READ_FAILED, 3}, {WEFT_PAINT_ACCENT, 3.4}};
	static const enum weft_paint grounds[] = {WEFT_PAINT_BACKGROUND, WEFT_PAINT_SLEEP};
	for (enum weft_theme theme = WEFT_THEME_LIGHT; theme <= WEFT_THEME_DARK; theme++)
		for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
			for (size_t g = 0; g < 2; g++) {
				double got = contrast(weft_theme_rgb(theme, wanted[i].paint), weft_theme_rgb(theme, grounds[g]));
				if (got < wanted[i].least)
					fail_msg("theme %d: paint %d on paint %d has a contrast of %.2f", theme, wanted[i].paint,
					    grounds[g], got);
			}
}

int main(int argc, char **argv)
{
	golden_dir = argc > 1 ? argv[1] : "golden";
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_frames_of_random_traces_have_valid_draw_lists),
	    cmocka_unit_test(test_gutter_names_are_at_their_rows),
	    cmocka_unit_test(test_gutter_names_the_busiest_row),
	    cmocka_unit_test(test_internals_of_a_runtime_share_a_line),
	    cmocka_unit_test(test_draw_lists_of_frames_equal_goldens),
	    cmocka_unit_test(test_crowded_rows_are_summed),
	    cmocka_unit_test(test_counter_lanes_are_below_rows),
	    cmocka_unit_test(test_growing_counter_is_drawn_as_rate),
	    cmocka_unit_test(test_counters_of_wrapped_ring_have_values),
	    cmocka_unit_test(test_counter_lanes_share_the_height),
	    cmocka_unit_test(test_picture_of_all_signs_has_each_paint_and_name),
	    cmocka_unit_test(test_only_unexpected_failures_are_red),
	    cmocka_unit_test(test_idle_handles_share_one_line),
	    cmocka_unit_test(test_name_of_selected_promise_has_an_opaque_background),
	    cmocka_unit_test(test_arrows_of_a_promise_with_many_arrows_are_pale),
	    cmocka_unit_test(test_names_do_not_overlap_runs),
	    cmocka_unit_test(test_long_names_are_cut_in_the_middle),
	    cmocka_unit_test(test_dense_arrows_are_replaced_by_their_number),
	    cmocka_unit_test(test_text_crossed_by_a_folded_sleep_bound_has_a_halo),
	    cmocka_unit_test(summed_rows_are_drawn_beside_a_folded_sleep_not_in_it),
	    cmocka_unit_test(test_promise_without_a_label_is_named_by_its_creation_site),
	    cmocka_unit_test(test_labels_in_svg_are_escaped),
	    cmocka_unit_test(test_frame_size_is_bounded),
	    cmocka_unit_test(test_rows_of_short_promises_show_counts),
	    cmocka_unit_test(test_amount_of_red_grows_with_the_share_of_failures),
	    cmocka_unit_test(test_pause_colour_shows_the_share_of_paused_time),
	    cmocka_unit_test(test_themes_have_enough_contrast),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
