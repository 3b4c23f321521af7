/* draw_test.c: what must hold in every frame, on random programs at random places; and frames as they were when somebody looked
 * at them.  Run with WEFT_RECORD=1 to record those anew.  SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "draw/random_trace.h"
#include "draw/svg.h"
#include "view/index.h"

static const char *golden_dir;

struct scene {
	struct weft_trace *trace;
	struct weft_model *model;
	struct weft_layout *layout;
	struct weft_view *view;
	struct weft_draw_list list;
};

static void open_scene(struct scene *s, const void *bytes, size_t size)
{
	*s = (struct scene){0};
	assert_int_equal(weft_trace_open_memory(&s->trace, bytes, size, "test", NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&s->model, s->trace, NULL, NULL), WEFT_OK);
	assert_int_equal(weft_layout_create(&s->layout, s->model, NULL), WEFT_OK);
	assert_int_equal(weft_view_create(&s->view, s->model, s->layout, NULL), WEFT_OK);
}

static void close_scene(struct scene *s)
{
	weft_draw_finish(&s->list);
	weft_view_destroy(s->view);
	weft_layout_destroy(s->layout);
	weft_model_destroy(s->model);
	weft_trace_close(s->trace);
}

static char *dump_of(const struct weft_draw_list *list)
{
	char *text;
	size_t size;
	assert_int_equal(weft_draw_dump(list, &text, &size), WEFT_OK);
	assert_int_equal(strlen(text), size);
	return text;
}

static void move_about(struct weft_view *v, uint64_t *r)
{
	weft_view_resize(v, 64 + random_below(r, 1600), 64 + random_below(r, 1000));
	weft_view_show_all(v);
	for (uint32_t n = random_below(r, 4); n > 0; n--)
		weft_view_zoom(v, 1 + random_below(r, 300) / 10.0, random_below(r, (uint32_t)v->width_px));
	weft_view_pan(v, (double)random_below(r, 400) - 200);
	if (random_below(r, 2))
		weft_view_focus(v, v->slots * random_below(r, 100) / 100);
	else
		weft_view_focus_best(v);
	weft_view_unhighlight(v);
	if (random_below(r, 2))
		weft_view_find(v, "read");
	else if (v->model->promise_count > 1)
		weft_view_find_related(v, 1 + random_below(r, (uint32_t)v->model->promise_count - 1));
}

/* The box in which the letters of a text are, as high as those of a common font. */
static bool texts_overlap(const struct weft_prim *a, const struct weft_prim *b)
{
	float a_px = (float)weft_font_px(a->font), b_px = (float)weft_font_px(b->font);
	return a->x0 < b->x0 + b->width && b->x0 < a->x0 + a->width && a->y0 - 0.75f * a_px < b->y0 + 0.2f * b_px &&
	       b->y0 - 0.75f * b_px < a->y0 + 0.2f * a_px;
}

static void check_texts(const struct weft_draw_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct weft_prim *a = &list->prims[i];
		if (a->kind != WEFT_PRIM_TEXT)
			continue;
		assert_true(a->count > 0 && a->first + a->count <= list->text_bytes);
		assert_true(a->x0 >= 0 && a->x0 + a->width <= list->width_px + 4);
		for (size_t k = i + 1; k < list->count; k++)
			assert_false(list->prims[k].kind == WEFT_PRIM_TEXT && texts_overlap(a, &list->prims[k]));
	}
}

/* Whether something of that paint covers, within `slack` px, the point; colours that hide it do not count as it is not hidden. */
static bool is_painted(const struct weft_draw_list *list, enum weft_paint paint, double x, double y, double slack)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct weft_prim *p = &list->prims[i];
		if (p->kind == WEFT_PRIM_RECT && p->paint == paint && (double)p->x0 - slack <= x && x <= (double)p->x1 + slack &&
		    (double)p->y0 - slack <= y && y <= (double)p->y1 + slack)
			return true;
	}
	return false;
}

