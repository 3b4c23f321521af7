/* followed.h: compares the state of a follower with the state after a read of the whole trace.
 * SPDX-License-Identifier: ISC */
#ifndef TESTS_MODEL_FOLLOWED_H
#define TESTS_MODEL_FOLLOWED_H

#include <stdio.h>
#include <string.h>

#include "analysis/queries/check.h"
#include "analysis/queries/waits.h"
#include "base/sort.h"
#include "model/follower.h"

struct lines {
	char text[4096][200];
	size_t count;
};

static int compare_lines(const void *a, const void *b)
{
	return strcmp(a, b);
}

static char *add_line(struct lines *lines)
{
	assert_true(lines->count < sizeof lines->text / sizeof *lines->text);
	return lines->text[lines->count++];
}

static bool is_unknown(const struct weft_model *m, uint32_t p)
{
	return m->promises[p].flags & WEFT_PROMISE_START_UNKNOWN;
}

/* Lists the pending promises and their inputs, with times if has_times.  A promise whose creation is not recorded is not
 * followed. */
static void describe(struct lines *out, const struct weft_model *m, bool has_times)
{
	struct weft_waits *waits;
	char name[64];
	out->count = 0;
	for (uint32_t p = 1; p < m->promise_count; p++) {
		const struct weft_promise *promise = &m->promises[p];
		if (promise->end != WEFT_END_PENDING || is_unknown(m, p))
			continue;
		weft_model_name(m, p, name, sizeof name);
		snprintf(add_line(out), 200, "%lld %s %s %lld", (long long)promise->id, name,
		    has_times ? weft_model_kind_name(m, promise->kind) : "", has_times ? (long long)promise->start_ns : 0);
	}
	assert_int_equal(weft_waits_create(&waits, m, m->end_ns, NULL), WEFT_OK);
	for (size_t i = 0; i < waits->count; i++) {
		const uint32_t from = waits->waits[i].from, to = waits->waits[i].to;
		if (is_unknown(m, from) || is_unknown(m, to) || from == to)
			continue;
		snprintf(add_line(out), 200, "%lld waits for %lld since %lld", (long long)m->promises[from].id,
		    (long long)m->promises[to].id, has_times ? (long long)waits->waits[i].since_ns : 0);
	}
	weft_waits_destroy(waits);
	for (size_t i = 0; i < m->counter_count; i++)
		snprintf(add_line(out), 200, "%.*s is %lld", (int)m->counters[i].name.len, m->counters[i].name.ptr,
		    (long long)m->counters[i].samples[m->counters[i].count - 1].value);
	weft_sort(out->text, out->count, sizeof *out->text, compare_lines);
}

/* Both lists are sorted. */
static void assert_same(const struct lines *got, const struct lines *wanted)
{
	enum { TOLD = 10 };
	unsigned wrong = 0;
	for (size_t i = 0, k = 0; (i < got->count || k < wanted->count) && wrong < TOLD;) {
		const int order = i == got->count ? 1 : k == wanted->count ? -1 : strcmp(got->text[i], wanted->text[k]);
		if (order)
			print_error("%s: %s\n", order < 0 ? "followed alone" : "read again alone",
			    order < 0 ? got->text[i] : wanted->text[k]);
		wrong += order != 0;
		i += order <= 0;
		k += order >= 0;
	}
	assert_int_equal(wrong, 0);
}

/* Checks that rules give the same results while following as on the whole trace; percentiles to a 64th. */
static void compare_rules(struct weft_rule_result *followed, const struct weft_follower *follower,
    const struct weft_running_stats *tallies, const struct weft_model *all, const char *const *rules, size_t rule_count)
{
	for (size_t i = 0, counted = 0; i < rule_count; i++) {
		struct weft_rule rule;
		struct weft_running_stats asked;
		struct weft_rule_result fresh;
		assert_int_equal(weft_rule_parse(&rule, rules[i], NULL), WEFT_OK);
		const struct weft_running_stats *tally = weft_rule_running_stats(&asked, &rule) ? &tallies[counted++] : NULL;
		assert_int_equal(weft_rule_check_followed(&followed[i], weft_follower_model(follower), &rule, tally,
				     weft_follower_stats_span_ns(follower), NULL),
		    WEFT_OK);
		assert_int_equal(weft_rule_check(&fresh, all, &rule, NULL), WEFT_OK);
		const int64_t off = followed[i].value - fresh.value, allowed = rule.is_time ? fresh.value / 64 + 1 : 0;
		if (followed[i].outcome != fresh.outcome || off > allowed || -off > allowed)
			fail_msg("%s: %lld, outcome %d, and read again %lld, %d", rules[i], (long long)followed[i].value,
			    followed[i].outcome, (long long)fresh.value, fresh.outcome);
	}
}

#endif
