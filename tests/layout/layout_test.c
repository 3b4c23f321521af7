/* layout_test.c: the rules of layout.h, on random promises and on the shapes that cost most.  SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layout/layout.h"

static const char *shared;

static uint32_t random_below(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

static struct weft_model model_of(size_t promises)
{
	struct weft_model m = {.promise_count = promises};
	m.promises = calloc(promises + 1, sizeof *m.promises);
	assert_non_null(m.promises);
	for (size_t i = 0; i < promises; i++)
		m.promises[i].created_by = m.promises[i].parent = m.promises[i].became = WEFT_NONE;
	return m;
}

static bool overlap(const struct weft_promise *a, const struct weft_promise *b)
{
	return a->start_ns < b->end_ns && b->start_ns < a->end_ns;
}

static void check_bands(const struct weft_model *m, const struct weft_layout *l)
{
	uint32_t row = 0;
	for (size_t b = 0; b < l->band_count; b++) {
		assert_int_equal(l->bands[b].first_row, row);
		assert_true(b == 0 || l->bands[b - 1].stream < l->bands[b].stream);
		row += l->bands[b].row_count;
		for (uint32_t i = l->row_begin[l->bands[b].first_row]; i < l->row_begin[row]; i++)
			assert_int_equal(m->promises[l->by_row[i]].stream, l->bands[b].stream);
	}
	assert_int_equal(row, l->row_count);
}

static void check_layout(const struct weft_model *m, const struct weft_layout *l)
{
	assert_int_equal(l->rows[WEFT_SYSTEM], WEFT_NONE);
	for (uint32_t p = 1; p < m->promise_count; p++) {
		uint32_t parent = m->promises[p].parent;
		assert_true(l->rows[p] < l->row_count);
		if (parent == WEFT_NONE || parent == WEFT_SYSTEM || m->promises[parent].stream != m->promises[p].stream)
			continue;
		assert_true(l->rows[p] > l->rows[parent] ||
			    (l->rows[p] == l->rows[parent] && m->promises[p].start_ns >= m->promises[parent].end_ns));
	}
	assert_int_equal(l->row_count ? l->row_begin[l->row_count] : 0, m->promise_count - 1);
	for (uint32_t r = 0; r < l->row_count; r++) {
		assert_true(l->row_begin[r] < l->row_begin[r + 1]);
		for (uint32_t i = l->row_begin[r]; i < l->row_begin[r + 1]; i++) {
			const struct weft_promise *p = &m->promises[l->by_row[i]];
			assert_int_equal(l->rows[l->by_row[i]], r);
			if (i == l->row_begin[r])
				continue;
			const struct weft_promise *before = &m->promises[l->by_row[i - 1]];
			assert_true(before->start_ns <= p->start_ns && before->end_ns <= p->end_ns && !overlap(before, p));
		}
	}
	check_bands(m, l);
}

static uint32_t lay_out(struct weft_model *m)
{
	struct weft_layout *l;
	assert_int_equal(weft_layout_create(&l, m, NULL), WEFT_OK);
	check_layout(m, l);
	uint32_t rows = l->row_count;
	weft_layout_destroy(l);
	free(m->promises);
	return rows;
}

/* Parents are any that do not lead in a circle: mostly older, sometimes one that begins later. */
static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		uint64_t r = seed;
		uint32_t n = 2 + random_below(&r, seed % 10 ? 120 : 2500);
		uint32_t streams = 1 + random_below(&r, 3), span = 1 + random_below(&r, 3 * n), life = 1 + random_below(&r, span);
		struct weft_model m = model_of(n);
		bool strange = random_below(&r, 3) == 0;
		for (uint32_t i = 1; i < n; i++) {
			struct weft_promise *p = &m.promises[i];
			uint32_t mother = i > 1 && random_below(&r, 4) ? 1 + random_below(&r, i - 1) : WEFT_SYSTEM;
			if (random_below(&r, 2) && i > 8)
				mother = i - 1 - random_below(&r, 7);
			p->parent = p->created_by = mother;
			p->stream = (uint16_t)(random_below(&r, 5) ? m.promises[mother].stream : random_below(&r, streams));
			p->start_ns =
			    mother && !strange ? m.promises[mother].start_ns + random_below(&r, 20) : random_below(&r, span);
			p->end_ns = p->start_ns + (random_below(&r, 6) ? random_below(&r, life) : 0);
		}
		lay_out(&m);
	}
}

