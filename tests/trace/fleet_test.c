/* fleet_test.c: joined traces of hosts with known clocks: the true time is always inside the bounds.  SPDX-License-Identifier:
 * ISC */
#include "fleet.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fleet_truth.h"
#include "trace/clock_sync.h"
#include "trace/join.h"

enum { EACH_BYTES = 1 << 18 };

static void *buffers[FLEET_MOST];

/* Records and joins the traces of all hosts.  If `lost` is not 0, one packet of each trace is cleared. */
static struct weft_trace *record(struct fleet *fleet, size_t hosts, size_t bytes, uint64_t lost, struct weft_error *err)
{
	struct weft_trace *parts[FLEET_MOST], *trace = NULL;
	for (size_t i = 0; i < hosts; i++) {
		memset(buffers[i], 0, bytes);
		const struct weft_record_options place = {
		    .buffer = buffers[i], .buffer_bytes = bytes, .packet_bytes = lost ? FLEET_PACKET : 0};
		if (!fleet_record(fleet, i, &place))
			fail_msg("%s", weft_start_error());
		if (lost)
			fleet_lose(buffers[i], bytes, lost + i);
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

/* Tests hosts with all kinds of clocks, with rings that wrap, and with missing packets. */
static void true_clock_offset_is_within_the_bounds(void **state)
{
	enum { SOUND = 1, COUNTERS = 2, LOST = 4, WAYS = 6 };
	size_t gaps = 0, unwritten = 0;
	for (uint64_t seed = 1; seed <= 120; seed++) {
		static const int ways[WAYS] = {0, SOUND, COUNTERS, COUNTERS | SOUND, LOST, LOST | COUNTERS};
		const int way = ways[seed % WAYS];
		struct fleet_choices choices = {.seed = seed};
		struct weft_error err = {0};
		const size_t hosts = seed % 10 == 0 ? FLEET_MOST : 2 + seed % 4;
		struct fleet *fleet = fleet_create(
		    &choices, hosts, 3 + seed * 7 % 100, FLEET_TRUTHS, way & COUNTERS ? FLEET_COUNTERS : FLEET_SOUND);
		assert_non_null(fleet);
		/* Hosts that are neither sound nor lossy record into rings that wrap. */
		struct weft_trace *trace =
		    record(fleet, hosts, way & (SOUND | LOST) ? EACH_BYTES : 1 << 14, way & LOST ? seed : 0, &err);
		if (!trace && way & SOUND)
			fail_msg("seed %d: %s", (int)seed, err.what);
		if (trace) {
			struct fleet_truth truth = fleet_compare(fleet, trace);
			if (truth.wrong)
				fail_msg("seed %d: %zu of %zu times are outside the bound: %s", (int)seed, truth.wrong,
				    truth.times, truth.first);
			assert_true(!(way & SOUND) || truth.times == hosts * FLEET_TRUTHS);
			gaps += way & LOST ? weft_trace_info(trace)->gap_count : 0;
			/* If only a ring has overwritten events, all bytes that were read count as written; if a packet is lost,
			 * some may not. */
			assert_true(way & LOST || weft_trace_clock_sync(trace)->unwritten == 0);
			unwritten += weft_trace_clock_sync(trace)->unwritten;
			weft_trace_close(trace);
		}
		fleet_destroy(fleet);
	}
	assert_true(gaps > 20 && unwritten > 20);
}

static void traces_of_a_host_with_wrong_times_or_addresses_are_not_joined(void **state)
{
	static const struct {
		enum fleet_fault fault;
		const char *why;
	} cases[] = {
	    {FLEET_NAT, "(NAT?)"},
	    {FLEET_LATE, "negative time"},
	    {FLEET_ONE_WAY, "bytes in both directions"},
	    {FLEET_JUMPS, "more bytes were read than written"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fleet_choices choices = {.seed = 7};
		struct weft_error err = {0};
		struct fleet *fleet = fleet_create(&choices, 3, 50, FLEET_TRUTHS, cases[i].fault);
		assert_non_null(fleet);
		assert_null(record(fleet, 3, EACH_BYTES, 0, &err));
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
	    cmocka_unit_test(true_clock_offset_is_within_the_bounds),
	    cmocka_unit_test(traces_of_a_host_with_wrong_times_or_addresses_are_not_joined),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
