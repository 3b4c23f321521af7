/* line_fit_test.c: lines that separate two point sets are compared with all possible lines; and a test with the clocks of this
 * machine. SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <weft/status.h>

#include "base/line_fit.h"

__extension__ typedef __int128 wide;

static uint64_t seed = 1;

/* Returns a random number from 0 to less than `below`. */
static int64_t random_below(int64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (int64_t)(seed % (uint64_t)below);
}

static int64_t floor_of(wide number, wide by)
{
	wide quotient = number / by;
	return (int64_t)(number % by < 0 ? quotient - 1 : quotient);
}

/* ---- The true line is between the bounds ---- */

enum { EVENTS = 60 };

static void test_true_line_is_within_the_bounds_of_the_line_fit(void **state)
{
	for (int round = 0; round < 3000; round++) {
		/* Converts ns to ticks of a clock of 0.5 to 4 GHz, whose frequency is wrong by at most 500 ppm. */
		int64_t nominal = 500000000 + random_below(3500000000),
			dy = nominal + random_below(nominal / 1000) - nominal / 2000;
		int64_t x0 = random_below(INT64_C(1) << 60), y0 = random_below(INT64_C(1) << 60),
			length = 1 + random_below(100000000000);
		struct weft_line_fit band;
		weft_line_fit_init(&band, x0, y0, (struct weft_slope){nominal - nominal / 1000, 1000000000},
		    (struct weft_slope){nominal + nominal / 1000, 1000000000});
		for (int i = 0; i < EVENTS; i++) {
			int64_t x = random_below(length), y = floor_of((wide)x * dy, 1000000000);
			int64_t slow = random_below(8) ? 100 : 1000000;
			assert_int_equal(weft_line_fit_add_below(&band, x0 + x, y0 + y - random_below(slow)), WEFT_OK);
			assert_int_equal(weft_line_fit_add_above(&band, x0 + x, y0 + y + 1 + random_below(slow)), WEFT_OK);
		}
		assert_int_equal(weft_line_fit_solve(&band), WEFT_OK);
		int64_t before = INT64_MIN;
		for (int i = -20; i < 40; i++) {
			int64_t x = i * (length / 20 + 1), y = y0 + floor_of((wide)x * dy, 1000000000), low, high;
			int64_t at = weft_line_fit_at(&band, x0 + x, &low, &high);
			assert_true(low <= y && y <= high);
			assert_true(low <= at && at <= high && at >= before);
			assert_int_equal(weft_line_fit_at(&band, x0 + x, NULL, NULL), at);
			before = at;
		}
		weft_line_fit_finish(&band);
	}
}

/* ---- The bounds contain every possible line and no other ---- */

struct point {
	int64_t x, y;
	bool is_above;
};

/* Returns whether the line through (x, y) with this slope has the points of each set on the set's side. */
static bool can_be(const struct point *points, int count, int64_t x, int64_t y, struct weft_slope s)
{
	for (int i = 0; i < count; i++) {
		wide room = (wide)(points[i].y - y) * s.dx - (wide)(points[i].x - x) * s.dy;
		if (points[i].is_above ? room < 0 : room > 0)
			return false;
	}
	return true;
}

struct extremes {
	bool any;
	int64_t low, high;
};

static void consider(struct extremes *e, const struct point *points, int count, struct point p, struct weft_slope s, int64_t at)
{
	static const struct weft_slope least = {-3, 2}, most = {5, 2};
	if ((wide)s.dy * least.dx < (wide)least.dy * s.dx || (wide)s.dy * most.dx > (wide)most.dy * s.dx ||
	    !can_be(points, count, p.x, p.y, s))
		return;
	int64_t low = p.y + floor_of((wide)(at - p.x) * s.dy, s.dx), high = p.y - floor_of(-(wide)(at - p.x) * s.dy, s.dx);
	e->low = !e->any || low < e->low ? low : e->low;
	e->high = !e->any || high > e->high ? high : e->high;
	e->any = true;
}

/* The corners of the set are lines through two points, or through one point with the smallest or the largest slope. */
static struct extremes all_lines(const struct point *points, int count, int64_t at)
{
	struct extremes e = {0};
	for (int i = 0; i < count; i++) {
		consider(&e, points, count, points[i], (struct weft_slope){-3, 2}, at);
		consider(&e, points, count, points[i], (struct weft_slope){5, 2}, at);
		for (int j = 0; j < count; j++)
			if (points[i].x < points[j].x)
				consider(&e, points, count, points[i],
				    (struct weft_slope){points[j].y - points[i].y, points[j].x - points[i].x}, at);
	}
	return e;
}

static void test_line_fit_bounds_equal_those_of_all_possible_lines(void **state)
{
	int with = 0, without = 0;
	for (int round = 0; round < 20000; round++) {
		struct point points[12];
		const int count = 2 + (int)random_below(11);
		const int64_t width = 1 + random_below(30), slope = random_below(7) - 3, gap = random_below(20) - 4;
		struct weft_line_fit band;
		weft_line_fit_init(&band, 7, -9, (struct weft_slope){-3, 2}, (struct weft_slope){5, 2});
		for (int i = 0; i < count; i++) {
			points[i].is_above = i == 0 || (i > 1 && random_below(2));
			points[i].x = random_below(width);
			points[i].y = points[i].x * slope / 2 + random_below(12) + (points[i].is_above ? gap : -gap);
			int (*add)(struct weft_line_fit *, int64_t, int64_t) =
			    points[i].is_above ? weft_line_fit_add_above : weft_line_fit_add_below;
			assert_int_equal(add(&band, points[i].x, points[i].y), WEFT_OK);
		}
		int status = weft_line_fit_solve(&band);
		for (int64_t at = -40; at < 80; at += 7) {
			struct extremes e = all_lines(points, count, at);
			assert_int_equal(status, e.any ? WEFT_OK : WEFT_EINVAL);
			int64_t low, high;
			if (!e.any)
				continue;
			weft_line_fit_at(&band, at, &low, &high);
			assert_int_equal(low, e.low);
			assert_int_equal(high, e.high);
		}
		*(status < 0 ? &without : &with) += 1;
		weft_line_fit_finish(&band);
	}
	assert_true(with > 5000 && without > 2000);
}

