/* cycle.c: promises that wait for each other in a circle.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

/* Walks from a promise until it meets one for the second time: from there on it is the circle.  Returns its length. */
static uint32_t find_circle(const struct weft__finder *f, uint32_t first, uint32_t *start)
{
	/* Brent's way: no list of who was met. */
	uint32_t slow = first, fast = weft__waiting_next_in_circle(&f->waiting, first), power = 1, length = 1;
	for (; slow != fast; length++, fast = weft__waiting_next_in_circle(&f->waiting, fast))
		if (power == length) {
			slow = fast;
			power *= 2;
			length = 0;
		}
	slow = fast = first;
	for (uint32_t i = 0; i < length; i++)
		fast = weft__waiting_next_in_circle(&f->waiting, fast);
	for (; slow != fast; fast = weft__waiting_next_in_circle(&f->waiting, fast))
		slow = weft__waiting_next_in_circle(&f->waiting, slow);
	*start = slow;
	return length;
}

static const char *title(struct weft__finder *f, uint32_t start, uint32_t length)
{
	const char *name = weft__words_name(f, start), *at = weft__words_at(f, start);
	uint32_t second = weft__waiting_next_in_circle(&f->waiting, start);
	if (length == 1)
		return weft__finding_text(f, "%s%s waits for itself, so it can never end", name, at);
	if (length == 2)
		return weft__finding_text(f, "2 promises wait for each other, so neither can ever end: %s%s and %s%s", name, at,
		    weft__words_name(f, second), weft__words_at(f, second));
	return weft__finding_text(f,
	    "%u promises wait for each other in a circle, so none of them can ever end: %s%s, %s%s and %u more", length, name, at,
	    weft__words_name(f, second), weft__words_at(f, second), length - 2);
}

/* One that takes the first of its inputs may have had another way, of which the trace does not tell. */
static bool is_known(const struct weft__finder *f, uint32_t promise)
{
	return !weft_kind_has(f->model->promises[promise].kind, WEFT_TRAIT_FIRST) ||
	       weft__lacks_nothing_of(f->lacks, f->model, promise);
}

/* A lock in the circle, or a pool; WEFT_NONE: there is none. */
static uint32_t find_lock(const struct weft__finder *f, uint32_t start, uint32_t length)
{
	for (uint32_t p = start; length > 0; length--, p = weft__waiting_next_in_circle(&f->waiting, p))
		if (weft_kind_has(f->model->promises[p].kind, WEFT__TRAITS_HELD))
			return p;
	return WEFT_NONE;
}

static void list_members(struct weft__finder *f, uint32_t start, uint32_t length)
{
	uint32_t p = start;
	for (uint32_t i = 0; i < length; i++, p = weft__waiting_next_in_circle(&f->waiting, p)) {
		if (!is_known(f, p))
			weft__finding_doubt(f, f->doubt);
		weft__finding_doubt_part(f, p, false);
		if (i < WEFT__LINES_KEPT || i + WEFT__LINES_KEPT >= length)
			weft__words_chain_link(f, p,
			    i + 1 < length
				? weft__words_waits(f, p)
				: weft__finding_text(f, "%s %s again", weft__words_waits(f, p), weft__words_name(f, start)));
		else if (i == WEFT__LINES_KEPT)
			weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, WEFT_NO_TIME, WEFT_NONE, "... and so on, %u more ...",
			    length - 2 * WEFT__LINES_KEPT);
	}
}

static void list_blocked(struct weft__finder *f, const struct weft__blocked *blocked, size_t count)
{
	for (size_t i = 0; i < count && i < WEFT__LINES_KEPT; i++)
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, f->model->promises[blocked[i].promise].start_ns,
		    blocked[i].promise, "%s should resolve, and %s", weft__words_name(f, blocked[i].promise),
		    weft__waiting_in_circle(&f->waiting, blocked[i].promise) ? "is in the circle" : "waits for the circle");
	if (count > WEFT__LINES_KEPT)
		weft__words_more(f, WEFT_EVIDENCE_VICTIM, count - WEFT__LINES_KEPT, " that should resolve");
}

/* Who was created last closed a circle in which there are no locks. */
static uint32_t youngest(const struct weft__finder *f, uint32_t start, uint32_t length)
{
	const struct weft_promise *promises = f->model->promises;
	uint32_t last = start, p = start;
	for (; length > 0; length--, p = weft__waiting_next_in_circle(&f->waiting, p))
		last = promises[p].start_ns > promises[last].start_ns ? p : last;
	return last;
}

void weft__cycle_tell(struct weft__finder *f, uint32_t first)
{
	const struct weft__blocked *blocked;
	size_t blocked_count = weft__chains_blocked(&f->chains, first, &blocked);
	const struct weft_promise *promises = f->model->promises;
	uint32_t start, length = find_circle(f, first, &start), lock = find_lock(f, start, length);
	enum weft_finding_kind kind = lock == WEFT_NONE ? WEFT_FINDING_CYCLE : WEFT_FINDING_DEADLOCK;
	if (lock != WEFT_NONE)
		start = lock;
	struct weft_finding *finding =
	    weft__finding_begin(f, kind, start, promises[start].start_ns, weft_model_until(f->model, start));
	if (!finding)
		return;
	finding->verdict = WEFT_VERDICT_CYCLE;
	finding->weight = 1 + blocked_count;
	list_members(f, start, length);
	if (lock != WEFT_NONE) {
		weft__deadlock_words(f, finding, lock, length);
	} else {
		uint32_t last = youngest(f, start, length);
		finding->title = title(f, start, length);
		finding->start_ns = promises[last].start_ns;
		finding->next = length == 1 ? "what needs its result must not be a part of it: do that after it has ended"
					    : weft__finding_text(f,
						  "one of them must go on without waiting for the next; %s%s closed the circle",
						  weft__words_name(f, last), weft__words_at(f, last));
	}
	list_blocked(f, blocked, blocked_count);
}

void weft__cycle_find(struct weft__finder *f, bool with_lock)
{
	const struct weft__chains *c = &f->chains;
	for (size_t i = 0;
	     f->waiting.circles && i < f->waiting.pending.count && weft__finding_goes_on(f, i, f->waiting.pending.count); i++) {
		uint32_t p = f->waiting.pending.items[i], start;
		if (c->root[p] != p || c->verdict[p] != WEFT_VERDICT_CYCLE || f->told[p])
			continue;
		uint32_t length = find_circle(f, p, &start);
		if ((find_lock(f, start, length) != WEFT_NONE) != with_lock)
			continue;
		f->told[p] = true;
		weft__cycle_tell(f, p);
	}
}

void weft__find_cycle(struct weft__finder *f)
{
	weft__cycle_find(f, false);
}
