/* clock_bounds_test.c: bounds of clock offsets, tested with simulated clocks whose true offset is known. SPDX-License-Identifier:
 * ISC */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "trace/clock_bounds.h"

enum { BENDS = 8, MESSAGES = 2000, SECOND = 1000000000 };

__extension__ typedef __int128 wide;

static uint64_t seed;

static int64_t between(int64_t least, int64_t most)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return least + (int64_t)((z ^ (z >> 31)) % (uint64_t)(most - least + 1));
}

/* A clock with an offset and a rate, in 1e-12, that changes at each bend. */
struct clock {
	int64_t offset, until[BENDS], rate[BENDS];
};

static struct clock make_clock(int bends, int64_t most_ppm)
{
	struct clock clock = {.offset = between(-1000, 1000) * SECOND * between(0, 1000000)};
	int64_t until = 0;
	for (int i = 0; i < BENDS; i++) {
		clock.until[i] = until += i < bends ? between(SECOND / 10, 5 * (int64_t)SECOND) : INT64_MAX / 16;
		clock.rate[i] = between(-most_ppm * 1000000, most_ppm * 1000000);
	}
	return clock;
}

static int64_t shows(const struct clock *clock, int64_t t)
{
	wide gained = 0;
	int64_t from = 0;
	for (int i = 0; i < BENDS && from < t; from = clock->until[i++])
		gained += (wide)((t < clock->until[i] ? t : clock->until[i]) - from) * clock->rate[i];
	const wide part = gained / 1000000000000;
	return t + clock->offset + (int64_t)(part - (gained % 1000000000000 < 0));
}

static int64_t delay(int64_t least, int64_t most)
{
	return between(0, 3) ? least + between(0, most) : least + between(0, most / 50);
}

static struct weft_clock_message messages[MESSAGES];

/* Simulates messages within `span`.  Sends may be stamped too early and receipts too late; `wrong_ns` stamps each send so much
 * too late. */
static size_t send(const struct clock *mine, const struct clock *other, size_t count, int64_t span, int64_t forth_ns,
    int64_t back_ns, int64_t wrong_ns)
{
	for (size_t i = 0; i < count; i++) {
		const bool is_sent_locally = i < 2 ? i == 0 : between(0, 1);
		const int64_t sent = between(0, span), received = sent + delay(2000, is_sent_locally ? forth_ns : back_ns);
		const int64_t early = wrong_ns ? -wrong_ns : between(0, 1) * between(0, 5000),
			      late = between(0, 1) * between(0, 5000);
		const int64_t stamp_sent = sent - early, stamp_received = received + late;
		messages[i].is_sent_locally = is_sent_locally;
		messages[i].local_ns = shows(mine, is_sent_locally ? stamp_sent : stamp_received);
		messages[i].remote_ns = shows(other, is_sent_locally ? stamp_received : stamp_sent);
	}
	return count;
}

static void true_clock_offset_of_two_hosts_is_within_the_bounds(void **state)
{
	for (int round = 1; round < 400; round++) {
		seed = (uint64_t)round;
		/* Both clocks may be wrong by 250 ppm, in opposite directions. */
		const struct clock mine = make_clock((int)between(0, BENDS - 1), 249),
				   other = make_clock((int)between(0, BENDS - 1), 249);
		const int64_t span = between(1, 20) * SECOND, forth_ns = between(1, 3) == 1 ? 2000000 : 20000;
		const size_t count = send(&mine, &other, (size_t)between(2, MESSAGES), span, forth_ns, 20000, 0);
		struct weft_clock_bounds *tie;
		struct weft_error err = {0};
		if (weft_clock_bounds_create(&tie, messages, count, false, &err) < 0)
			fail_msg("round %d: %s", round, err.what);
		int64_t last_ns = INT64_MIN;
		struct weft_clock_bounds_cursor cursor = {0}; /* the times are ascending, with some jumps back */
		for (int i = 0; i < 2000; i++) {
			const int64_t ns = shows(&mine, (int64_t)between(0, 9) ? span / 2000 * i + (int64_t)between(0, 3)
									       : (int64_t)between(0, (uint64_t)span));
			int64_t left_ns = (int64_t)between(1, (uint64_t)span);
			const int64_t at = weft_clock_bounds_time_from(tie, ns, &cursor, &left_ns), last = ns + left_ns - 1;
			assert_int_equal(at, weft_clock_bounds_time(tie, ns, NULL, NULL));
			assert_int_equal(at - ns, weft_clock_bounds_time(tie, last, NULL, NULL) - last);
		}
		for (int i = -200; i <= 1200; i++) {
			const int64_t t = span / 1000 * i + 10 * (int64_t)SECOND * (i < 0), now = t < 0 ? 0 : t,
				      truth = shows(&other, now);
			int64_t low, high;
			const int64_t at = weft_clock_bounds_time(tie, shows(&mine, now), &low, &high);
			if (truth < low || truth > high || at < low || at > high)
				fail_msg("round %d at %lld: %lld is not from %lld to %lld, or %lld", round, (long long)now,
				    (long long)truth, (long long)low, (long long)high, (long long)at);
			assert_true(i <= 0 || at >= last_ns);
			last_ns = i < 0 ? INT64_MIN : at;
		}
		for (size_t i = 0; i < count; i++) {
			const int64_t at = weft_clock_bounds_time(tie, messages[i].local_ns, NULL, NULL);
			assert_true(
			    messages[i].is_sent_locally ? at <= messages[i].remote_ns + 2 : at >= messages[i].remote_ns - 2);
		}
		weft_clock_bounds_destroy(tie);
	}
}