static void check_important(const struct scene *s)
{
	const struct weft_view *v = s->view;
	for (uint32_t p = 1; p < s->model->promise_count; p++) {
		const struct weft_promise *promise = &s->model->promises[p];
		double y = weft_view_y(v, weft_view_slot(v, s->layout->rows[p]));
		double x0 = weft_view_x(v, promise->start_ns), x1 = weft_view_x(v, promise->end_ns);
		if (y < 0 || y >= v->height_px)
			continue;
		bool failed = promise->end == WEFT_END_FAILED || (promise->flags & WEFT_PROMISE_NEVER_RESOLVED);
		if (failed && x1 >= 1 && x1 < v->width_px - 1)
			assert_true(is_painted(&s->list, WEFT_PAINT_FAILED, x1, y, 4));
		if (weft_view_is_highlighted(v, p) && x1 >= 0 && x0 < v->width_px - 1)
			assert_true(is_painted(&s->list, WEFT_PAINT_HIGHLIGHT, x0 < 0 ? 0 : x0, y, 5));
	}
	for (size_t i = 0; i < s->model->pause_count; i++) {
		double x0 = weft_view_x(v, s->model->pauses[i].start_ns), x1 = weft_view_x(v, s->model->pauses[i].end_ns);
		if (x1 >= 0 && x0 < v->width_px - 1)
			assert_true(is_painted(&s->list, WEFT_PAINT_PAUSE, x0 < 0 ? 0 : x0, v->height_px / 2, 1));
	}
}

static void check_primitives(const struct weft_draw_list *list)
{
	assert_true(list->count > 0 && list->count < 40000);
	for (size_t i = 0; i < list->count; i++) {
		const struct weft_prim *p = &list->prims[i];
		assert_true(p->paint < WEFT_PAINT_COUNT && p->kind <= WEFT_PRIM_TEXT);
		assert_true(i == 0 || list->prims[i - 1].layer <= p->layer);
		assert_true((float)(int)(p->x0 * 8) == p->x0 * 8 && (float)(int)(p->y0 * 8) == p->y0 * 8);
		if (p->kind == WEFT_PRIM_RECT)
			assert_true(
			    p->x0 < p->x1 && p->y0 < p->y1 && p->x0 >= 0 && p->x1 <= list->width_px && p->y1 <= list->height_px);
	}
}

