/* stats.c: sums up how promises spent their time, by group.  SPDX-License-Identifier: ISC */
#include "analysis/queries/stats.h"

#include <stdlib.h>

#include "analysis/index/account.h"
#include "base/sort.h"
#include "model/kernel.h"

/* How one promise spent its time, and the group to which it belongs. */
struct promise_times {
	struct weft_state_times time;
	uint32_t label, site;
	uint16_t kind;
	uint8_t end;
	uint32_t promise;
};

static struct promise_times describe_promise(const struct weft_model *m, uint32_t p)
{
	const struct weft_promise *promise = &m->promises[p];
	struct promise_times promise_times = {.promise = p, .kind = promise->kind, .end = promise->end, .label = WEFT_NONE};
	for (uint32_t l = promise->labels; l < promise[1].labels && promise_times.label == WEFT_NONE; l++)
		if (!m->labels[l].is_counter && m->labels[l].text != promise->failure)
			promise_times.label = m->labels[l].text;
	promise_times.site = promise_times.label == WEFT_NONE ? promise->site : WEFT_NONE;
	return promise_times;
}

/* Adds, to the times of each promise that became another promise, the remaining times and the end of that other promise.  The
 * times of promise p are at index p - 1; `chain` must have capacity for all promises.  Returns false when out of memory. */
static bool follow_successors(struct weft_accounts *accounts, const struct weft_model *m, struct promise_times *all_times,
    struct weft_state_times *rests, uint32_t *chain)
{
	for (uint32_t i = 1; i < m->promise_count; i++) {
		size_t steps = 0;
		uint32_t p = i;
		while (all_times[p - 1].end == WEFT_END_BECAME && m->promises[p].became != WEFT_NONE) {
			all_times[p - 1].end = WEFT_END_PENDING; /* a promise that became itself in a cycle stays pending */
			chain[steps++] = p;
			p = m->promises[p].became;
		}
		while (steps > 0) {
			const uint32_t from = chain[--steps], into = weft_account_continuation(m, from);
			all_times[from - 1].end = all_times[m->promises[from].became - 1].end;
			if (into == WEFT_NONE)
				continue;
			if (!weft_account_measure_between(accounts, into, m->promises[from].end_ns, INT64_MAX, &rests[from]))
				return false;
			weft_state_times_add(&rests[from], &rests[into]);
			weft_state_times_add(&all_times[from - 1].time, &rests[from]);
		}
	}
	return true;
}

static int compare_promise_times(const void *a, const void *b)
{
	const struct promise_times *x = a, *y = b;
	return WEFT_ORDER(x->label, y->label) ?: WEFT_ORDER(x->site, y->site) ?: WEFT_ORDER(x->kind, y->kind) ?:
	       WEFT_ORDER(x->promise, y->promise);
}

static struct weft_spread make_spread(int64_t *values, size_t count)
{
	weft_sort(values, count, sizeof *values, weft_compare_i64);
	return (struct weft_spread){
	    values[(count * 50 + 99) / 100 - 1],
	    values[(count * 90 + 99) / 100 - 1],
	    values[(count * 99 + 99) / 100 - 1],
	    values[count - 1],
	};
}

/* Sums up one group: the promises with the same label, site and kind.  `values` must have capacity for `count` numbers. */
static struct weft_stat sum_up_group(
    const struct weft_model *m, const struct promise_times *all_times, size_t count, int64_t *values)
{
	struct weft_stat stat = {.label = all_times->label, .site = all_times->site, .kind = all_times->kind, .count = count};
	for (size_t i = 0; i < count; i++) {
		stat.failures += all_times[i].end == WEFT_END_FAILED;
		stat.pending += all_times[i].end == WEFT_END_PENDING;
		values[i] = all_times[i].time.waiting_ns;
	}
	stat.waiting = make_spread(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = all_times[i].time.ready_ns;
	stat.ready = make_spread(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = all_times[i].time.running_ns;
	stat.running = make_spread(values, count);
	stat.has_off = m->kernel && m->kernel->info.level != WEFT_LEVEL_SELF;
	for (size_t i = 0; i < count; i++)
		values[i] = all_times[i].time.off_ns;
	stat.off = make_spread(values, count);
	return stat;
}

static int compare_stat(const void *a, const void *b)
{
	const struct weft_stat *x = a, *y = b;
	/* Texts and sites are numbered in the order of their first use, so the group that was used first comes first. */
	return WEFT_ORDER(y->count, x->count) ?: WEFT_ORDER(x->label, y->label) ?: WEFT_ORDER(x->site, y->site) ?:
	       WEFT_ORDER(x->kind, y->kind);
}

/* Sorts the times of promises into groups and sums up each group; returns false when out of memory. */
static bool group_promises(struct weft_stats *stats, const struct weft_model *m, struct promise_times *all_times, size_t count)
{
	weft_sort(all_times, count, sizeof *all_times, compare_promise_times);
	size_t groups = 0;
	for (size_t i = 0; i < count; i++)
		groups += i == 0 || all_times[i].label != all_times[i - 1].label || all_times[i].site != all_times[i - 1].site ||
			  all_times[i].kind != all_times[i - 1].kind;
	int64_t *values = malloc((count + 1) * sizeof *values);
	stats->stats = malloc((groups + 1) * sizeof *stats->stats);
	if (!values || !stats->stats) {
		free(values);
		return false;
	}
	for (size_t begin = 0, end; begin < count; begin = end) {
		for (end = begin + 1;
		     end < count && all_times[end].label == all_times[begin].label &&
		     all_times[end].site == all_times[begin].site && all_times[end].kind == all_times[begin].kind;
		     end++)
			;
		stats->stats[stats->count++] = sum_up_group(m, &all_times[begin], end - begin, values);
	}
	free(values);
	weft_sort(stats->stats, stats->count, sizeof *stats->stats, compare_stat);
	return true;
}

/* Measures the times of all promises; returns false when out of memory. */
static bool measure_all(const struct weft_link_index *link_index, struct promise_times *all_times)
{
	const struct weft_model *m = link_index->model;
	struct weft_state_times *rests = calloc(m->promise_count, sizeof *rests);
	uint32_t *chain = malloc(m->promise_count * sizeof *chain);
	bool ok = rests && chain;
	for (uint32_t p = 1; ok && p < m->promise_count; p++) {
		all_times[p - 1] = describe_promise(m, p);
		ok = weft_account_measure(link_index->accounts, p, &all_times[p - 1].time);
	}
	ok = ok && follow_successors(link_index->accounts, m, all_times, rests, chain);
	free(rests);
	free(chain);
	return ok;
}

int weft_stats_create(struct weft_stats **out, const struct weft_model *model, struct weft_error *err)
{
	struct weft_link_index link_index;
	struct promise_times *all_times = malloc(model->promise_count * sizeof *all_times);
	struct weft_stats *stats = calloc(1, sizeof *stats);
	bool ok = all_times && stats && weft_link_index_init(&link_index, model, WEFT_LINK_INDEX_ALL, NULL) == WEFT_OK;
	if (ok) {
		ok = measure_all(&link_index, all_times);
		weft_link_index_finish(&link_index);
	}
	ok = ok && group_promises(stats, model, all_times, model->promise_count - 1);
	free(all_times);
	if (!ok) {
		weft_stats_destroy(stats);
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	*out = stats;
	return WEFT_OK;
}

void weft_stats_destroy(struct weft_stats *stats)
{
	if (stats)
		free(stats->stats);
	free(stats);
}
