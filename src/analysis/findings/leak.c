/* leak.c: promises of one sort that only ever become more; numbers in their labels do not make them different.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "base/words.h"

enum { QUARTERS = 4, ENOUGH_TO_EACH = 8 };

/* Sorts whose labels have one shape, and what is pending of them at the end. */
struct heap {
	uint32_t sorts, ended, pending; /* may it leak or not */
	int64_t first_ns, last_ns;      /* creations of what may leak */
	uint32_t alive, first, last;
	uint32_t
	    seen; /* those whose creation is in the trace: a ring tells of others that are pending, of no other that has ended */
	uint32_t quarter[QUARTERS]; /* how many were created in each quarter of the time between the two */
	uint32_t old, used;         /* those of the first half, and how many of them did something in the last quarter */
	bool may_serve;             /* each of them may be there for a client that is connected */
};

/* A ring has forgotten it, and a state dump tells since when it is pending. */
static bool is_old(const struct weft__finder *f, uint32_t p)
{
	return weft__lacks_only_past_of(f->lacks, f->model, p);
}

/* Where all callbacks run as one, as in a handle of uvloop, that one never ends and stops nothing. */
static bool only_serves(const struct weft_model *m, uint32_t maker)
{
	return weft_kind_has(m->promises[maker].kind, WEFT_TRAIT_ENDLESS) &&
	       weft_kind_has(m->promises[maker].kind, WEFT_TRAIT_OUTSIDE);
}

/* A timer that nobody but a loop waits for, and whose maker has ended: who should stop it? */
static bool is_forgotten(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const struct weft_promise *promise = &m->promises[p];
	uint32_t maker = promise->created_by;
	if (promise->kind != WEFT_KIND_TIMER || promise->end != WEFT_END_PENDING || (promise->start_ns < 0 && !is_old(f, p)) ||
	    promise->flags & WEFT_PROMISE_START_UNKNOWN)
		return false;
	if (!(promise->flags & WEFT_PROMISE_ORPHAN) &&
	    (maker == WEFT_NONE || maker == WEFT_SYSTEM || (f->ties.ended_ns[maker] == WEFT_NEVER && !only_serves(m, maker))))
		return false;
	for (uint32_t i = f->ties.in_begin[p]; i < f->ties.in_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind == WEFT_LINK_AWAIT && f->ties.ended_ns[link->from] == WEFT_NEVER &&
		    !weft_kind_has(m->promises[link->from].kind, WEFT_TRAIT_LOOP))
			return false;
	}
	return true;
}

static bool may_leak(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	if (is_forgotten(f, p))
		return true;
	/* What waits for something that hangs was told of with that.  Who asked to be connected may close that, whatever comes.
	 */
	return !f->told[f->chains.root[p]] && promise->end == WEFT_END_PENDING &&
	       !(promise->flags & WEFT_PROMISE_START_UNKNOWN) && (promise->start_ns >= 0 || is_old(f, p)) &&
	       !weft_kind_has(promise->kind, WEFT_TRAIT_ENDLESS | WEFT_TRAIT_OUTSIDE) &&
	       (f->chains.verdict[p] != WEFT_VERDICT_OUTSIDE || promise->flags & (WEFT_PROMISE_CONNECTED | WEFT_PROMISE_SENT));
}

/* A connection that was made, or a timer whose maker goes on, may be needed as long as a client is connected. */
static bool may_serve(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	const uint32_t maker = promise->created_by;
	return promise->flags & WEFT_PROMISE_CONNECTED ||
	       (promise->kind == WEFT_KIND_TIMER && maker != WEFT_NONE && f->ties.ended_ns[maker] == WEFT_NEVER);
}

/* How many connections others have made and not closed. */
static uint32_t count_clients(const struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	uint32_t count = 0;
	for (size_t i = 0; i < f->waiting.pending.count; i++) {
		const struct weft_promise *promise = &m->promises[f->waiting.pending.items[i]];
		count += weft_kind_has(promise->kind, WEFT_TRAIT_CONNECTION) && !(promise->flags & WEFT_PROMISE_CONNECTED);
	}
	return count;
}

/* They come all the time and none, or hardly any, goes or does anything. */
static bool leaks(const struct weft__finder *f, const struct heap *heap, uint32_t clients)
{
	if (heap->alive < f->options.leak_count || heap->ended > heap->seen / 10 || heap->used > heap->old / 2)
		return false;
	if (heap->may_serve && heap->alive / 2 <= clients)
		return false;
	/* Who is connected to many others, as to peers, is so by trade. */
	if (f->model->promises[heap->first].flags & WEFT_PROMISE_CONNECTED && heap->sorts > heap->alive / ENOUGH_TO_EACH)
		return false;
	/* A machine that is busy elsewhere leaves a gap; a burst is no leak. */
	int quiet = 0;
	for (int q = 0; q < QUARTERS; q++) {
		quiet += heap->quarter[q] < heap->alive / (4 * QUARTERS);
		if (quiet > 1 || heap->quarter[q] > heap->alive / QUARTERS * (QUARTERS - 1))
			return false;
	}
	return heap->last_ns - heap->first_ns >= f->model->end_ns / 4;
}

