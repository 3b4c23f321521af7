/* stats_test.c: weft stats divides the life of a promise into waiting, ready and running, without gap or overlap.
 * SPDX-License-Identifier: ISC */
#include "analysis/queries/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocations.h"
#include "mirage_writer.h"

static struct mirage_writer w;
static struct weft_trace *trace;
static struct weft_model *model;
static struct weft_stats *stats;

static void begin(void)
{
	w.size = 0;
	mw_packet(&w, 0);
}

static void analyse(void)
{
	const struct weft_model_options options = {.keep_binds = true};
	mw_end(&w, 0);
	assert_int_equal(weft_trace_open_memory(&trace, w.bytes, w.size, "test", NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, &options, NULL), WEFT_OK);
	assert_int_equal(weft_stats_create(&stats, model, NULL), WEFT_OK);
}

static void finish(void)
{
	weft_stats_destroy(stats);
	weft_model_destroy(model);
	weft_trace_close(trace);
}

static const struct weft_stat *stat_of(const char *label)
{
	for (size_t i = 0; i < stats->count; i++) {
		if (stats->stats[i].label == WEFT_NONE)
			continue;
		struct weft_str text = weft_model_text(model, stats->stats[i].label);
		if (text.len == strlen(label) && memcmp(text.ptr, label, text.len) == 0)
			return &stats->stats[i];
	}
	fail_msg("no group %s", label);
	return NULL;
}

static void assert_times(const char *label, int64_t waiting_ns, int64_t ready_ns, int64_t running_ns)
{
	const struct weft_stat *stat = stat_of(label);
	assert_int_equal(stat->count, 1);
	assert_int_equal(stat->waiting.max_ns, waiting_ns);
	assert_int_equal(stat->ready.max_ns, ready_ns);
	assert_int_equal(stat->running.max_ns, running_ns);
}

/* The promise awaits an input, the input resolves, and the promise runs later. */
static void awaited_time_is_split_into_waiting_and_ready(void **state)
{
	begin();
	mw_create(&w, 100, -1, 1, WEFT_KIND_TASK);
	mw_label(&w, 100, 1, "one");
	mw_op(&w, 110, WEFT_OP_RUN, 1); // promise 1 has waited for 10 ns
	mw_create(&w, 120, 1, 2, WEFT_KIND_WAIT);
	mw_label(&w, 120, 2, "input");
	mw_link(&w, 130, WEFT_OP_AWAIT, 1, 2);
	mw_op(&w, 130, WEFT_OP_RUN, -1);          // promise 1 has run for 20 ns
	mw_link(&w, 200, WEFT_OP_RESOLVE, -1, 2); // promise 1 has waited for 70 ns
	mw_op(&w, 205, WEFT_OP_RUN, 1);           // promise 1 was ready for 5 ns
	mw_link(&w, 230, WEFT_OP_RESOLVE, 1, 1);  // promise 1 has run for 25 ns
	mw_op(&w, 240, WEFT_OP_RUN, -1);
	analyse();
	assert_times("one", 80, 5, 45);
	assert_times("input", 80, 0, 0);
	finish();
}

/* A connection with an ended read is not ready: other promises run for its input. */
static void connection_is_never_ready(void **state)
{
	begin();
	mw_create(&w, 100, -1, 1, WEFT_KIND_CONNECTION);
	mw_label(&w, 100, 1, "connection");
	for (int i = 2; i < 9; i++) {
		mw_create(&w, 100 * i, 1, i, WEFT_KIND_STREAM_READ);
		mw_link(&w, 100 * i, WEFT_OP_AWAIT, 1, i);
		mw_link(&w, 100 * i + 10, WEFT_OP_RESOLVE, -1, i);
	}
	mw_link(&w, 1000, WEFT_OP_RESOLVE, -1, 1);
	analyse();
	assert_times("connection", 900, 0, 0);
	finish();
}

/* A bind records no event before the read of its input, so its ready time starts when its input ends. */
static void bind_is_ready_from_the_end_of_its_input(void **state)
{
	begin();
	mw_create(&w, 0, -1, 1, WEFT_KIND_WAIT);
	mw_label(&w, 0, 1, "input");
	mw_create(&w, 10, -1, 2, WEFT_KIND_BIND);
	mw_label(&w, 10, 2, "bind");
	mw_create(&w, 10, -1, 3, WEFT_KIND_BIND);
	mw_label(&w, 10, 3, "late bind");
	mw_link(&w, 50, WEFT_OP_RESOLVE, -1, 1);
	mw_link(&w, 70, WEFT_OP_READ, 2, 1);
	mw_create(&w, 80, 2, 4, WEFT_KIND_BIND); // this bind is created after its input has ended
	mw_label(&w, 80, 4, "late comer");
	mw_link(&w, 85, WEFT_OP_READ, 3, 1);
	mw_link(&w, 90, WEFT_OP_RESOLVE, 3, 3);
	mw_link(&w, 95, WEFT_OP_READ, 4, 1);
	mw_link(&w, 99, WEFT_OP_RESOLVE, 4, 4);
	mw_link(&w, 100, WEFT_OP_RESOLVE, 4, 2);
	mw_op(&w, 100, WEFT_OP_RUN, -1);
	analyse();
	assert_times("bind", 40 + 15, 20, 15);
	assert_times("late bind", 40, 35, 5);
	assert_times("late comer", 0, 15, 4);
	finish();
}

