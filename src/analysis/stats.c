/* stats.c: how promises spent their time, group by group.  SPDX-License-Identifier: ISC */
#include "analysis/stats.h"

#include <stdlib.h>

#include "analysis/life.h"
#include "base/sort.h"
#include "model/kernel.h"

/* Where a promise spent its time, and to which group it belongs. */
struct life {
	struct weft__life time;
	uint32_t label, site;
	uint16_t kind;
	uint8_t end;
	uint32_t promise;
	int64_t end_ns;
};

static struct life describe(const struct weft_model *m, uint32_t p)
{
	const struct weft_promise *promise = &m->promises[p];
	struct life life = {
	    .promise = p, .kind = promise->kind, .end = promise->end, .end_ns = promise->end_ns, .label = WEFT_NONE};
	for (uint32_t l = promise->labels; l < promise[1].labels && life.label == WEFT_NONE; l++)
		if (!m->labels[l].is_counter && m->labels[l].text != promise->failure)
			life.label = m->labels[l].text;
	life.site = life.label == WEFT_NONE ? promise->site : WEFT_NONE;
	return life;
}

/* What a life of `whole` has before that time, as `before`; what runs then is told by p, whose life it is. */
static struct weft__life part_before(const struct weft_model *m, uint32_t p, const struct weft__life *whole, int64_t time_ns)
{
	const struct weft_promise *promise = &m->promises[p];
	struct weft__life before = {0};
	for (uint32_t r = promise->runs; r < promise[1].runs && m->runs[r].start_ns < time_ns; r++)
		before.running_ns += (m->runs[r].end_ns < time_ns ? m->runs[r].end_ns : time_ns) - m->runs[r].start_ns;
	before.off_ns = weft_kernel_promise_off_ns(m, p, promise->start_ns, time_ns);
	int64_t rest_ns = time_ns - promise->start_ns - before.running_ns;
	before.waiting_ns = rest_ns < whole->waiting_ns ? rest_ns : whole->waiting_ns;
	before.ready_ns = rest_ns - before.waiting_ns;
	return before;
}

/* A promise that became another one goes on as that one: its life gets the rest of that one's, and its end.  Lives of promises
 * are at their index - 1; `way` has room for all. */
static void follow(const struct weft_model *m, struct life *lives, uint32_t *way)
{
	for (uint32_t i = 1; i < m->promise_count; i++) {
		size_t steps = 0;
		uint32_t p = i;
		while (lives[p - 1].end == WEFT_END_BECAME && m->promises[p].became != WEFT_NONE) {
			lives[p - 1].end = WEFT_END_PENDING; /* so it stays in a circle */
			way[steps++] = p;
			p = m->promises[p].became;
		}
		while (steps > 0) {
			const struct life *rest = &lives[p - 1];
			struct life *life = &lives[(p = way[--steps]) - 1];
			uint32_t into = m->promises[p].became;
			int64_t from_ns = m->promises[p].end_ns;
			life->end = rest->end;
			if (from_ns >= rest->end_ns || from_ns < m->promises[into].start_ns)
				continue;
			life->end_ns = rest->end_ns;
			struct weft__life before = part_before(m, into, &rest->time, from_ns);
			life->time.running_ns += rest->time.running_ns - before.running_ns;
			life->time.off_ns += rest->time.off_ns - before.off_ns;
			life->time.ready_ns += rest->time.ready_ns - before.ready_ns;
			life->time.waiting_ns += rest->time.waiting_ns - before.waiting_ns;
		}
	}
}

static int compare_life(const void *a, const void *b)
{
	const struct life *x = a, *y = b;
	return WEFT_ORDER(x->label, y->label) ?: WEFT_ORDER(x->site, y->site) ?: WEFT_ORDER(x->kind, y->kind) ?:
	       WEFT_ORDER(x->promise, y->promise);
}

static struct weft_spread spread(int64_t *values, size_t count)
{
	weft_sort(values, count, sizeof *values, weft_compare_i64);
	return (struct weft_spread){
	    values[(count * 50 + 99) / 100 - 1],
	    values[(count * 90 + 99) / 100 - 1],
	    values[(count * 99 + 99) / 100 - 1],
	    values[count - 1],
	};
}

/* Sums up one group, lives of the same label, site and kind.  `values` has room for `count` numbers. */
static struct weft_stat sum_up(const struct weft_model *m, const struct life *lives, size_t count, int64_t *values)
{
	struct weft_stat stat = {.label = lives->label, .site = lives->site, .kind = lives->kind, .count = count};
	for (size_t i = 0; i < count; i++) {
		stat.failures += lives[i].end == WEFT_END_FAILED;
		stat.pending += lives[i].end == WEFT_END_PENDING;
		values[i] = lives[i].time.waiting_ns;
	}
	stat.waiting = spread(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = lives[i].time.ready_ns;
	stat.ready = spread(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = lives[i].time.running_ns;
	stat.running = spread(values, count);
	stat.has_off = m->kernel && m->kernel->info.level != WEFT_LEVEL_SELF;
	for (size_t i = 0; i < count; i++)
		values[i] = lives[i].time.off_ns;
	stat.off = spread(values, count);
	return stat;
}

static int compare_stat(const void *a, const void *b)
{
	const struct weft_stat *x = a, *y = b;
	/* Texts and sites are numbered by their first use, so the group that was used first comes first. */
	return WEFT_ORDER(y->count, x->count) ?: WEFT_ORDER(x->label, y->label) ?: WEFT_ORDER(x->site, y->site) ?:
	       WEFT_ORDER(x->kind, y->kind);
}

/* Sorts the lives into groups, and sums up each; false when out of memory. */
static bool group(struct weft_stats *stats, const struct weft_model *m, struct life *lives, size_t count)
{
	weft_sort(lives, count, sizeof *lives, compare_life);
	size_t groups = 0;
	for (size_t i = 0; i < count; i++)
		groups += i == 0 || lives[i].label != lives[i - 1].label || lives[i].site != lives[i - 1].site ||
			  lives[i].kind != lives[i - 1].kind;
	int64_t *values = malloc((count + 1) * sizeof *values);
	stats->stats = malloc((groups + 1) * sizeof *stats->stats);
	if (!values || !stats->stats) {
		free(values);
		return false;
	}
	for (size_t begin = 0, end; begin < count; begin = end) {
		for (end = begin + 1; end < count && lives[end].label == lives[begin].label &&
				      lives[end].site == lives[begin].site && lives[end].kind == lives[begin].kind;
		     end++)
			;
		stats->stats[stats->count++] = sum_up(m, &lives[begin], end - begin, values);
	}
	free(values);
	weft_sort(stats->stats, stats->count, sizeof *stats->stats, compare_stat);
	return true;
}

int weft_stats_create(struct weft_stats **out, const struct weft_model *model, struct weft_error *err)
{
	struct weft__lives w;
	struct life *lives = malloc(model->promise_count * sizeof *lives);
	uint32_t *way = malloc(model->promise_count * sizeof *way);
	struct weft_stats *stats = calloc(1, sizeof *stats);
	bool ok = weft__lives_begin(&w, model) && lives && way && stats;
	for (uint32_t p = 1; ok && p < model->promise_count; p++) {
		lives[p - 1] = describe(model, p);
		ok = weft__lives_measure(&w, p, &lives[p - 1].time);
	}
	if (ok)
		follow(model, lives, way);
	ok = ok && group(stats, model, lives, model->promise_count - 1);
	weft__lives_finish(&w);
	free(lives);
	free(way);
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
