/* stats.c: what promises spent their time with.  SPDX-License-Identifier: ISC */
#include "analysis/stats.h"

#include <stdlib.h>
#include <string.h>

struct interval {
	int64_t start_ns, end_ns;
};

/* Where a promise spent its time, and to which group it belongs. */
struct life {
	int64_t waiting_ns, ready_ns, running_ns;
	uint32_t label, site;
	uint16_t kind;
	uint8_t end;
	uint32_t promise;
};

struct work {
	const struct weft_model *model;
	int64_t *ends;        /* by promise: when what it became came to its end; INT64_MAX: not in this trace */
	uint32_t *link_begin; /* by promise: its links as `from` are links[link_begin[p]] up to links[link_begin[p + 1]] */
	uint32_t *links;      /* indices into model->links, in time order */
	struct interval *ready;
	size_t ready_capacity;
};

static int compare_interval(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int64_t max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t min_ns(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* A chain may be as long as the trace and may come back to where it was: each promise is walked over twice at most. */
static void find_ends(struct work *w)
{
	enum { UNKNOWN = -1, WALKED = -2 };
	const struct weft_model *m = w->model;
	for (size_t i = 0; i < m->promise_count; i++)
		w->ends[i] = UNKNOWN;
	for (size_t i = 0; i < m->promise_count; i++) {
		size_t p = i;
		while (w->ends[p] == UNKNOWN && m->promises[p].end == WEFT_END_BECAME && m->promises[p].became != WEFT_NONE) {
			w->ends[p] = WALKED;
			p = m->promises[p].became;
		}
		int64_t end_ns = w->ends[p];
		if (end_ns == WALKED) {
			end_ns = INT64_MAX;
		} else if (end_ns == UNKNOWN) {
			const struct weft_promise *last = &m->promises[p];
			bool ended = last->end == WEFT_END_RESOLVED ||
				     (last->end == WEFT_END_FAILED && !(last->flags & WEFT_PROMISE_NEVER_RESOLVED));
			end_ns = w->ends[p] = ended ? last->end_ns : INT64_MAX;
		}
		for (p = i; w->ends[p] == WALKED; p = m->promises[p].became)
			w->ends[p] = end_ns;
	}
}

static void sort_links(struct work *w)
{
	const struct weft_model *m = w->model;
	for (size_t l = 0; l < m->link_count; l++)
		w->link_begin[m->links[l].from + 1]++;
	for (size_t p = 0; p < m->promise_count; p++)
		w->link_begin[p + 1] += w->link_begin[p];
	// Each begin is moved to its end while links are put, then all are moved back by one.
	for (size_t l = 0; l < m->link_count; l++)
		w->links[w->link_begin[m->links[l].from]++] = (uint32_t)l;
	memmove(w->link_begin + 1, w->link_begin, m->promise_count * sizeof *w->link_begin);
	w->link_begin[0] = 0;
}

/* The stretches in which p was ready, running or not, possibly overlapping; returns their number. */
static size_t find_ready(struct work *w, uint32_t p)
{
	const struct weft_model *m = w->model;
	const struct weft_run *runs = &m->runs[m->promises[p].runs], *runs_end = &m->runs[m->promises[p + 1].runs];
	const struct weft_run *run = runs;
	int64_t acted_ns = m->promises[p].start_ns; // when it last ran or read
	size_t count = 0;
	for (uint32_t i = w->link_begin[p]; i < w->link_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[w->links[i]];
		for (; run < runs_end && run->start_ns < link->time_ns; run++)
			acted_ns = max_ns(acted_ns, min_ns(run->end_ns, link->time_ns));
		if (link->kind == WEFT_LINK_READ) {
			int64_t from_ns = max_ns(min_ns(w->ends[link->to], link->time_ns), acted_ns);
			if (from_ns < link->time_ns)
				w->ready[count++] = (struct interval){from_ns, link->time_ns};
			acted_ns = max_ns(acted_ns, link->time_ns);
		} else if (link->kind == WEFT_LINK_AWAIT && w->ends[link->to] != INT64_MAX) {
			int64_t from_ns = max_ns(w->ends[link->to], link->time_ns);
			const struct weft_run *next = run;
			// The first run that begins once the awaited has ended; intervals are few between an await and that.
			size_t low = 0, high = (size_t)(runs_end - next);
			while (low < high) {
				size_t middle = low + (high - low) / 2;
				if (next[middle].start_ns < from_ns)
					low = middle + 1;
				else
					high = middle;
			}
			int64_t to_ns = next + low < runs_end ? next[low].start_ns : m->promises[p].end_ns;
			if (from_ns < to_ns)
				w->ready[count++] = (struct interval){from_ns, to_ns};
		}
	}
	return count;
}

/* The time that `ready` covers within the promise's life and outside its runs. */
static int64_t sum_ready(struct work *w, uint32_t p, size_t count)
{
	const struct weft_model *m = w->model;
	const struct weft_run *run = &m->runs[m->promises[p].runs], *runs_end = &m->runs[m->promises[p + 1].runs];
	int64_t covered_ns = m->promises[p].start_ns, sum = 0;
	qsort(w->ready, count, sizeof *w->ready, compare_interval);
	for (size_t i = 0; i < count; i++) {
		int64_t from_ns = max_ns(w->ready[i].start_ns, covered_ns);
		int64_t to_ns = min_ns(w->ready[i].end_ns, m->promises[p].end_ns);
		if (from_ns >= to_ns)
			continue;
		sum += to_ns - from_ns;
		covered_ns = to_ns;
		while (run < runs_end && run->end_ns <= from_ns)
			run++;
		for (const struct weft_run *r = run; r < runs_end && r->start_ns < to_ns; r++)
			sum -= min_ns(r->end_ns, to_ns) - max_ns(r->start_ns, from_ns);
	}
	return sum;
}

static int measure(struct work *w, uint32_t p, struct life *life)
{
	const struct weft_model *m = w->model;
	const struct weft_promise *promise = &m->promises[p];
	size_t links = w->link_begin[p + 1] - w->link_begin[p];
	if (links > w->ready_capacity) {
		struct interval *grown = realloc(w->ready, 2 * links * sizeof *grown);
		if (!grown)
			return WEFT_ENOMEM;
		w->ready = grown;
		w->ready_capacity = 2 * links;
	}
	life->promise = p;
	life->kind = promise->kind;
	life->end = promise->end;
	life->label = WEFT_NONE;
	for (uint32_t l = promise->labels; l < promise[1].labels && life->label == WEFT_NONE; l++)
		if (!m->labels[l].is_counter && m->labels[l].text != promise->failure)
			life->label = m->labels[l].text;
	life->site = life->label == WEFT_NONE ? promise->site : WEFT_NONE;
	life->running_ns = 0;
	for (uint32_t r = promise->runs; r < promise[1].runs; r++)
		life->running_ns +=
		    max_ns(0, min_ns(m->runs[r].end_ns, promise->end_ns) - max_ns(m->runs[r].start_ns, promise->start_ns));
	life->ready_ns = sum_ready(w, p, find_ready(w, p));
	life->waiting_ns = max_ns(0, promise->end_ns - promise->start_ns - life->running_ns - life->ready_ns);
	return WEFT_OK;
}

static int compare_life(const void *a, const void *b)
{
	const struct life *x = a, *y = b;
	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->promise > y->promise) - (x->promise < y->promise);
}

static struct weft_spread spread(int64_t *values, size_t count)
{
	qsort(values, count, sizeof *values, compare_ns);
	return (struct weft_spread){
	    values[(count * 50 + 99) / 100 - 1],
	    values[(count * 90 + 99) / 100 - 1],
	    values[(count * 99 + 99) / 100 - 1],
	    values[count - 1],
	};
}

/* One group: lives of the same label, site and kind.  `values` has room for count. */
static struct weft_stat sum_up(const struct life *lives, size_t count, int64_t *values)
{
	struct weft_stat stat = {.label = lives->label, .site = lives->site, .kind = lives->kind, .count = count};
	for (size_t i = 0; i < count; i++) {
		stat.failures += lives[i].end == WEFT_END_FAILED;
		stat.pending += lives[i].end == WEFT_END_PENDING;
		values[i] = lives[i].waiting_ns;
	}
	stat.waiting = spread(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = lives[i].ready_ns;
	stat.ready = spread(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = lives[i].running_ns;
	stat.running = spread(values, count);
	return stat;
}

static int compare_stat(const void *a, const void *b)
{
	const struct weft_stat *x = a, *y = b;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	// Numbers of texts and sites rise with their first use in the trace.
	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

/* Groups the lives; false when out of memory. */
static bool group(struct weft_stats *stats, struct life *lives, size_t count)
{
	qsort(lives, count, sizeof *lives, compare_life);
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
		stats->stats[stats->count++] = sum_up(&lives[begin], end - begin, values);
	}
	free(values);
	qsort(stats->stats, stats->count, sizeof *stats->stats, compare_stat);
	return true;
}

int weft_stats_create(struct weft_stats **out, const struct weft_model *model, struct weft_error *err)
{
	struct work w = {.model = model};
	struct life *lives = malloc(model->promise_count * sizeof *lives);
	struct weft_stats *stats = calloc(1, sizeof *stats);
	w.ends = malloc(model->promise_count * sizeof *w.ends);
	w.link_begin = calloc(model->promise_count + 1, sizeof *w.link_begin);
	w.links = malloc((model->link_count + 1) * sizeof *w.links);
	bool ok = lives && stats && w.ends && w.link_begin && w.links;
	if (ok) {
		find_ends(&w);
		sort_links(&w);
	}
	for (uint32_t p = 1; ok && p < model->promise_count; p++)
		ok = measure(&w, p, &lives[p - 1]) == WEFT_OK;
	ok = ok && group(stats, lives, model->promise_count - 1);
	free(w.ends);
	free(w.link_begin);
	free(w.links);
	free(w.ready);
	free(lives);
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