static void test_line_fit_refuses_invalid_points(void **state)
{
	struct weft_line_fit band;
	int64_t low, high;
	weft_line_fit_init(&band, 0, 0, (struct weft_slope){1, 2}, (struct weft_slope){2, 1});
	assert_int_equal(weft_line_fit_solve(&band), WEFT_EINVAL);
	assert_int_equal(weft_line_fit_add_above(&band, INT64_C(1) << 60, 0), WEFT_EINVAL);
	assert_int_equal(weft_line_fit_add_below(&band, 0, -(INT64_C(1) << 60)), WEFT_EINVAL);
	assert_int_equal(weft_line_fit_add_above(&band, INT64_MIN, INT64_MAX), WEFT_EINVAL);
	assert_int_equal(weft_line_fit_add_above(&band, 10, 10), WEFT_OK);
	assert_int_equal(weft_line_fit_solve(&band), WEFT_EINVAL); /* points of only one set */
	assert_int_equal(weft_line_fit_add_below(&band, 10, 0), WEFT_OK);
	assert_int_equal(weft_line_fit_solve(&band), WEFT_OK);
	weft_line_fit_at(&band, 110, &low, &high);
	assert_int_equal(low, 50);
	assert_int_equal(high, 210);
	weft_line_fit_at(&band, INT64_MAX, &low, &high);
	assert_int_equal(high, INT64_MAX);
	weft_line_fit_finish(&band);
}

/* ---- The clocks of this machine ---- */

#if defined(__x86_64__)
#include <x86intrin.h>

static int64_t raw_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct read_between {
	int64_t before, ns, after;
};

static struct read_between read_both(void)
{
	struct read_between r;
	r.before = (int64_t)__rdtsc();
	r.ns = raw_ns();
	r.after = (int64_t)__rdtsc();
	return r;
}

/* Reads a hundred pairs before and after.  Between them 10,000 readings of the kernel clock must each lie between the surrounding
 * readings of the counter. */
static void test_line_fit_predicts_the_cpu_counter_at_each_kernel_time(void **state)
{
	enum { PAIRS = 100, KNOWN = 10000 };
	static struct read_between known[KNOWN], pairs[2][PAIRS];
	for (int i = 0; i < PAIRS; i++)
		pairs[0][i] = read_both();
	for (int i = 0; i < KNOWN; i++) {
		known[i] = read_both();
		if (i % 100 == 0)
			nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	for (int i = 0; i < PAIRS; i++)
		pairs[1][i] = read_both();
	struct weft_line_fit band;
	weft_line_fit_init(&band, pairs[0][0].ns, pairs[0][0].before, (struct weft_slope){1, 100},
	    (struct weft_slope){100, 1}); /* 10 MHz to 100 GHz */
	int64_t narrowest[2] = {INT64_MAX, INT64_MAX}, widest = 0;
	for (int end = 0; end < 2; end++)
		for (int i = 0; i < PAIRS; i++) {
			const struct read_between *p = &pairs[end][i];
			assert_int_equal(weft_line_fit_add_below(&band, p->ns, p->before), WEFT_OK);
			assert_int_equal(weft_line_fit_add_above(&band, p->ns + 1, p->after), WEFT_OK);
			narrowest[end] = p->after - p->before < narrowest[end] ? p->after - p->before : narrowest[end];
		}
	assert_int_equal(weft_line_fit_solve(&band), WEFT_OK);
	int outside = 0;
	for (int i = 0; i < KNOWN; i++) {
		int64_t low, high;
		weft_line_fit_at(&band, known[i].ns, &low, &high);
		outside += high < known[i].before || low > known[i].after;
		int64_t at = weft_line_fit_at(&band, known[i].ns, NULL, NULL);
		outside += at < known[i].before - (high - low) || at > known[i].after + (high - low);
		widest = high - low > widest ? high - low : widest;
	}
	assert_int_equal(outside, 0);
	/* Between the narrowest pairs, the bounds are at most as far apart as these pairs. */
	assert_true(widest <= 2 * (narrowest[0] > narrowest[1] ? narrowest[0] : narrowest[1]) + 4);
	int64_t ticks = known[KNOWN - 1].after - known[0].before, ns = known[KNOWN - 1].ns - known[0].ns;
	print_message(
	    "%d known times, %d outside; bound +- %.0f ns\n", KNOWN, outside, (double)widest / 2 * (double)ns / (double)ticks);
	weft_line_fit_finish(&band);
}
#else
static void test_line_fit_predicts_the_cpu_counter_at_each_kernel_time(void **state)
{
	skip();
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_true_line_is_within_the_bounds_of_the_line_fit),
	    cmocka_unit_test(test_line_fit_bounds_equal_those_of_all_possible_lines),
	    cmocka_unit_test(test_line_fit_refuses_invalid_points),
	    cmocka_unit_test(test_line_fit_predicts_the_cpu_counter_at_each_kernel_time),
	};
	return cmocka_run_group_tests_name("band", tests, NULL, NULL);
}