/* An input that became another promise ends when its last merge target ends.  In a circle of merges, the waiter waits until it
 * runs.
 */
static void merged_input_ends_with_its_target(void **state)
{
	begin();
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	mw_label(&w, 0, 1, "one");
	for (int i = 2; i < 50; i++)
		mw_create(&w, 0, -1, i, WEFT_KIND_WAIT);
	mw_link(&w, 0, WEFT_OP_AWAIT, 1, 2);
	for (int i = 2; i < 49; i++)
		mw_link(&w, i, WEFT_OP_BECOME, i, i + 1);
	mw_link(&w, 60, WEFT_OP_RESOLVE, -1, 49);
	mw_op(&w, 75, WEFT_OP_RUN, 1);
	mw_link(&w, 80, WEFT_OP_RESOLVE, 1, 1);
	analyse();
	assert_times("one", 60, 15, 5);
	finish();

	begin();
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	mw_label(&w, 0, 1, "one");
	mw_create(&w, 0, -1, 2, WEFT_KIND_WAIT);
	mw_create(&w, 0, -1, 3, WEFT_KIND_WAIT);
	mw_link(&w, 0, WEFT_OP_AWAIT, 1, 2);
	mw_link(&w, 1, WEFT_OP_BECOME, 2, 3);
	mw_link(&w, 2, WEFT_OP_BECOME, 3, 2);
	mw_op(&w, 75, WEFT_OP_RUN, 1);
	mw_link(&w, 80, WEFT_OP_RESOLVE, 1, 1);
	analyse();
	assert_times("one", 75, 0, 5);
	finish();
}

/* A merged promise ends when its target ends, and no time of it counts twice. */
static void merged_promise_lives_until_its_target_ends(void **state)
{
	begin();
	mw_create(&w, 100, -1, 1, WEFT_KIND_BIND);
	mw_label(&w, 100, 1, "request");
	mw_op(&w, 110, WEFT_OP_RUN, 1);
	mw_create(&w, 120, 1, 2, WEFT_KIND_BIND);
	mw_label(&w, 120, 2, "query");
	mw_create(&w, 120, 1, 3, WEFT_KIND_WAIT);
	mw_link(&w, 125, WEFT_OP_AWAIT, 2, 3);
	mw_link(&w, 130, WEFT_OP_BECOME, 1, 2);
	mw_op(&w, 140, WEFT_OP_RUN, -1);
	mw_link(&w, 500, WEFT_OP_RESOLVE, -1, 3);
	mw_op(&w, 507, WEFT_OP_RUN, 2);
	mw_text(&w, 527, WEFT_OP_FAIL, 2, 2, "error");
	mw_op(&w, 530, WEFT_OP_RUN, -1);
	analyse();
	const struct weft_stat *request = stat_of("request"), *query = stat_of("query");
	assert_int_equal(request->failures, 1);
	assert_int_equal(query->failures, 1);
	assert_int_equal(query->waiting.max_ns + query->ready.max_ns + query->running.max_ns, 527 - 120);
	assert_int_equal(request->waiting.max_ns + request->ready.max_ns + request->running.max_ns, 527 - 100);
	assert_int_equal(request->running.max_ns, 30 + 20);
	assert_int_equal(request->ready.max_ns, 7);
	finish();
}

static void promises_are_grouped_by_kind_and_label(void **state)
{
	begin();
	for (int i = 1; i <= 100; i++) {
		mw_create(&w, 0, -1, i, WEFT_KIND_WAIT);
		mw_label(&w, 0, i, "request");
	}
	mw_create(&w, 0, -1, 200, WEFT_KIND_TASK);
	mw_label(&w, 0, 200, "request"); // a promise of another kind is in another group
	mw_create(&w, 0, -1, 201, WEFT_KIND_TASK);
	mw_text(&w, 0, WEFT_OP_COUNTER, 201, 5, "counter"); // the name of a counter is no label of its promise
	for (int i = 1; i <= 98; i++)
		mw_link(&w, i * 10, WEFT_OP_RESOLVE, -1, i);
	mw_text(&w, 990, WEFT_OP_FAIL, -1, 99, "error");
	mw_text(&w, 995, WEFT_OP_FAIL, -1, 201, "error"); // an error is no label, either
	mw_op(&w, 2000, WEFT_OP_RUN, -1);
	analyse();
	assert_int_equal(stats->count, 3);
	const struct weft_stat *request = &stats->stats[0];
	assert_int_equal(request->count, 100);
	assert_int_equal(request->kind, WEFT_KIND_WAIT);
	assert_int_equal(request->failures, 1);
	assert_int_equal(request->pending, 1);
	/* The pending promise waits until the end of the trace. */
	assert_int_equal(request->waiting.p50_ns, 500);
	assert_int_equal(request->waiting.p90_ns, 900);
	assert_int_equal(request->waiting.p99_ns, 990);
	assert_int_equal(request->waiting.max_ns, 2000);
	for (int i = 1; i < 3; i++) {
		assert_int_equal(stats->stats[i].count, 1);
		assert_int_equal(stats->stats[i].kind, WEFT_KIND_TASK);
	}
	assert_true(stats->stats[1].label != WEFT_NONE && stats->stats[2].label == WEFT_NONE);
	assert_int_equal(stats->stats[2].failures, 1);
	finish();
}

