/* fleet_test.c: traces of hosts whose clocks are known: the truth is inside the bound, always.  SPDX-License-Identifier: ISC */
#include "fleet.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fleet_truth.h"
#include "trace/join.h"
#include "trace/meet.h"

enum { EACH_BYTES = 1 << 18 };

static void *buffers[FLEET_MOST];

static struct weft_trace *record(struct fleet *fleet, size_t hosts, size_t bytes, struct weft_error *err)
{
	struct weft_trace *parts[FLEET_MOST], *trace = NULL;
	for (size_t i = 0; i < hosts; i++) {
		memset(buffers[i], 0, bytes);
		if (!fleet_record(fleet, i, &(struct weft_record_options){.buffer = buffers[i], .buffer_bytes = bytes}))
			fail_msg("%s", weft_start_error());
		char name[FLEET_NAME];
		snprintf(name, sizeof name, "trace %zu", i);
		if (weft_trace_open_memory(&parts[i], buffers[i], bytes, name, err) < 0)
			fail_msg("%s", err->what);
	}
	if (weft_trace_join(&trace, parts, hosts, "fleet", err) < 0)
		for (size_t i = 0; i < hosts; i++)
			weft_trace_close(parts[i]);
	return trace;
}

static void the_truth_is_inside_the_bound(void **state)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct fleet_choices choices = {.seed = seed};
		struct weft_error err = {0};
		const size_t hosts = seed % 10 == 0 ? FLEET_MOST : 2 + seed % 4;
		struct fleet *fleet = fleet_create(&choices, hosts, 3 + seed * 7 % 100, FLEET_TRUTHS, FLEET_SOUND);
		assert_non_null(fleet);
		/* In every other one the ring wraps. */
		struct weft_trace *trace = record(fleet, hosts, seed % 2 ? EACH_BYTES : 1 << 14, &err);
		if (!trace && seed % 2)
			fail_msg("seed %d: %s", (int)seed, err.what);
		if (trace) {
			struct fleet_truth truth = fleet_compare(fleet, trace);
			if (truth.wrong)
				fail_msg("seed %d: %zu of %zu times are outside the bound: %s", (int)seed, truth.wrong,
				    truth.times, truth.first);
			assert_true(seed % 2 == 0 || truth.times == hosts * FLEET_TRUTHS);
			weft_trace_close(trace);
		}
		fleet_destroy(fleet);
	}
}

static void what_is_wrong_is_refused_and_told(void **state)
{
	static const struct {
		enum fleet_fault fault;
		const char *why;
	} cases[] = {
	    {FLEET_NAT, "(NAT?)"},
	    {FLEET_LATE, "less than no time"},
	    {FLEET_ONE_WAY, "bytes both ways"},
	    {FLEET_JUMPS, "more was read than was written"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fleet_choices choices = {.seed = 7};
		struct weft_error err = {0};
		struct fleet *fleet = fleet_create(&choices, 3, 50, FLEET_TRUTHS, cases[i].fault);
		assert_non_null(fleet);
		assert_null(record(fleet, 3, EACH_BYTES, &err));
		if (!strstr(err.what, cases[i].why))
			fail_msg("\"%s\" does not say \"%s\"", err.what, cases[i].why);
		fleet_destroy(fleet);
	}
}

static int set_up(void **state)
{
	for (size_t i = 0; i < FLEET_MOST; i++)
		if (!(buffers[i] = malloc(EACH_BYTES)))
			return -1;
	return 0;
}

static int tear_down(void **state)
{
	for (size_t i = 0; i < FLEET_MOST; i++)
		free(buffers[i]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_truth_is_inside_the_bound),
	    cmocka_unit_test(what_is_wrong_is_refused_and_told),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