/* Children that were made before their parents, as only a damaged trace has them. */
static void test_backwards(void **state)
{
	(void)state;
	struct weft_model m = model_of(5001);
	for (uint32_t i = 1; i <= 5000; i++) {
		m.promises[i] = (struct weft_promise){.created_by = 0, .parent = i < 5000 ? i + 1 : 0, .became = WEFT_NONE};
		m.promises[i].start_ns = i % 7;
		m.promises[i].end_ns = i % 7 + 10;
	}
	lay_out(&m);
}

/* No rule can hold for all of a circle, but it ends. */
static void test_circle(void **state)
{
	(void)state;
	struct weft_model m = model_of(4);
	for (uint32_t i = 1; i < 4; i++)
		m.promises[i] = (struct weft_promise){.parent = i % 3 + 1, .became = WEFT_NONE, .start_ns = i, .end_ns = 9};
	struct weft_layout *l;
	assert_int_equal(weft_layout_create(&l, &m, NULL), WEFT_OK);
	assert_int_equal(l->row_count, 3);
	weft_layout_destroy(l);
	free(m.promises);
}

static void test_shapes(void **state)
{
	(void)state;
	enum { MANY = 1000000 };
	/* Each created by the one before, all alive. */
	struct weft_model m = model_of(MANY + 1);
	for (uint32_t i = 1; i <= MANY; i++)
		m.promises[i] = (struct weft_promise){.parent = i - 1, .became = WEFT_NONE, .start_ns = i, .end_ns = MANY + 1};
	assert_int_equal(lay_out(&m), MANY);

	/* Each created by the one before at its end: one row will do. */
	m = model_of(MANY + 1);
	for (uint32_t i = 1; i <= MANY; i++)
		m.promises[i] = (struct weft_promise){.parent = i - 1, .became = WEFT_NONE, .start_ns = i, .end_ns = i + 1};
	assert_int_equal(lay_out(&m), 1);

	/* A thousand alive at once under one that made them all. */
	m = model_of(200002);
	m.promises[1] = (struct weft_promise){.became = WEFT_NONE, .start_ns = 0, .end_ns = 300000};
	for (uint32_t i = 2; i <= 200001; i++)
		m.promises[i] = (struct weft_promise){.parent = 1, .became = WEFT_NONE, .start_ns = i, .end_ns = i + 1000};
	assert_int_equal(lay_out(&m), 1001);

	/* A stair of a hundred steps, and on each something that lives on and would push the rest of it down. */
	m = model_of(201);
	for (uint32_t i = 1; i <= 100; i++) {
		m.promises[i] =
		    (struct weft_promise){.parent = i - 1, .became = WEFT_NONE, .start_ns = 10 * i, .end_ns = 10 * i + 11};
		m.promises[100 + i] = (struct weft_promise){
		    .parent = i, .became = WEFT_NONE, .start_ns = 10 * i + 5, .end_ns = i % 10 ? 10 * i + 8 : 5000};
	}
	assert_true(lay_out(&m) <= 112);
}

static void test_empty(void **state)
{
	(void)state;
	struct weft_model m = model_of(1);
	assert_int_equal(lay_out(&m), 0);
}

static void test_net(void **state)
{
	(void)state;
	char path[4096];
	struct weft_trace *trace;
	struct weft_model *m;
	struct weft_layout *l;
	snprintf(path, sizeof path, "%s/traces/net.ctf", shared);
	if (access(path, R_OK) != 0) {
		print_message("skipped: %s is not there\n", path);
		skip();
	}
	assert_int_equal(weft_trace_open(&trace, path, NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&m, trace, NULL, NULL), WEFT_OK);
	assert_int_equal(weft_layout_create(&l, m, NULL), WEFT_OK);
	check_layout(m, l);
	assert_true(l->row_count <= 80);
	weft_layout_destroy(l);
	weft_model_destroy(m);
	weft_trace_close(trace);
}

int main(int argc, char **argv)
{
	shared = getenv("WEFT_SHARED") ? getenv("WEFT_SHARED") : argc > 1 ? argv[1] : "../shared";
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_backwards),
	    cmocka_unit_test(test_circle),
	    cmocka_unit_test(test_shapes),
	    cmocka_unit_test(test_empty),
	    cmocka_unit_test(test_net),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