/* Returns the end of a promise; a pending one lasts until the end of the trace. */
static int64_t own_end(const struct weft_promise *promise)
{
	return promise->end == WEFT_END_PENDING ? model->end_ns : promise->end_ns;
}

/* Returns the end of the life of p: the end of its last merge target that was still alive at the merge. */
static int64_t last_end(uint32_t p)
{
	const struct weft_promise *promise = &model->promises[p];
	for (size_t steps = 0; promise->end == WEFT_END_BECAME && steps < model->promise_count; steps++) {
		const struct weft_promise *into = &model->promises[promise->became];
		if (own_end(into) <= promise->end_ns)
			break;
		promise = into;
	}
	return own_end(promise);
}

/* For random traces the three state times add up to the lifetime. */
static void state_times_add_up_to_the_lifetime(void **state)
{
	for (unsigned seed = 1; seed <= 200; seed++) {
		unsigned random = seed;
		char name[16];
		begin();
		for (int i = 1; i <= 12; i++) {
			mw_create(&w, 0, -1, i, i % 3 ? WEFT_KIND_WAIT : WEFT_KIND_BIND);
			snprintf(name, sizeof name, "p%d", i);
			mw_label(&w, 0, i, name);
		}
		for (int t = 1; t < 150; t++) {
			random = random * 1103515245u + 12345u;
			int a = 1 + (int)(random >> 16) % 12, b = 1 + (int)(random >> 20) % 12;
			static const unsigned char ops[] = {WEFT_OP_READ, WEFT_OP_AWAIT, WEFT_OP_RUN, WEFT_OP_RESOLVE,
			    WEFT_OP_BECOME, WEFT_OP_READ_LATER, WEFT_OP_SIGNAL, WEFT_OP_AWAIT};
			unsigned char op = ops[(random >> 25) % 8];
			if (op == WEFT_OP_RUN)
				mw_op(&w, t, op, a == 1 ? -1 : a);
			else
				mw_link(&w, t, op, a, b);
		}
		analyse();
		for (uint32_t p = 1; p < model->promise_count; p++) {
			const struct weft_promise *promise = &model->promises[p];
			snprintf(name, sizeof name, "p%d", (int)promise->id);
			const struct weft_stat *stat = stat_of(name);
			assert_int_equal(
			    stat->waiting.max_ns + stat->ready.max_ns + stat->running.max_ns, last_end(p) - promise->start_ns);
			assert_true(stat->waiting.max_ns >= 0 && stat->ready.max_ns >= 0 && stat->running.max_ns >= 0);
		}
		finish();
	}
}

static void statistics_report_a_failed_allocation_as_enomem(void **state)
{
	begin();
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	mw_create(&w, 0, -1, 2, WEFT_KIND_TASK);
	mw_link(&w, 1, WEFT_OP_AWAIT, 1, 2);
	analyse();
	for (long n = 0;; n++) {
		struct weft_stats *more = NULL;
		struct weft_error err;
		allocations_left = n;
		int status = weft_stats_create(&more, model, &err);
		allocations_left = -1;
		if (status == WEFT_OK) {
			weft_stats_destroy(more);
			assert_true(n > 5);
			break;
		}
		assert_int_equal(status, WEFT_ENOMEM);
		assert_int_equal(err.status, WEFT_ENOMEM);
		assert_null(more);
	}
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(awaited_time_is_split_into_waiting_and_ready),
	    cmocka_unit_test(connection_is_never_ready),
	    cmocka_unit_test(bind_is_ready_from_the_end_of_its_input),
	    cmocka_unit_test(merged_input_ends_with_its_target),
	    cmocka_unit_test(merged_promise_lives_until_its_target_ends),
	    cmocka_unit_test(promises_are_grouped_by_kind_and_label),
	    cmocka_unit_test(state_times_add_up_to_the_lifetime),
	    cmocka_unit_test(statistics_report_a_failed_allocation_as_enomem),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
