/* check_account.h: checks of the account of any trace: all time is attributed once, and all commands that print times print the
 * same times.  SPDX-License-Identifier: ISC */
#ifndef TESTS_ANALYSIS_CHECK_ACCOUNT_H
#define TESTS_ANALYSIS_CHECK_ACCOUNT_H

#include <stdio.h>
#include <stdlib.h>

#include "analysis/findings/explain.h"
#include "analysis/index/path.h"
#include "analysis/queries/promise_info.h"
#include "analysis/queries/stats.h"
#include "base/duration.h"

#define CHECK_ACCOUNT(condition)                                                                                                 \
	do {                                                                                                                     \
		if (!(condition)) {                                                                                              \
			fprintf(stderr, "%s:%d: the account breaks its rule: %s\n", __FILE__, __LINE__, #condition);             \
			abort();                                                                                                 \
		}                                                                                                                \
	} while (0)

static inline int64_t account_sum(const struct weft_state_times *t)
{
	CHECK_ACCOUNT(t->waiting_ns >= 0 && t->ready_ns >= 0 && t->running_ns >= 0);
	CHECK_ACCOUNT(t->off_ns >= 0 && t->off_ns <= t->running_ns);
	return t->waiting_ns + t->ready_ns + t->running_ns;
}

static inline bool are_same_times(const struct weft_state_times *a, const struct weft_state_times *b)
{
	return a->waiting_ns == b->waiting_ns && a->ready_ns == b->ready_ns && a->running_ns == b->running_ns &&
	       a->off_ns == b->off_ns;
}

/* Checks that the parts of a list cover the interval without gap or overlap; adds the time of each part to the sum of its state.
 */
static inline void check_list(const struct weft_model *m, const struct weft_spent_time *list, size_t count, int64_t from_ns,
    int64_t to_ns, int64_t sums[WEFT_STEP_KINDS])
{
	for (size_t i = 0; i < count; i++) {
		CHECK_ACCOUNT(list[i].start_ns == from_ns && list[i].end_ns > from_ns);
		CHECK_ACCOUNT(list[i].use < WEFT_USE_COUNT && (list[i].by == WEFT_NONE || list[i].by < m->promise_count));
		from_ns = list[i].end_ns;
		sums[weft_use_state((enum weft_use)list[i].use)] += list[i].end_ns - list[i].start_ns;
	}
	CHECK_ACCOUNT(count == 0 || from_ns == to_ns);
	CHECK_ACCOUNT(count > 0 || from_ns >= to_ns);
}

/* Checks one promise: the times of its states add up to its duration, and the times of its uses to those of its states. */
static inline void check_promise_account(const struct weft_link_index *index, uint32_t p)
{
	const struct weft_model *m = index->model;
	const int64_t start_ns = m->promises[p].start_ns, end_ns = weft_account_end_ns(m, p);
	const struct weft_spent_time *list;
	struct weft_state_times own, again;
	size_t count;
	int64_t sums[WEFT_STEP_KINDS] = {0};
	CHECK_ACCOUNT(weft_account_measure(index->accounts, p, &own));
	CHECK_ACCOUNT(account_sum(&own) == end_ns - start_ns);
	CHECK_ACCOUNT(weft_account_list(index->accounts, p, start_ns, end_ns, &list, &count));
	check_list(m, list, count, start_ns, end_ns, sums);
	CHECK_ACCOUNT(sums[WEFT_STEP_WAITING] == own.waiting_ns && sums[WEFT_STEP_READY] == own.ready_ns);
	CHECK_ACCOUNT(weft_account_measure_between(index->accounts, p, INT64_MIN, INT64_MAX, &again));
	CHECK_ACCOUNT(are_same_times(&own, &again));
}

/* Checks one path: it is as long as its promise, and each of its steps agrees with the account of the promise of that step. */
static inline void check_path_account(const struct weft_link_index *index, uint32_t p)
{
	const struct weft_model *m = index->model;
	struct weft_path *path;
	struct weft_state_times life;
	if (weft_path_create_with_index(&path, index, p, NULL) < 0)
		return;
	int64_t at_ns = m->promises[p].start_ns, totals[WEFT_STEP_KINDS] = {0};
	CHECK_ACCOUNT(weft_account_measure_life(index->accounts, p, &life));
	CHECK_ACCOUNT(are_same_times(&path->own, &life));
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_path_step *s = &path->steps[i];
		const struct weft_spent_time *list;
		size_t count;
		CHECK_ACCOUNT(s->start_ns == at_ns && s->end_ns > at_ns);
		totals[s->kind] += s->end_ns - s->start_ns;
		at_ns = s->end_ns;
		if (s->promise == WEFT_SYSTEM || s->connection != WEFT_NONE || s->sent_by != WEFT_NONE)
			continue;
		CHECK_ACCOUNT(weft_account_list(index->accounts, s->promise, s->start_ns, s->end_ns, &list, &count));
		for (size_t k = 0; k < count; k++)
			CHECK_ACCOUNT(weft_use_state((enum weft_use)list[k].use) == s->kind);
	}
	CHECK_ACCOUNT(at_ns == weft_max_ns(index->ended_ns[p], m->promises[p].start_ns));
	for (int kind = 0; kind < WEFT_STEP_KINDS; kind++)
		CHECK_ACCOUNT(totals[kind] == path->total_ns[kind]);
	weft_path_destroy(path);
}