/* A clock that is a CPU counter: an offset, a rate, and a sine, so that the rate changes by a bounded amount per second. */
struct counter {
	int64_t offset;
	double rate, far_ns, period_ns;
};

static struct counter make_counter(double ppm)
{
	const double period_s = (double)between(1000, 20000) / 1000, turns = 2 * 3.14159265358979 / period_s;
	const double farthest_ns = (double)between(0, 1000) / 1000 * ppm * 1e3 / turns / turns;
	return (struct counter){between(-1000, 1000) * SECOND, (double)between(-100, 100) / 1e6, farthest_ns, period_s * SECOND};
}

static int64_t counts(const struct counter *c, int64_t t)
{
	return t + c->offset +
	       (int64_t)floor((double)t * c->rate + c->far_ns * sin((double)t / c->period_ns * 2 * 3.14159265358979));
}

/* If both clocks are CPU counters, the bounds are narrower and still contain the true offset, even if the rates change as fast as
 * allowed and messages are rare. */
static void clocks_that_are_cpu_counters_have_narrower_bounds(void **state)
{
	enum { ROUNDS = 600 };
	double narrower = 0;
	for (int round = 0; round < ROUNDS; round++) {
		static const int64_t noises_ns[] = {20000, 200000, 5000000};
		seed = (uint64_t)round;
		const struct counter mine = make_counter(15), other = make_counter(15);
		const int64_t span = between(1, 20) * SECOND, forth_ns = noises_ns[round % 3], back_ns = noises_ns[round / 3 % 3];
		const size_t count = (size_t)between(2, MESSAGES);
		for (size_t i = 0; i < count; i++) {
			const bool is_sent_locally = i < 2 ? i == 0 : between(0, 1);
			const int64_t sent = between(0, span),
				      received = sent + delay(2000, is_sent_locally ? forth_ns : back_ns);
			messages[i].is_sent_locally = is_sent_locally;
			messages[i].local_ns = counts(&mine, is_sent_locally ? sent : received);
			messages[i].remote_ns = counts(&other, is_sent_locally ? received : sent);
		}
		struct weft_clock_bounds *ties[2];
		int64_t averages_ns[2], least_ns, last_ns = INT64_MIN;
		for (int steady = 0; steady < 2; steady++) {
			assert_int_equal(weft_clock_bounds_create(&ties[steady], messages, count, steady, NULL), WEFT_OK);
			weft_clock_bounds_width(ties[steady], &least_ns, &averages_ns[steady]);
		}
		for (int i = 0; i <= 2000; i++) {
			const int64_t t = span / 1000 * (i - 500), truth = counts(&other, t);
			int64_t low, high, low_of_any, high_of_any;
			const int64_t at = weft_clock_bounds_time(ties[1], counts(&mine, t), &low, &high);
			weft_clock_bounds_time(ties[0], counts(&mine, t), &low_of_any, &high_of_any);
			if (truth < low || truth > high)
				fail_msg("round %d at %lld: %lld is not from %lld to %lld", round, (long long)t, (long long)truth,
				    (long long)low, (long long)high);
			assert_true(low >= low_of_any && high <= high_of_any && at >= last_ns);
			last_ns = at;
		}
		narrower += (double)averages_ns[1] / (double)averages_ns[0] / ROUNDS;
		weft_clock_bounds_destroy(ties[0]);
		weft_clock_bounds_destroy(ties[1]);
	}
	assert_true(narrower > 0.1 && narrower < 0.4);
}

