/* life.c: where each promise spent its time.  SPDX-License-Identifier: ISC */
#include "analysis/life.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/sort.h"
#include "model/kernel.h"

static int compare_interval(const void *a, const void *b)
{
	const struct weft__interval *x = a, *y = b;
	return WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->end_ns, y->end_ns);
}

/* A chain may be as long as the trace and may come back to where it was: each promise is walked over twice at most. */
static void find_ends(struct weft__lives *w)
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

static void sort_links(struct weft__lives *w)
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
static size_t find_ready(struct weft__lives *w, uint32_t p)
{
	const struct weft_model *m = w->model;
	const struct weft_run *runs = &m->runs[m->promises[p].runs], *runs_end = &m->runs[m->promises[p + 1].runs];
	const struct weft_run *run = runs;
	int64_t acted_ns = m->promises[p].start_ns; // when it last ran or read
	/* Others run for what a connection reads, or for one of several inputs: that does not make it ready. */
	const uint16_t kind = m->promises[p].kind;
	const bool is_idle = weft_kind_has(kind, WEFT_TRAIT_CONNECTION) || weft_kind_has(kind, WEFT_TRAIT_GATHERS);
	size_t count = 0;
	for (uint32_t i = w->link_begin[p]; i < w->link_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[w->links[i]];
		for (; run < runs_end && run->start_ns < link->time_ns; run++)
			acted_ns = weft_max_ns(acted_ns, weft_min_ns(run->end_ns, link->time_ns));
		if (link->kind == WEFT_LINK_READ) {
			int64_t from_ns = weft_max_ns(weft_min_ns(w->ends[link->to], link->time_ns), acted_ns);
			if (from_ns < link->time_ns)
				w->ready[count++] = (struct weft__interval){from_ns, link->time_ns};
			acted_ns = weft_max_ns(acted_ns, link->time_ns);
		} else if (link->kind == WEFT_LINK_AWAIT && w->ends[link->to] != INT64_MAX) {
			int64_t from_ns = weft_max_ns(w->ends[link->to], link->time_ns);
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
			int64_t to_ns = next + low < runs_end ? next[low].start_ns : is_idle ? from_ns : m->promises[p].end_ns;
			if (from_ns < to_ns)
				w->ready[count++] = (struct weft__interval){from_ns, to_ns};
		}
	}
	return count;
}

/* The time that `ready` covers within the promise's life and outside its runs. */
static int64_t sum_ready(struct weft__lives *w, uint32_t p, size_t count)
{
	const struct weft_model *m = w->model;
	const struct weft_run *run = &m->runs[m->promises[p].runs], *runs_end = &m->runs[m->promises[p + 1].runs];
	int64_t covered_ns = m->promises[p].start_ns, sum = 0;
	if (count > 1)
		weft_sort(w->ready, count, sizeof *w->ready, compare_interval);
	for (size_t i = 0; i < count; i++) {
		int64_t from_ns = weft_max_ns(w->ready[i].start_ns, covered_ns);
		int64_t to_ns = weft_min_ns(w->ready[i].end_ns, m->promises[p].end_ns);
		if (from_ns >= to_ns)
			continue;
		sum += to_ns - from_ns;
		covered_ns = to_ns;
		while (run < runs_end && run->end_ns <= from_ns)
			run++;
		for (const struct weft_run *r = run; r < runs_end && r->start_ns < to_ns; r++)
			sum -= weft_min_ns(r->end_ns, to_ns) - weft_max_ns(r->start_ns, from_ns);
	}
	return sum;
}

bool weft__lives_measure(struct weft__lives *w, uint32_t p, struct weft__life *out)
{
	const struct weft_model *m = w->model;
	const struct weft_promise *promise = &m->promises[p];
	size_t links = w->link_begin[p + 1] - w->link_begin[p];
	if (links > w->ready_capacity) {
		struct weft__interval *grown = realloc(w->ready, 2 * links * sizeof *grown);
		if (!grown)
			return false;
		w->ready = grown;
		w->ready_capacity = 2 * links;
	}
	struct weft__life life = {0};
	for (uint32_t r = promise->runs; r < promise[1].runs; r++)
		life.running_ns += weft_max_ns(
		    0, weft_min_ns(m->runs[r].end_ns, promise->end_ns) - weft_max_ns(m->runs[r].start_ns, promise->start_ns));
	life.off_ns = weft_kernel_promise_off_ns(m, p, promise->start_ns, promise->end_ns);
	life.ready_ns = sum_ready(w, p, find_ready(w, p));
	life.waiting_ns = weft_max_ns(0, promise->end_ns - promise->start_ns - life.running_ns - life.ready_ns);
	*out = life;
	return true;
}

bool weft__lives_begin(struct weft__lives *w, const struct weft_model *model)
{
	*w = (struct weft__lives){.model = model};
	w->ends = malloc(model->promise_count * sizeof *w->ends);
	w->link_begin = calloc(model->promise_count + 1, sizeof *w->link_begin);
	w->links = malloc((model->link_count + 1) * sizeof *w->links);
	if (!w->ends || !w->link_begin || !w->links)
		return false;
	find_ends(w);
	sort_links(w);
	return true;
}

void weft__lives_finish(struct weft__lives *w)
{
	free(w->ends);
	free(w->link_begin);
	free(w->links);
	free(w->ready);
}