static void test_random(void **state)
{
	(void)state;
	static struct mirage_writer w;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct scene s;
		uint64_t r = seed;
		write_random_trace(&w, seed);
		open_scene(&s, w.bytes, w.size);
		for (int frame = 0; frame < 5; frame++) {
			move_about(s.view, &r);
			assert_int_equal(weft_draw_frame(&s.list, s.view, NULL, NULL), WEFT_OK);
			check_primitives(&s.list);
			check_texts(&s.list);
			check_important(&s);
			/* The same again, from buffers that have never seen another frame. */
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
}

static void check_golden(const struct weft_draw_list *list, const char *name)
{
	char path[4096];
	char *text = dump_of(list);
	snprintf(path, sizeof path, "%s/%s.txt", golden_dir, name);
	if (getenv("WEFT_RECORD")) {
		FILE *file = fopen(path, "wb");
		assert_non_null(file);
		fputs(text, file);
		assert_int_equal(fclose(file), 0);
	}
	FILE *file = fopen(path, "rb");
	if (!file)
		fail_msg("%s is not there; WEFT_RECORD=1 records it", path);
	char *wanted = calloc(1, strlen(text) + 2);
	assert_non_null(wanted);
	size_t got = fread(wanted, 1, strlen(text) + 1, file);
	fclose(file);
	if (got != strlen(text) || memcmp(wanted, text, got) != 0)
		fail_msg("the frame is not that of %s; look at it, then record it with WEFT_RECORD=1", path);
	free(wanted);
	free(text);
}

/* A short program that has every sign once or twice. */
static void write_signs(struct mirage_writer *w)
{
	w->size = 0;
	mw_packet(w, 1);
	mw_create(w, 1000000, -1, 0, WEFT_KIND_TASK);
	mw_op(w, 1000000, WEFT_OP_RUN, 0);
	mw_label(w, 1010000, 0, "main");
	mw_create(w, 1100000, 0, 1, WEFT_KIND_TASK);
	mw_label(w, 1110000, 1, "read a block");
	mw_create(w, 1200000, 0, 2, WEFT_KIND_BIND);
	mw_create(w, 1250000, 0, 3, WEFT_KIND_CONDITION);
	mw_label(w, 1260000, 3, "nobody signals");
	mw_label(w, 1270000, 3, "__should_resolve");
	mw_create(w, 1300000, 0, 4, WEFT_KIND_TASK);
	mw_label(w, 1310000, 4, "connect");
	mw_text(w, 1320000, WEFT_OP_COUNTER_ADD, 0, 1460, "bytes");
	mw_link(w, 1330000, WEFT_OP_AWAIT, 0, 4);
	mw_op(w, 1350000, WEFT_OP_RUN, -1);
	mw_op(w, 2000000, WEFT_OP_RUN, 0);
	mw_link(w, 2010000, WEFT_OP_RESOLVE, 0, 1);
	mw_op(w, 2050000, WEFT_OP_PAUSE, 30000);
	mw_link(w, 2060000, WEFT_OP_READ, 2, 1);
	mw_create(w, 2100000, 2, 5, WEFT_KIND_TASK);
	mw_label(w, 2110000, 5, "write it");
	mw_link(w, 2120000, WEFT_OP_BECOME, 2, 5);
	mw_text(w, 2150000, WEFT_OP_COUNTER_ADD, 2, -700, "bytes");
	mw_link(w, 2200000, WEFT_OP_SIGNAL_ONLY, 4, 0);
	mw_text(w, 2300000, WEFT_OP_FAIL, 0, 4, "Connection_refused");
	mw_link(w, 2310000, WEFT_OP_READ, 0, 4);
	mw_text(w, 2400000, WEFT_OP_COUNTER_ADD, 0, 300, "bytes");
	mw_op(w, 2450000, WEFT_OP_RUN, -1);
	mw_op(w, 3000000, WEFT_OP_RUN, 0);
	mw_link(w, 3010000, WEFT_OP_RESOLVE, 0, 5);
	mw_create(w, 3100000, 0, 6, WEFT_KIND_WAIT);
	mw_op(w, 3500000, WEFT_OP_RUN, 6);
	mw_op(w, 3600000, WEFT_OP_RUN, -1);
	mw_end(w, 0);
}

static void test_goldens(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	write_signs(&w);
	open_scene(&s, w.bytes, w.size);
	assert_int_equal(weft_draw_frame(&s.list, s.view, NULL, NULL), WEFT_OK);
	check_golden(&s.list, "signs");
	weft_view_resize(s.view, 640, 360);
	weft_view_show(s.view, 1000000, 1400000);
	assert_int_equal(weft_view_find(s.view, "WRITE"), 1);
	struct weft_draw_options options = {.no_metrics = true};
	assert_int_equal(weft_draw_frame(&s.list, s.view, &options, NULL), WEFT_OK);
	check_golden(&s.list, "signs-zoomed");
	close_scene(&s);
	write_random_trace(&w, 7);
	open_scene(&s, w.bytes, w.size);
	weft_view_resize(s.view, 400, 200);
	assert_int_equal(weft_draw_frame(&s.list, s.view, NULL, NULL), WEFT_OK);
	check_golden(&s.list, "crowded");
	close_scene(&s);
}

static bool has_text(const struct weft_draw_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->prims[i].kind == WEFT_PRIM_TEXT && list->prims[i].count == strlen(text) &&
		    memcmp(list->text + list->prims[i].first, text, strlen(text)) == 0)
			return true;
	return false;
}

static size_t count_of(const struct weft_draw_list *list, enum weft_paint paint)
{
	size_t n = 0;
	for (size_t i = 0; i < list->count; i++)
		n += list->prims[i].paint == paint;
	return n;
}

