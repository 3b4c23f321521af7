/* alive.c: what keeps a loop from returning.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"
#include "base/sort.h"

/* One that keeps the loop. */
struct keeper {
	bool is_endless; /* a handle, not a request that is on its way */
	uint32_t sort, promise;
};

static int compare_keepers(const void *a, const void *b)
{
	const struct keeper *x = a, *y = b;
	return WEFT_ORDER(x->is_endless, y->is_endless) ?: WEFT_ORDER(x->sort, y->sort) ?: WEFT_ORDER(x->promise, y->promise);
}

/* What a keeper waits for in turn: ", which waits for process 21 "cat"". */
static const char *waits_for(struct weft__finder *f, uint32_t p)
{
	uint32_t to = p;
	for (int steps = 0; steps < WEFT__LINES_KEPT && weft__waiting_count(&f->waiting, to) > 0; steps++)
		to = f->waiting.waits[f->waiting.begin[to]].to;
	return to == p ? "" : weft__finding_text(f, ", which waits for %s%s", weft__words_name(f, to), weft__words_at(f, to));
}

/* A line for each sort of keepers. */
static void list_keepers(struct weft__finder *f, const struct keeper *keepers, size_t count)
{
	const struct weft_promise *promises = f->model->promises;
	size_t lines = 0, shown = 0;
	for (size_t i = 0, end; i < count && lines < 2 * WEFT__LINES_KEPT; i = end, lines++) {
		uint32_t p = keepers[i].promise;
		for (end = i; end < count && keepers[end].sort == keepers[i].sort; end++)
			;
		shown += end - i;
		const char *since = promises[p].start_ns >= 0
					? weft__finding_text(f, ", started %s before the end",
					      weft__words_span(f, weft_model_until(f->model, p) - promises[p].start_ns))
					: "";
		if (end - i == 1)
			weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, promises[p].start_ns, p, "%s%s%s%s",
			    weft__words_name(f, p), weft__words_at(f, p), waits_for(f, p), since);
		else
			weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, promises[p].start_ns, p,
			    "%zu of the same sort, the first is %s%s%s%s", end - i, weft__words_name(f, p), weft__words_at(f, p),
			    waits_for(f, p), since);
	}
	weft__words_more(f, WEFT_EVIDENCE_CHAIN, count - shown, "");
}

static void tell_alive(struct weft__finder *f, uint32_t loop)
{
	const struct weft_model *m = f->model;
	size_t count = weft__waiting_count(&f->waiting, loop);
	if (count == 0) /* it runs until it is told to stop */
		return;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_ALIVE, loop, m->promises[loop].start_ns, weft_model_until(m, loop));
	struct keeper *keepers = finding ? weft__finding_alloc(f, count, sizeof *keepers) : NULL;
	if (!keepers)
		return;
	for (size_t i = 0; i < count; i++) {
		uint32_t p = f->waiting.waits[f->waiting.begin[loop] + i].to;
		keepers[i] = (struct keeper){weft_kind_has(m->promises[p].kind, WEFT_TRAIT_ENDLESS), f->sorts.of[p], p};
	}
	weft_sort(keepers, count, sizeof *keepers, compare_keepers);
	const char *name = weft__words_name(f, loop), *at = weft__words_at(f, loop);
	finding->weight = count;
	finding->root = keepers[0].promise;
	if (count == 1)
		finding->title = weft__finding_text(f, "%s%s has not returned, and sleeps; what keeps it is %s%s", name, at,
		    weft__words_name(f, keepers[0].promise), weft__words_at(f, keepers[0].promise));
	else
		finding->title = weft__finding_text(f, "%s%s has not returned, and sleeps; what keeps it is %s%s and %zu more",
		    name, at, weft__words_name(f, keepers[0].promise), weft__words_at(f, keepers[0].promise), count - 1);
	finding->next = "if it should return, close, stop or unreference these; if it serves for ever, all is well";
	list_keepers(f, keepers, count);
	weft__finding_doubt_part(f, loop, false);
	free(keepers);
}

/* By promise: whether anybody waits for it.  A loop that nobody waits for does not run: some are called turn by turn. */
static bool *find_awaited(struct weft__finder *f)
{
	const struct weft__waiting *w = &f->waiting;
	bool *awaited = weft__finding_alloc(f, f->model->promise_count + 1, sizeof *awaited);
	for (size_t i = 0; awaited && i < w->pending.count; i++)
		for (uint32_t j = w->begin[w->pending.items[i]]; j < w->begin[w->pending.items[i] + 1]; j++)
			awaited[w->waits[j].to] = true;
	return awaited;
}

void weft__find_alive(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	bool any = false;
	for (int kind = 0; kind < 64; kind++)
		any |= weft_kind_has((uint16_t)kind, WEFT_TRAIT_LOOP) && weft__waiting_any(&f->waiting, (enum weft_kind)kind);
	bool *awaited = any ? find_awaited(f) : NULL;
	for (size_t i = 0; awaited && i < f->waiting.pending.count && weft__finding_goes_on(f, i, f->waiting.pending.count);
	     i++) {
		uint32_t p = f->waiting.pending.items[i];
		if (awaited[p] && weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP) && f->at_rest[m->promises[p].stream])
			tell_alive(f, p);
	}
	free(awaited);
}