/* Checks that explain --promise tells the same path. */
static inline void check_answer(const struct weft_link_index *index, uint32_t p)
{
	struct weft_findings *findings;
	struct weft_path *path;
	/* If events are missing, weft explain reads only the part of the trace before the missing events. */
	if (index->model->whole || weft_path_create_with_index(&path, index, p, NULL) < 0)
		return;
	CHECK_ACCOUNT(weft_explain_promise(&findings, index->model, p, NULL, NULL) == WEFT_OK);
	const struct weft_finding *finding = &findings->findings[0];
	CHECK_ACCOUNT(finding->step_count == path->count || finding->step_count == 0);
	for (size_t i = 0; i < finding->step_count; i++)
		CHECK_ACCOUNT(finding->steps[i].kind == path->steps[i].kind &&
			      finding->steps[i].promise == path->steps[i].promise &&
			      finding->steps[i].start_ns == path->steps[i].start_ns);
	weft_findings_destroy(findings);
	weft_path_destroy(path);
}

static inline const struct weft_stat *find_stat(const struct weft_stats *stats, uint32_t label, uint16_t kind)
{
	for (size_t i = 0; i < stats->count; i++)
		if (stats->stats[i].label == label && stats->stats[i].kind == kind)
			return &stats->stats[i];
	return NULL;
}

/* Checks that the panel and the groups of stats have the times of the account. */
static inline void check_tellers(const struct weft_link_index *index)
{
	const struct weft_model *m = index->model;
	struct weft_promise_info *facts;
	struct weft_stats *stats;
	CHECK_ACCOUNT(weft_promise_info_create(&facts, m, NULL) == WEFT_OK && weft_stats_create(&stats, m, NULL) == WEFT_OK);
	for (uint32_t p = 1; p < m->promise_count; p++) {
		struct weft_state_times own, life, shown = weft_promise_info_times(facts, p);
		CHECK_ACCOUNT(weft_account_measure(index->accounts, p, &own) && are_same_times(&own, &shown));
		const struct weft_stat *stat = p < 500 && m->promises[p].labels < m->promises[p + 1].labels
						   ? find_stat(stats, m->labels[m->promises[p].labels].text, m->promises[p].kind)
						   : NULL;
		if (!stat || stat->count != 1 || m->labels[m->promises[p].labels].is_counter)
			continue;
		CHECK_ACCOUNT(weft_account_measure_life(index->accounts, p, &life));
		CHECK_ACCOUNT(stat->waiting.max_ns == life.waiting_ns && stat->ready.max_ns == life.ready_ns &&
			      stat->running.max_ns == life.running_ns);
	}
	weft_promise_info_destroy(facts);
	weft_stats_destroy(stats);
}

/* Checks that the blame of a promise's label sums the paths of the promises of that label. */
static inline void check_blame(const struct weft_link_index *index, uint32_t p)
{
	const struct weft_model *m = index->model;
	const uint32_t label = weft_first_label(m, p);
	struct weft_blames *blames;
	if (label == WEFT_NONE || weft_blames_create(&blames, m, weft_model_text(m, label), NULL) < 0)
		return;
	int64_t sums[WEFT_STEP_KINDS] = {0}, expected[WEFT_STEP_KINDS] = {0};
	for (size_t i = 0; i < blames->count; i++)
		sums[blames->blames[i].kind] += blames->blames[i].sum_ns;
	for (uint32_t q = 1; q < m->promise_count; q++) {
		struct weft_path *path;
		if (weft_first_label(m, q) != label || weft_path_create_with_index(&path, index, q, NULL) < 0)
			continue;
		for (int kind = 0; kind < WEFT_STEP_KINDS; kind++)
			expected[kind] += path->total_ns[kind];
		weft_path_destroy(path);
	}
	for (int kind = 0; kind < WEFT_STEP_KINDS; kind++)
		CHECK_ACCOUNT(sums[kind] == expected[kind]);
	weft_blames_destroy(blames);
}

/* Checks the account of a model.  Paths, which may be long, are those of at most 64 promises. */
static inline void check_account(const struct weft_model *m)
{
	struct weft_link_index index;
	CHECK_ACCOUNT(weft_link_index_init(&index, m, WEFT_LINK_INDEX_ALL, NULL) == WEFT_OK);
	for (uint32_t p = 0; p < m->promise_count; p++)
		check_promise_account(&index, p);
	for (size_t s = 0; s < m->trace->stream_count; s++) {
		const struct weft_spent_time *list;
		size_t count;
		int64_t sums[WEFT_STEP_KINDS] = {0};
		CHECK_ACCOUNT(weft_account_list_thread(index.accounts, (uint16_t)s, 0, m->end_ns, &list, &count));
		check_list(m, list, count, 0, m->end_ns, sums);
	}
	const uint32_t step = (uint32_t)(m->promise_count / 64 + 1);
	for (uint32_t p = 1; p < m->promise_count; p += step)
		check_path_account(&index, p);
	for (uint32_t p = 1; p < m->promise_count; p += 16 * step) {
		check_answer(&index, p);
		check_blame(&index, p);
	}
	check_tellers(&index);
	weft_link_index_finish(&index);
}

#endif
