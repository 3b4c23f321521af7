/* ahead_test.c: events that another OS thread makes.  SPDX-License-Identifier: ISC */
#include "trace/ahead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/status.h>

#include <cmocka.h>

/* Numbers, in batches of all sizes. */
struct numbers {
	int64_t next, end;
	int fails; /* what is told at the end */
};

static int make(void *ctx, struct weft_event *out, size_t room, size_t *made)
{
	struct numbers *n = ctx;
	const size_t most = 1 + (size_t)(n->next * 7) % room;
	for (*made = 0; *made < most && n->next < n->end; ++*made)
		out[*made] = (struct weft_event){.a = n->next++};
	return *made == 0 ? n->fails : WEFT_OK;
}

static int64_t read_all(struct weft_ahead *ahead, int *end)
{
	const struct weft_event *events;
	size_t count;
	int64_t expected = 0;
	while ((*end = weft_ahead_next(ahead, &events, &count)) > 0)
		for (size_t i = 0; i < count; i++)
			assert_int_equal(events[i].a, expected++);
	return expected;
}

static void all_come_in_their_order(void **state)
{
	const int64_t counts[] = {0, 1, 1024, 1025, 100000, 1000000};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct numbers numbers = {.end = counts[i]};
		struct weft_ahead *ahead = weft_ahead_begin(make, &numbers);
		int end;
		assert_non_null(ahead);
		assert_int_equal(read_all(ahead, &end), counts[i]);
		assert_int_equal(end, 0);
		const struct weft_event *events;
		size_t count;
		assert_int_equal(weft_ahead_next(ahead, &events, &count), 0); /* as often as one asks */
		weft_ahead_end(ahead);
	}
}

static void what_fails_is_told_behind_what_came_before(void **state)
{
	struct numbers numbers = {.end = 5000, .fails = WEFT_EIO};
	struct weft_ahead *ahead = weft_ahead_begin(make, &numbers);
	int end;
	assert_int_equal(read_all(ahead, &end), 5000);
	assert_int_equal(end, WEFT_EIO);
	weft_ahead_end(ahead);
}

/* Whatever the other one is at: about to make, full, or done. */
static void one_may_leave_at_any_time(void **state)
{
	weft_ahead_end(NULL);
	for (int reads = 0; reads < 60; reads++) {
		struct numbers numbers = {.end = 20000};
		struct weft_ahead *ahead = weft_ahead_begin(make, &numbers);
		const struct weft_event *events;
		size_t count;
		for (int i = 0; i < reads; i++)
			weft_ahead_next(ahead, &events, &count);
		weft_ahead_end(ahead);
		const int64_t made = numbers.next; /* nobody makes any more */
		assert_true(made <= numbers.end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_come_in_their_order),
	    cmocka_unit_test(what_fails_is_told_behind_what_came_before),
	    cmocka_unit_test(one_may_leave_at_any_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
