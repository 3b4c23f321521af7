/* ties.c: links by promise, and what became of what.  SPDX-License-Identifier: ISC */
#include "analysis/ties.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

static const uint32_t UNKNOWN = WEFT_NONE, WALKED = WEFT_NONE - 1; /* numbers of no promise */

/* What `first`, and those that it became, were at that time.  A chain may be as long as the trace and may come back to where it
 * was: each promise is walked over twice at most. */
static void follow(const struct weft_model *m, int64_t time_ns, uint32_t *now, uint32_t first)
{
	uint32_t p = first;
	while (now[p] == UNKNOWN && m->promises[p].end == WEFT_END_BECAME && m->promises[p].became != WEFT_NONE &&
	       m->promises[p].end_ns <= time_ns) {
		now[p] = WALKED;
		p = m->promises[p].became;
	}
	const uint32_t last = now[p] < WALKED ? now[p] : p;
	if (now[p] == UNKNOWN)
		now[p] = p;
	for (p = first; now[p] == WALKED; p = m->promises[p].became)
		now[p] = last;
}

bool weft_ties_follow(const struct weft_model *m, int64_t time_ns, uint32_t *now, struct weft__watch *watch)
{
	memset(now, 0xff, m->promise_count * sizeof *now); /* UNKNOWN */
	for (uint32_t p = 0; p < m->promise_count; p++) {
		if (!weft__watch_goes_on(watch, p, m->promise_count))
			return false;
		follow(m, time_ns, now, p);
	}
	return true;
}

static bool find_ends(struct weft_ties *ties, struct weft__watch *watch)
{
	const struct weft_model *m = ties->model;
	memset(ties->now, 0xff, m->promise_count * sizeof *ties->now);
	for (uint32_t p = 0; p < m->promise_count; p++) {
		follow(m, INT64_MAX, ties->now, p);
		const struct weft_promise *last = &m->promises[ties->now[p]];
		bool ended = weft_has_ended(last);
		ties->ended_ns[p] = ended ? last->end_ns : WEFT_NEVER;
		if (ended && last->end == WEFT_END_FAILED && ties->now[p] == p) {
			uint32_t *added = weft_vec_push(&ties->failed);
			if (!added)
				return false;
			*added = p;
		}
		if (!weft__watch_goes_on(watch, p, m->promise_count))
			return false;
	}
	return true;
}

/* By promise, in one direction; NULL where that is not wanted. */
struct list {
	uint32_t *begin, *links;
};

static bool list_alloc(struct list *list, const struct weft_model *m)
{
	list->begin = calloc(m->promise_count + 2, sizeof *list->begin);
	list->links = malloc((m->link_count + 1) * sizeof *list->links);
	return list->begin && list->links;
}

/* Counting sort, of both directions at once: links are many, and come past twice only.  While they are put, begin[p + 1] is where
 * the next of p goes; after that, where those of p + 1 begin. */
static bool sort_links(const struct weft_model *m, const struct list *out, const struct list *in, struct weft__watch *watch)
{
	for (size_t l = 0; l < m->link_count; l++) {
		if (!weft__watch_goes_on(watch, l, m->link_count))
			return false;
		if (out->begin)
			out->begin[m->links[l].from + 2]++;
		if (in->begin)
			in->begin[m->links[l].to + 2]++;
	}
	for (size_t p = 0; p < m->promise_count; p++) {
		if (out->begin)
			out->begin[p + 1] += out->begin[p];
		if (in->begin)
			in->begin[p + 1] += in->begin[p];
	}
	for (size_t l = 0; l < m->link_count; l++) {
		if (!weft__watch_goes_on(watch, l, m->link_count))
			return false;
		if (out->begin)
			out->links[out->begin[m->links[l].from + 1]++] = (uint32_t)l;
		if (in->begin)
			in->links[in->begin[m->links[l].to + 1]++] = (uint32_t)l;
	}
	return true;
}

static bool list_links(struct weft_ties *ties, enum weft_ties_lists lists, struct weft__watch *watch)
{
	struct list out = {0}, in = {0};
	bool ok = (!(lists & WEFT_TIES_OUT) || list_alloc(&out, ties->model)) &&
		  (!(lists & WEFT_TIES_IN) || list_alloc(&in, ties->model));
	ties->out_begin = out.begin;
	ties->out = out.links;
	ties->in_begin = in.begin;
	ties->in = in.links;
	return ok && (!(out.begin || in.begin) || sort_links(ties->model, &out, &in, watch));
}

static bool list_blocks(struct weft_ties *ties)
{
	const struct weft_model *m = ties->model;
	ties->ran = malloc((m->promise_count / WEFT_TIES_BLOCK + 1) * sizeof *ties->ran);
	for (size_t p = 0; ties->ran && p < m->promise_count; p += WEFT_TIES_BLOCK) {
		struct weft_run *ran = &ties->ran[p / WEFT_TIES_BLOCK];
		size_t next = p + WEFT_TIES_BLOCK < m->promise_count ? p + WEFT_TIES_BLOCK : m->promise_count;
		*ran = (struct weft_run){INT64_MAX, INT64_MIN};
		for (uint32_t r = m->promises[p].runs; r < m->promises[next].runs; r++) {
			ran->start_ns = m->runs[r].start_ns < ran->start_ns ? m->runs[r].start_ns : ran->start_ns;
			ran->end_ns = m->runs[r].end_ns > ran->end_ns ? m->runs[r].end_ns : ran->end_ns;
		}
	}
	return ties->ran != NULL;
}

int weft_ties_init(struct weft_ties *ties, const struct weft_model *model, enum weft_ties_lists lists, struct weft__watch *watch)
{
	*ties = (struct weft_ties){
	    .model = model,
	    .now = malloc(model->promise_count * sizeof *ties->now),
	    .ended_ns = malloc(model->promise_count * sizeof *ties->ended_ns),
	};
	bool ok = ties->now && ties->ended_ns && find_ends(ties, watch);
	ok = ok && list_links(ties, lists, watch) && (!(lists & WEFT_TIES_RAN) || list_blocks(ties));
	if (ok)
		return WEFT_OK;
	weft_ties_finish(ties);
	return watch && watch->called_off ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft_ties_finish(struct weft_ties *ties)
{
	free(ties->now);
	free(ties->ended_ns);
	free(ties->out_begin);
	free(ties->out);
	free(ties->in_begin);
	free(ties->in);
	free(ties->ran);
	weft_vec_free(&ties->failed);
	*ties = (struct weft_ties){0};
}

uint32_t weft_run_before(const struct weft_model *model, uint32_t p, int64_t time_ns)
{
	uint32_t first = model->promises[p].runs;
	size_t from = WEFT_FIRST(r, first, model->promises[p + 1].runs, model->runs[r].start_ns >= time_ns);
	return from > first ? (uint32_t)from - 1 : WEFT_NONE;
}

size_t weft_link_from(const struct weft_model *model, int64_t time_ns)
{
	return WEFT_FIRST(l, 0, model->link_count, model->links[l].time_ns >= time_ns);
}

size_t weft_sleep_from(const struct weft_model *model, int64_t time_ns)
{
	return WEFT_FIRST(s, 0, model->sleep_count, model->sleeps[s].start_ns >= time_ns);
}

uint32_t weft_first_label(const struct weft_model *model, uint32_t p)
{
	return weft_model_name_text(model, p);
}