static void tell_leak(struct weft__finder *f, const struct heap *heap)
{
	const struct weft_model *m = f->model;
	uint32_t p = heap->first, root = f->chains.root[p], ended = heap->ended;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_LEAK, p, heap->first_ns, m->end_ns);
	if (!finding)
		return;
	const char *name = weft__words_group(f, heap->first, heap->sorts == 1), *at = weft__words_at(f, p);
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
	if (heap->seen < heap->alive && heap->seen < f->options.leak_count)
		weft__finding_doubt(f, "the ring was overwritten: how many ended before is not known");
	if (root != p && weft__lacks_of(f->lacks, m, p)->cut)
		weft__finding_doubt(f, "the first waits for another promise, and might have gone on with it");
}

/* A timer that its program sets anew is in use, though it may never come. */
static bool is_set_anew(const struct weft_model *m, uint32_t p)
{
	static const char said[] = WEFT_SAYS_STARTED_AGAIN;
	enum { LABELS_LOOKED_AT = 8 };
	const uint32_t begin = m->promises[p].labels, end = m->promises[p + 1].labels;
	for (uint32_t i = begin; i < end && i - begin < LABELS_LOOKED_AT; i++) {
		const struct weft_str text = weft_model_text(m, m->labels[i].text);
		if (text.len == sizeof said - 1 && !memcmp(text.ptr, said, text.len))
			return true;
	}
	return false;
}

static void count_in_time(const struct weft__finder *f, struct heap *heap, uint32_t p)
{
	int64_t span_ns = heap->last_ns - heap->first_ns, at_ns = f->model->promises[p].start_ns - heap->first_ns;
	if (span_ns <= 0)
		return;
	int64_t quarter = (int64_t)((double)at_ns / (double)span_ns * QUARTERS);
	heap->quarter[quarter < 0 ? 0 : quarter < QUARTERS ? quarter : QUARTERS - 1]++;
	if (quarter >= QUARTERS / 2)
		return;
	heap->old++;
	heap->used += weft__finding_last_deed(f, p) > f->model->end_ns - (f->model->end_ns - heap->first_ns) / QUARTERS ||
		      is_set_anew(f->model, p);
}

static void count_alive(struct weft__finder *f, struct heap *heaps, const uint32_t *first)
{
	const struct weft_model *m = f->model;
	for (uint32_t s = 0; s < f->sorts.items.count; s++) {
		const struct weft__sort *sort = &f->sorts.items.items[s];
		struct heap *heap = &heaps[first[s]];
		heap->sorts += sort->named;
		heap->pending += sort->named ? sort->pending : 0;
		heap->ended += sort->count - sort->pending;
	}
	for (size_t i = 0; i < f->waiting.pending.count && weft__finding_goes_on(f, i, f->waiting.pending.count); i++) {
		uint32_t p = f->waiting.pending.items[i];
		struct heap *heap = &heaps[first[f->sorts.of[p]]];
		if (heap->pending < f->options.leak_count || !may_leak(f, p))
			continue;
		const int64_t start_ns = m->promises[p].start_ns;
		if (heap->alive++ == 0 || start_ns < heap->first_ns) {
			heap->first = p;
			heap->first_ns = start_ns;
		}
		if (heap->alive == 1 || start_ns >= heap->last_ns) {
			heap->last = p;
			heap->last_ns = start_ns;
		}
		heap->seen += !is_old(f, p);
		heap->may_serve |= may_serve(f, p);
	}
	for (size_t i = 0; i < f->waiting.pending.count && weft__finding_goes_on(f, i, f->waiting.pending.count); i++) {
		uint32_t p = f->waiting.pending.items[i];
		struct heap *heap = &heaps[first[f->sorts.of[p]]];
		if (heap->alive >= f->options.leak_count && may_leak(f, p))
			count_in_time(f, heap, p);
	}
}

void weft__find_leak(struct weft__finder *f)
{
	size_t count = f->sorts.items.count;
	if (f->waiting.pending.count < f->options.leak_count)
		return;
	struct heap *heaps = weft__finding_alloc(f, count, sizeof *heaps);
	const uint32_t *first = weft__finding_shapes(f);
	if (heaps && first) {
		const uint32_t clients = count_clients(f);
		count_alive(f, heaps, first);
		for (uint32_t s = 0; s < count && weft__finding_goes_on(f, s, count); s++) {
			if (first[s] != s || !leaks(f, &heaps[s], clients))
				continue;
			/* What waits for others that leak is told of with them. */
			uint32_t root = f->chains.root[heaps[s].last], other = first[f->sorts.of[root]];
			if (other == s || !leaks(f, &heaps[other], clients))
				tell_leak(f, &heaps[s]);
		}
	}
	free(heaps);
}
