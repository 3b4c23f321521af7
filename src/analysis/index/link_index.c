/* link_index.c: indexes links by promise, and finds the promise that each promise became.  SPDX-License-Identifier: ISC */
#include "analysis/index/link_index.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/index/account.h"
#include "base/search.h"

static const uint32_t UNKNOWN = WEFT_NONE, WALKED = WEFT_NONE - 1; /* numbers that no promise has */

/* Sets final[] as of time_ns for the promise `first` and for the promises that it became.  A chain of promises that became each
 * other may be as long as the trace, and may be a cycle: each promise is visited at most twice. */
static void follow_successors(const struct weft_model *m, int64_t time_ns, uint32_t *final, uint32_t first)
{
	uint32_t p = first;
	while (final[p] == UNKNOWN && m->promises[p].end == WEFT_END_BECAME && m->promises[p].became != WEFT_NONE &&
	       m->promises[p].end_ns <= time_ns) {
		final[p] = WALKED;
		p = m->promises[p].became;
	}
	const uint32_t last = final[p] < WALKED ? final[p] : p;
	if (final[p] == UNKNOWN)
		final[p] = p;
	for (p = first; final[p] == WALKED; p = m->promises[p].became)
		final[p] = last;
}

bool weft_link_index_successors_at(
    const struct weft_model *m, int64_t time_ns, uint32_t *final, struct weft__cancel_token *cancel)
{
	memset(final, 0xff, m->promise_count * sizeof *final); /* UNKNOWN */
	for (uint32_t p = 0; p < m->promise_count; p++) {
		if (!weft__cancel_token_may_continue(cancel, p, m->promise_count))
			return false;
		follow_successors(m, time_ns, final, p);
	}
	return true;
}

static bool find_ends(struct weft_link_index *link_index, struct weft__cancel_token *cancel)
{
	const struct weft_model *m = link_index->model;
	memset(link_index->final, 0xff, m->promise_count * sizeof *link_index->final);
	for (uint32_t p = 0; p < m->promise_count; p++) {
		follow_successors(m, INT64_MAX, link_index->final, p);
		const struct weft_promise *last = &m->promises[link_index->final[p]];
		bool ended = weft_has_ended(last);
		link_index->ended_ns[p] = ended ? last->end_ns : WEFT_NEVER;
		if (ended && last->end == WEFT_END_FAILED && link_index->final[p] == p) {
			uint32_t *added = weft_vec_push(&link_index->failed);
			if (!added)
				return false;
			*added = p;
		}
		if (!weft__cancel_token_may_continue(cancel, p, m->promise_count))
			return false;
	}
	return true;
}

/* Numbers of links grouped by promise, in one direction; NULL if the caller does not want them. */
struct list {
	uint32_t *begin, *links;
};

static bool alloc_list(struct list *list, const struct weft_model *m)
{
	list->begin = calloc(m->promise_count + 2, sizeof *list->begin);
	list->links = malloc((m->link_count + 1) * sizeof *list->links);
	return list->begin && list->links;
}

/* Fills the lists of both directions by one counting sort with two passes over the links.  During the second pass begin[p + 1]
 * is the position of p's next link; afterwards it is the start of the links of p + 1. */
static bool sort_links(
    const struct weft_model *m, const struct list *out, const struct list *in, struct weft__cancel_token *cancel)
{
	for (size_t l = 0; l < m->link_count; l++) {
		if (!weft__cancel_token_may_continue(cancel, l, m->link_count))
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
		if (!weft__cancel_token_may_continue(cancel, l, m->link_count))
			return false;
		if (out->begin)
			out->links[out->begin[m->links[l].from + 1]++] = (uint32_t)l;
		if (in->begin)
			in->links[in->begin[m->links[l].to + 1]++] = (uint32_t)l;
	}
	return true;
}

static bool list_links(struct weft_link_index *link_index, enum weft_link_index_lists lists, struct weft__cancel_token *cancel)
{
	struct list out = {0}, in = {0};
	bool ok = (!(lists & WEFT_LINK_INDEX_OUT) || alloc_list(&out, link_index->model)) &&
		  (!(lists & WEFT_LINK_INDEX_IN) || alloc_list(&in, link_index->model));
	link_index->out_begin = out.begin;
	link_index->out = out.links;
	link_index->in_begin = in.begin;
	link_index->in = in.links;
	return ok && (!(out.begin || in.begin) || sort_links(link_index->model, &out, &in, cancel));
}

int weft_link_index_init(struct weft_link_index *link_index, const struct weft_model *model, enum weft_link_index_lists lists,
    struct weft__cancel_token *cancel)
{
	*link_index = (struct weft_link_index){
	    .model = model,
	    .final = malloc(model->promise_count * sizeof *link_index->final),
	    .ended_ns = malloc(model->promise_count * sizeof *link_index->ended_ns),
	};
	bool ok = link_index->final && link_index->ended_ns && find_ends(link_index, cancel);
	ok = ok && list_links(link_index, lists, cancel);
	if (ok && lists == WEFT_LINK_INDEX_ALL)
		ok = (link_index->accounts = weft_accounts_create(link_index));
	if (ok)
		return WEFT_OK;
	weft_link_index_finish(link_index);
	return cancel && cancel->was_cancelled ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft_link_index_finish(struct weft_link_index *link_index)
{
	free(link_index->final);
	free(link_index->ended_ns);
	free(link_index->out_begin);
	free(link_index->out);
	free(link_index->in_begin);
	free(link_index->in);
	weft_accounts_destroy(link_index->accounts);
	weft_vec_free(&link_index->failed);
	*link_index = (struct weft_link_index){0};
}

uint32_t weft_run_before(const struct weft_model *model, uint32_t p, int64_t time_ns)
{
	uint32_t first = model->promises[p].runs;
	size_t from = WEFT_FIND_FIRST(r, first, model->promises[p + 1].runs, model->runs[r].start_ns >= time_ns);
	return from > first ? (uint32_t)from - 1 : WEFT_NONE;
}

size_t weft_first_link_from(const struct weft_model *model, int64_t time_ns)
{
	return WEFT_FIND_FIRST(l, 0, model->link_count, model->links[l].time_ns >= time_ns);
}

size_t weft_first_sleep_from(const struct weft_model *model, int64_t time_ns)
{
	return WEFT_FIND_FIRST(s, 0, model->sleep_count, model->sleeps[s].start_ns >= time_ns);
}

uint32_t weft_first_label(const struct weft_model *model, uint32_t p)
{
	return weft_model_name_text(model, p);
}