/* Each sign of the picture, by its paint or its word. */
static void test_signs(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct scene s;
	write_signs(&w);
	open_scene(&s, w.bytes, w.size);
	assert_int_equal(weft_draw_frame(&s.list, s.view, NULL, NULL), WEFT_OK);
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
	assert_int_equal(weft_draw_frame(&s.list, s.view, &options, NULL), WEFT_OK);
	assert_int_equal(count_of(&s.list, WEFT_PAINT_COUNTER_0), 0);
	/* The label of a line that begins to the left of the picture sticks to its edge. */
	weft_view_show(s.view, 500000, 900000);
	assert_int_equal(weft_draw_frame(&s.list, s.view, NULL, NULL), WEFT_OK);
	assert_true(has_text(&s.list, "read a block"));
	close_scene(&s);
}

/* Without a label a promise is called by the function that made it, else by the place, else by its id. */
static void test_sites(void **state)
{
	(void)state;
	static const struct weft_site sites[] = {
	    {.file = {"net/echo.c", 10}, .function = {"await_input", 11}, .line = 42},
	    {.file = {"net/pool.c", 10}, .function = {"", 0}, .line = 7},
	};
	static struct mirage_writer w;
	struct scene s;
	write_signs(&w);
	open_scene(&s, w.bytes, w.size);
	struct weft_trace_info info = *s.model->trace;
	info.sites = sites;
	info.site_count = 2;
	s.model->trace = &info;
	uint32_t unlabelled = weft_model_find(s.model, 6), labelled = weft_model_find(s.model, 1);
	s.model->promises[labelled].site = 0;
	static const char *const names[] = {"await_input", "pool.c:7", "6"};
	static const uint32_t site_of[] = {0, 1, WEFT_NONE};
	for (size_t i = 0; i < 3; i++) {
		s.model->promises[unlabelled].site = site_of[i];
		assert_int_equal(weft_draw_frame(&s.list, s.view, NULL, NULL), WEFT_OK);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(has_text(&s.list, names[k]), k == i);
		assert_true(has_text(&s.list, "read a block"));
	}
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

static void test_svg(void **state)
{
	(void)state;
	static const char hostile[] = "((time 0.0)(op(Creates -1 0 task)))((time 0.0)(op(Label 0 \"</text><script>&x\")))"
				      "((time 0.1)(op(Switch 0)))";
	struct scene s;
	char *svg = NULL;
	open_scene(&s, hostile, sizeof hostile - 1);
	assert_int_equal(weft_draw_frame(&s.list, s.view, NULL, NULL), WEFT_OK);
	assert_int_equal(weft_svg_write(&s.list, WEFT_THEME_DARK, append, &svg, NULL), WEFT_OK);
	assert_null(strstr(svg, "<script>"));
	assert_non_null(strstr(svg, "&lt;/text&gt;&lt;script&gt;&amp;x</text>"));
	assert_int_equal(strncmp(svg + strlen(svg) - 7, "</svg>\n", 7), 0);
	free(svg);
	assert_int_equal(weft_svg_write(&s.list, WEFT_THEME_LIGHT, refuse, NULL, NULL), WEFT_EIO);
	close_scene(&s);
}

/* Half a million of everything: bounded by what can be seen, at any zoom. */
static void test_bounded(void **state)
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
		assert_int_equal(weft_draw_frame(&s.list, s.view, NULL, NULL), WEFT_OK);
		check_primitives(&s.list);
		assert_true(s.list.count < 20000);
		if (zoom == 1)
			assert_true(count_of(&s.list, WEFT_PAINT_FAILED) > 10);
	}
	close_scene(&s);
	free(text);
}

int main(int argc, char **argv)
{
	golden_dir = argc > 1 ? argv[1] : "golden";
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_goldens),
	    cmocka_unit_test(test_signs),
	    cmocka_unit_test(test_sites),
	    cmocka_unit_test(test_svg),
	    cmocka_unit_test(test_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
