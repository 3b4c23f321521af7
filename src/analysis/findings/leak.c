/* leak.c: promises of one sort that only ever become more.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"

enum { QUARTERS = 4 };

/* Those of one sort that are pending at the end. */
struct heap {
	int64_t first_ns, last_ns; /* their creations */
	uint32_t alive, first, last;
	uint32_t quarter[QUARTERS]; /* how many were created in each quarter of the time between the two */
};

static bool may_leak(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return promise->end == WEFT_END_PENDING && !(promise->flags & WEFT_PROMISE_START_UNKNOWN) && promise->start_ns >= 0 &&
	       !weft_kind_has(promise->kind, WEFT_TRAIT_ENDLESS | WEFT_TRAIT_OUTSIDE) &&
	       f->chains.verdict[p] != WEFT_VERDICT_OUTSIDE;
}

/* What alone can leak: most sorts cannot, and their promises need not be counted. */
static bool is_suspect(const struct weft__finder *f, const struct weft__sort *sort)
{
	return sort->named && sort->pending >= f->options.leak_count;
}

/* They come all the time and none, or hardly any, goes. */
static bool leaks(const struct weft__finder *f, const struct heap *heaps, uint32_t sort)
{
	const struct heap *heap = &heaps[sort];
	const struct weft__sort *all = &f->sorts.items.items[sort];
	if (!is_suspect(f, all) || heap->alive < f->options.leak_count || all->count - all->pending > heap->alive / 10)
		return false;
	for (int q = 0; q < QUARTERS; q++)
		if (heap->quarter[q] < heap->alive / (2 * QUARTERS))
			return false;
	return heap->last_ns - heap->first_ns >= f->model->end_ns / 4;
}

static void tell_leak(struct weft__finder *f, const struct heap *heap)
{
	const struct weft_model *m = f->model;
	uint32_t p = heap->first, root = f->chains.root[p];
	const struct weft__sort *sort = &f->sorts.items.items[f->sorts.of[p]];
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_LEAK, p, heap->first_ns, m->end_ns);
	if (!finding)
		return;
	uint32_t ended = sort->count - sort->pending;
	const char *name = weft__words_sort(f, p), *at = weft__words_at(f, p);
	const char *every = weft__words_span(f, (heap->last_ns - heap->first_ns) / (heap->alive - 1));
	finding->weight = heap->alive;
	finding->verdict = f->chains.verdict[p];
	finding->title =
	    ended == 0
		? weft__finding_text(f,
		      "%" PRIu32 " promises %s%s are pending at the end: a new one came every %s, and none of them ever ended",
		      heap->alive, name, weft_first_label(m, p) == WEFT_NONE ? "" : at, every)
		: weft__finding_text(f,
		      "%" PRIu32 " promises %s%s are pending at the end: a new one came every %s, and only %" PRIu32 " ended",
		      heap->alive, name, weft_first_label(m, p) == WEFT_NONE ? "" : at, every, ended);
	finding->next = weft__finding_text(f, "find out who should end them, beginning where they are created%s", at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, heap->first_ns, p, "%s creates the first, %s%s",
	    weft__words_name(f, m->promises[p].created_by), weft__words_name(f, p), at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, heap->last_ns, heap->last, "%s creates the last, %s",
	    weft__words_name(f, m->promises[heap->last].created_by), weft__words_name(f, heap->last));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "new ones in each quarter of that time: %" PRIu32 ", %" PRIu32 ", %" PRIu32 " and %" PRIu32 "; %" PRIu32
	    " ended in all",
	    heap->quarter[0], heap->quarter[1], heap->quarter[2], heap->quarter[3], ended);
	if (root != p)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, m->promises[root].start_ns, root,
		    "in the end the first waits for %s%s", weft__words_name(f, root), weft__words_at(f, root));
}

static bool any_suspect(const struct weft__finder *f)
{
	for (size_t s = 0; s < f->sorts.items.count; s++)
		if (is_suspect(f, &f->sorts.items.items[s]))
			return true;
	return false;
}

static void count_alive(struct weft__finder *f, struct heap *heaps)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0; i < f->waiting.pending.count && weft__finding_goes_on(f, i, f->waiting.pending.count); i++) {
		uint32_t p = f->waiting.pending.items[i];
		struct heap *heap = &heaps[f->sorts.of[p]];
		if (!may_leak(f, p))
			continue;
		if (heap->alive++ == 0) {
			heap->first = p;
			heap->first_ns = m->promises[p].start_ns;
		}
		heap->last = p;
		heap->last_ns = m->promises[p].start_ns;
	}
	for (size_t i = 0; i < f->waiting.pending.count && weft__finding_goes_on(f, i, f->waiting.pending.count); i++) {
		uint32_t p = f->waiting.pending.items[i];
		struct heap *heap = &heaps[f->sorts.of[p]];
		int64_t span_ns = heap->last_ns - heap->first_ns, at_ns = m->promises[p].start_ns - heap->first_ns;
		if (span_ns <= 0 || !may_leak(f, p))
			continue;
		int64_t quarter = (int64_t)((double)at_ns / (double)span_ns * QUARTERS);
		heap->quarter[quarter < 0 ? 0 : quarter < QUARTERS ? quarter : QUARTERS - 1]++;
	}
}

void weft__find_leak(struct weft__finder *f)
{
	size_t count = f->sorts.items.count;
	struct heap *heaps = any_suspect(f) ? weft__finding_alloc(f, count, sizeof *heaps) : NULL;
	if (!heaps)
		return;
	count_alive(f, heaps);
	for (uint32_t s = 0; s < count && weft__finding_goes_on(f, s, count); s++) {
		if (!leaks(f, heaps, s))
			continue;
		/* What waits for others that leak is told of with them. */
		uint32_t root = f->chains.root[heaps[s].last], root_sort = f->sorts.of[root];
		if (!f->told[root] && (root_sort == s || !leaks(f, heaps, root_sort)))
			tell_leak(f, &heaps[s]);
	}
	free(heaps);
}