/* With as many messages as a busy service sends, the bounds are some us wide. */
static void many_messages_narrow_the_clock_bounds(void **state)
{
	seed = 1;
	const struct clock mine = make_clock(0, 30), other = make_clock(0, 30);
	struct weft_clock_bounds *tie;
	int64_t least_ns, average_ns;
	assert_int_equal(
	    weft_clock_bounds_create(&tie, messages, send(&mine, &other, MESSAGES, SECOND, 20000, 20000, 0), false, NULL),
	    WEFT_OK);
	weft_clock_bounds_width(tie, &least_ns, &average_ns);
	assert_in_range(least_ns, 4000, 10000);
	assert_in_range(average_ns, least_ns, 20000);
	weft_clock_bounds_destroy(tie);
}

/* Each send is stamped 1 ms too late, so messages seem to arrive before they are sent. */
static void messages_with_impossible_times_are_not_aligned(void **state)
{
	for (int round = 1; round < 50; round++) {
		seed = (uint64_t)round;
		const struct clock mine = make_clock(3, 249), other = make_clock(3, 249);
		struct weft_error err = {0};
		struct weft_clock_bounds *tie = NULL;
		const size_t count = send(&mine, &other, MESSAGES, SECOND, 20000, 20000, 1000000);
		assert_int_equal(weft_clock_bounds_create(&tie, messages, count, false, &err), WEFT_EINVAL);
		assert_non_null(strstr(err.what, "negative time"));
		assert_null(tie);
	}
}

static void clock_that_was_set_during_the_recording_is_not_aligned(void **state)
{
	for (int round = 1; round < 50; round++) {
		seed = (uint64_t)round;
		const struct clock mine = make_clock(0, 10), other = make_clock(0, 10);
		struct weft_error err = {0};
		struct weft_clock_bounds *tie = NULL;
		const size_t count = send(&mine, &other, MESSAGES, SECOND, 20000, 20000, 0);
		for (size_t i = 0; i < count; i++)
			if (messages[i].local_ns - mine.offset > SECOND / 2)
				messages[i].local_ns += 50000000;
		assert_int_equal(weft_clock_bounds_create(&tie, messages, count, false, &err), WEFT_EINVAL);
		assert_null(tie);
	}
}

static void clocks_with_messages_in_one_direction_are_not_aligned(void **state)
{
	struct weft_clock_bounds *tie = NULL;
	struct weft_error err = {0};
	const struct weft_clock_message one[] = {{5, 10, true}, {7, 20, true}};
	assert_int_equal(weft_clock_bounds_create(&tie, one, 2, false, &err), WEFT_ENOTFOUND);
	assert_non_null(strstr(err.what, "one direction"));
	assert_int_equal(weft_clock_bounds_create(&tie, one, 0, false, &err), WEFT_ENOTFOUND);
	assert_null(tie);
}

/* The messages have the smallest and the largest 64-bit times. */
static void extreme_event_times_of_joined_traces_do_not_overflow(void **state)
{
	struct weft_clock_bounds *tie = NULL;
	const struct weft_clock_message ends[] = {{INT64_MIN, INT64_MAX, true}, {INT64_MAX, INT64_MIN, false}};
	const int64_t times[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
	if (weft_clock_bounds_create(&tie, ends, 2, false, NULL) < 0)
		return;
	for (size_t i = 0; i < 5; i++) {
		int64_t low, high, at = weft_clock_bounds_time(tie, times[i], &low, &high);
		assert_true(low <= at && at <= high);
	}
	weft_clock_bounds_destroy(tie);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(true_clock_offset_of_two_hosts_is_within_the_bounds),
	    cmocka_unit_test(clocks_that_are_cpu_counters_have_narrower_bounds),
	    cmocka_unit_test(many_messages_narrow_the_clock_bounds),
	    cmocka_unit_test(messages_with_impossible_times_are_not_aligned),
	    cmocka_unit_test(clock_that_was_set_during_the_recording_is_not_aligned),
	    cmocka_unit_test(clocks_with_messages_in_one_direction_are_not_aligned),
	    cmocka_unit_test(extreme_event_times_of_joined_traces_do_not_overflow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
