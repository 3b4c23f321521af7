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

/* A loop that has not returned.  Those of one sort and place, as the workers of a server have, are told of together. */
struct loop {
	uint32_t sort, site, promise;
	size_t keepers;
};

static int compare_loops(const void *a, const void *b)
{
	const struct loop *x = a, *y = b;
	return WEFT_ORDER(x->sort, y->sort) ?: WEFT_ORDER(x->site, y->site) ?: WEFT_ORDER(y->keepers, x->keepers)
						   ?: WEFT_ORDER(x->promise, y->promise);
}

/* Those that keep a loop, in order; the caller frees them.  NULL: no memory, which is noted. */
static struct keeper *sort_keepers(struct weft__finder *f, const struct loop *loop)
{
	const uint32_t begin = f->waiting.begin[loop->promise];
	struct keeper *keepers = weft__finding_alloc(f, loop->keepers, sizeof *keepers);
	for (size_t i = 0; keepers && i < loop->keepers; i++) {
		uint32_t p = f->waiting.waits[begin + i].to;
		keepers[i] = (struct keeper){weft_kind_has(f->model->promises[p].kind, WEFT_TRAIT_ENDLESS), f->sorts.of[p], p};
	}
	if (keepers)
		weft_sort(keepers, loop->keepers, sizeof *keepers, compare_keepers);
	return keepers;
}

/* timer 4 "every 1 s" (main.c:12) and 2 more */
static const char *words_of(struct weft__finder *f, const struct keeper *keepers, size_t count)
{
	const char *first = weft__words_name(f, keepers[0].promise), *at = weft__words_at(f, keepers[0].promise);
	return count == 1 ? weft__finding_text(f, "%s%s", first, at)
			  : weft__finding_text(f, "%s%s and %zu more", first, at, count - 1);
}

/* The first of `count` loops is the one that most keep. */
static void tell_alive(struct weft__finder *f, const struct loop *loops, size_t count)
{
	const struct weft_model *m = f->model;
	const uint32_t loop = loops[0].promise;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_ALIVE, loop, m->promises[loop].start_ns, weft_model_until(m, loop));
	struct keeper *keepers = finding ? sort_keepers(f, &loops[0]) : NULL;
	if (!keepers)
		return;
	const char *name = weft__words_name(f, loop), *at = weft__words_at(f, loop), *kept;
	finding->root = keepers[0].promise;
	kept = words_of(f, keepers, loops[0].keepers);
	if (count == 1)
		finding->title = weft__finding_text(f, "%s%s has not returned, and sleeps; what keeps it is %s", name, at, kept);
	else
		finding->title = weft__finding_text(f,
		    "%s%s and %zu more of its sort have not returned, and sleep; what keeps the first is %s", name, at, count - 1,
		    kept);
	finding->next = "if it should return, close, stop or unreference these; if it serves for ever, all is well";
	list_keepers(f, keepers, loops[0].keepers);
	free(keepers);
	for (size_t i = 0; i < count; i++)
		finding->weight += loops[i].keepers;
	for (size_t i = 1; i < count && i <= WEFT__LINES_KEPT && (keepers = sort_keepers(f, &loops[i])); i++) {
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, m->promises[loops[i].promise].start_ns, loops[i].promise,
		    "%s is kept by %s", weft__words_name(f, loops[i].promise), words_of(f, keepers, loops[i].keepers));
		free(keepers);
	}
	if (count > WEFT__LINES_KEPT + 1)
		weft__words_more(f, WEFT_EVIDENCE_NOTE, count - 1 - WEFT__LINES_KEPT, "");
	weft__finding_doubt_part(f, loop, false);
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
	struct loop *loops = awaited ? weft__finding_alloc(f, f->waiting.pending.count + 1, sizeof *loops) : NULL;
	size_t count = 0;
	for (size_t i = 0; loops && i < f->waiting.pending.count && weft__finding_goes_on(f, i, f->waiting.pending.count); i++) {
		const uint32_t p = f->waiting.pending.items[i];
		const size_t keepers = weft__waiting_count(&f->waiting, p);
		/* One that nothing keeps runs until it is told to stop. */
		if (awaited[p] && weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP) && f->at_rest[m->promises[p].stream] &&
		    keepers)
			loops[count++] = (struct loop){f->sorts.of[p], m->promises[p].site, p, keepers};
	}
	if (count > 0)
		weft_sort(loops, count, sizeof *loops, compare_loops);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && loops[end].sort == loops[i].sort && loops[end].site == loops[i].site; end++)
			;
		tell_alive(f, &loops[i], end - i);
	}
	free(loops);
	free(awaited);
}
