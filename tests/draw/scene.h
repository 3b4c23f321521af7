/* scene.h: makes a draw list from the bytes of a trace, and checks rules for any draw list.  SPDX-License-Identifier: ISC */
#ifndef TESTS_DRAW_SCENE_H
#define TESTS_DRAW_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "draw/random_trace.h"
#include "draw/svg.h"
#include "view/index.h"

static const char *golden_dir; /* the folder of goldens, from the command line */

struct scene {
	struct weft_trace *trace;
	struct weft_model *model;
	struct weft_layout *layout;
	struct weft_view *view;
	struct weft_draw_list list;
};

/* Assigns the events to several OS threads if `streams` is more than one. */
static inline void open_scene_of(struct scene *s, const void *bytes, size_t size, uint16_t streams)
{
	static struct weft_stream_info threads[8];
	static struct weft_trace_info info;
	*s = (struct scene){0};
	assert_int_equal(weft_trace_open_memory(&s->trace, bytes, size, "test", NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&s->model, s->trace, NULL, NULL), WEFT_OK);
	for (uint16_t i = 0; i < streams; i++)
		threads[i] =
		    (struct weft_stream_info){.name = {i % 2 ? "a worker with a long name" : "", i % 2 ? 25 : 0}, .tid = i};
	if (streams > 1) {
		info = *s->model->trace;
		info.streams = threads;
		info.stream_count = streams;
		s->model->trace = &info;
		for (size_t p = 1; p < s->model->promise_count; p++)
			s->model->promises[p].stream = (uint16_t)(s->model->promises[p].id / 7 % streams);
		for (size_t i = 0; i < s->model->pause_count; i++)
			s->model->pauses[i].stream = (uint16_t)(i % streams);
		for (size_t i = 0; i < s->model->sleep_count; i++)
			s->model->sleeps[i].stream = (uint16_t)(i % streams);
	}
	assert_int_equal(weft_layout_create(&s->layout, s->model, NULL), WEFT_OK);
	assert_int_equal(weft_view_create(&s->view, s->model, s->layout, NULL), WEFT_OK);
}

static inline void open_scene(struct scene *s, const void *bytes, size_t size)
{
	open_scene_of(s, bytes, size, 1);
}

static inline void close_scene(struct scene *s)
{
	weft_draw_finish(&s->list);
	weft_view_destroy(s->view);
	weft_layout_destroy(s->layout);
	weft_model_destroy(s->model);
	weft_trace_close(s->trace);
}

static inline char *dump_of(const struct weft_draw_list *list)
{
	char *text;
	size_t size;
	assert_int_equal(weft_draw_dump(list, &text, &size), WEFT_OK);
	assert_int_equal(strlen(text), size);
	return text;
}

static inline void move_about(struct weft_view *v, uint64_t *r)
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

/* Returns whether the boxes of two texts overlap; the height is that of a common font. */
static inline bool texts_overlap(const struct weft_prim *a, const struct weft_prim *b)
{
	float a_px = (float)weft_font_px(a->font), b_px = (float)weft_font_px(b->font);
	return a->x0 < b->x0 + b->width && b->x0 < a->x0 + a->width && a->y0 - 0.75f * a_px < b->y0 + 0.2f * b_px &&
	       b->y0 - 0.75f * b_px < a->y0 + 0.2f * a_px;
}

static inline void check_texts(const struct weft_draw_list *list)
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

/* Returns whether a shape of this paint covers the point, or is at most `slack` px away. */
static inline bool is_painted(const struct weft_draw_list *list, enum weft_paint paint, double x, double y, double slack)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct weft_prim *p = &list->prims[i];
		if (p->kind == WEFT_PRIM_RECT && p->paint == paint && (double)p->x0 - slack <= x && x <= (double)p->x1 + slack &&
		    (double)p->y0 - slack <= y && y <= (double)p->y1 + slack)
			return true;
	}
	return false;
}

static inline void check_primitives(const struct weft_draw_list *list)
{
	assert_true(list->count > 0 && list->count < 40000);
	for (size_t i = 0; i < list->count; i++) {
		const struct weft_prim *p = &list->prims[i];
		assert_true(p->paint < WEFT_PAINT_COUNT && p->kind <= WEFT_PRIM_TEXT);
		assert_true(i == 0 || list->prims[i - 1].layer <= p->layer);
		/* No arrow has a number as text, because many numbers would hide the picture. */
		assert_false(p->kind == WEFT_PRIM_TEXT && p->paint >= WEFT_PAINT_AWAIT && p->paint <= WEFT_PAINT_SIGNAL);
		assert_true((float)(int)(p->x0 * 8) == p->x0 * 8 && (float)(int)(p->y0 * 8) == p->y0 * 8);
		if (p->kind == WEFT_PRIM_RECT)
			assert_true(
			    p->x0 < p->x1 && p->y0 < p->y1 && p->x0 >= 0 && p->x1 <= list->width_px && p->y1 <= list->height_px);
	}
}

/* Draws a frame like viewers do. */
static inline int draw_scene(struct scene *s, const struct weft_draw_options *options)
{
	weft_view_reserve_lanes(s->view, weft_draw_lanes_px(s->model, options, s->view->height_px));
	return weft_draw_frame(&s->list, s->view, options, NULL);
}

static inline void check_golden(const struct weft_draw_list *list, const char *name)
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
		fail_msg("the list is not that of %s; look at it, then record it with WEFT_RECORD=1", path);
	free(wanted);
	free(text);
}

/* Writes a short program that has every sign once or twice. */
static inline void write_signs(struct mirage_writer *w)
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

static inline bool has_text(const struct weft_draw_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->prims[i].kind == WEFT_PRIM_TEXT && list->prims[i].count == strlen(text) &&
		    memcmp(list->text + list->prims[i].first, text, strlen(text)) == 0)
			return true;
	return false;
}

static inline size_t count_of(const struct weft_draw_list *list, enum weft_paint paint)
{
	size_t n = 0;
	for (size_t i = 0; i < list->count; i++)
		n += list->prims[i].paint == paint;
	return n;
}

#endif
