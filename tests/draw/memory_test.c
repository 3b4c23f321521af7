/* memory_test.c: layout and drawing of a model when memory runs out: allocation n fails, for every n.
 * SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "allocations.h"
#include "draw/crowded_trace.h"
#include "draw/overview.h"
#include "draw/random_trace.h"
#include "draw/ruler.h"
#include "draw/svg.h"

static int swallow(void *ctx, const void *bytes, size_t size)
{
	(void)ctx;
	(void)bytes;
	(void)size;
	return 0;
}

/* Returns WEFT_OK or the status of the first failed call; nothing leaks, which sanitizers check. */
static int draw(const struct weft_model *model)
{
	struct weft_layout *layout = NULL;
	struct weft_view *view = NULL;
	struct weft_overview *overview = NULL;
	struct weft_draw_list list = {0}, strip = {0};
	struct weft_error err = {.status = WEFT_OK};
	char *text = NULL;
	size_t size;
	int status = weft_layout_create(&layout, model, &err);
	if (status == WEFT_OK)
		status = weft_view_create(&view, model, layout, &err);
	if (status == WEFT_OK) {
		weft_view_resize(view, 800, 200);
		weft_view_reserve_lanes(view, weft_draw_lanes_px(model, NULL, 200));
		weft_view_find_related(view, 3);
		status = weft_draw_frame(&list, view, NULL, &err);
		assert_true(status == WEFT_OK || list.count == 0);
	}
	if (status == WEFT_OK)
		status = weft_overview_create(&overview, view, &err);
	if (status == WEFT_OK)
		status = weft_overview_draw(&strip, overview, view, 800, 60, &err);
	if (status == WEFT_OK)
		status = weft_ruler_draw(&strip, view, 24, NULL, &err);
	assert_true(status == WEFT_OK || strip.count == 0);
	if (status == WEFT_OK)
		status = weft_svg_write(&list, WEFT_THEME_LIGHT, swallow, NULL, &err);
	assert_int_equal(status, err.status);
	if (status == WEFT_OK)
		status = weft_draw_dump(&list, &text, &size);
	free(text);
	weft_draw_finish(&list);
	weft_draw_finish(&strip);
	weft_overview_destroy(overview);
	weft_view_destroy(view);
	weft_layout_destroy(layout);
	return status;
}

static void draw_with_one_more_allocation_each_time(struct weft_trace *trace)
{
	struct weft_model *model;
	assert_int_equal(weft_model_build(&model, trace, NULL, NULL), WEFT_OK);
	long needed = 0;
	only_one_fails = true;
	for (int status = WEFT_ENOMEM; status != WEFT_OK; needed++) {
		allocations_left = needed;
		status = draw(model);
		allocations_left = -1;
		assert_true(status == WEFT_OK || status == WEFT_ENOMEM);
		assert_true(needed < 10000);
	}
	assert_true(needed > 40);
	weft_model_destroy(model);
	weft_trace_close(trace);
}

static void test_drawing_survives_any_failed_allocation(void **state)
{
	(void)state;
	static struct mirage_writer w;
	struct weft_trace *trace;
	write_random_trace(&w, 7);
	assert_int_equal(weft_trace_open_memory(&trace, w.bytes, w.size, "test", NULL), WEFT_OK);
	draw_with_one_more_allocation_each_time(trace);
	assert_int_equal(weft_trace_open(&trace, WEFT_CORPUS "/native/kernel", NULL), WEFT_OK);
	draw_with_one_more_allocation_each_time(trace);
	size_t size;
	unsigned char *bytes = crowded_trace(&size);
	assert_int_equal(weft_trace_open_memory(&trace, bytes, size, "test", NULL), WEFT_OK);
	draw_with_one_more_allocation_each_time(trace);
	free(bytes);
}

/* If an allocation fails, the rows of a server are the same as with memory, or there is an error. */
static void test_server_rows_survive_failed_allocations(void **state)
{
	(void)state;
	enum { CONNECTIONS = 100 };
	static struct mirage_writer w;
	struct weft_trace *trace;
	struct weft_model *model;
	mw_packet(&w, 1);
	for (int i = 1; i <= 2 * CONNECTIONS; i += 2) {
		mw_create(&w, 1000 * i, -1, i, WEFT_KIND_CONNECTION);
		mw_create(&w, 1000 * i + 10, i, i + 1, WEFT_KIND_FS);
	}
	mw_create(&w, 1000000, 5000, 5001, WEFT_KIND_BIND); /* the creator of 5000 is unknown */
	mw_end(&w, 0);
	assert_int_equal(weft_trace_open_memory(&trace, w.bytes, w.size, "test", NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, NULL, NULL), WEFT_OK);
	only_one_fails = true;
	for (long needed = 0, status = WEFT_ENOMEM; status != WEFT_OK; needed++) {
		struct weft_layout *whole = NULL, *part = NULL;
		const uint64_t two[(2 * CONNECTIONS + 3) / 64 + 1] = {6, 0, 6}; /* two connections, with their promises */
		allocations_left = needed;
		status = weft_layout_create(&whole, model, NULL);
		if (status == WEFT_OK)
			status = weft_layout_create_folded(&part, model, whole, two, NULL, NULL);
		bool one_failed = allocations_left < 0;
		allocations_left = -1;
		assert_int_equal(status, one_failed ? WEFT_ENOMEM : WEFT_OK);
		if (status == WEFT_OK) {
			assert_int_equal(whole->track_count, CONNECTIONS);
			assert_int_equal(part->track_count, 2);
			assert_true(needed > 20);
		}
		weft_layout_destroy(part);
		weft_layout_destroy(whole);
	}
	weft_model_destroy(model);
	weft_trace_close(trace);
}

/* Each OS thread has a band of its own. */
static void test_thread_bands_survive_failed_allocations(void **state)
{
	(void)state;
	enum { THREADS = 100 };
	struct weft_promise promises[THREADS + 2] = {{0}};
	const struct weft_model model = {.promises = promises, .promise_count = THREADS + 1};
	for (uint16_t i = 0; i <= THREADS; i++)
		promises[i] =
		    (struct weft_promise){.created_by = WEFT_NONE, .parent = WEFT_NONE, .became = WEFT_NONE, .stream = i};
	only_one_fails = true;
	for (long needed = 0, status = WEFT_ENOMEM; status != WEFT_OK; needed++) {
		struct weft_layout *layout = NULL;
		allocations_left = needed;
		status = weft_layout_create(&layout, &model, NULL);
		bool one_failed = allocations_left < 0;
		allocations_left = -1;
		assert_int_equal(status, one_failed ? WEFT_ENOMEM : WEFT_OK);
		assert_true(status != WEFT_OK || layout->band_count == THREADS);
		weft_layout_destroy(layout);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawing_survives_any_failed_allocation),
	    cmocka_unit_test(test_server_rows_survive_failed_allocations),
	    cmocka_unit_test(test_thread_bands_survive_failed_allocations)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
