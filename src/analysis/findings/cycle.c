/* cycle.c: finds promises that wait for each other in a cycle.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

/* Finds the cycle of waits that a promise leads to: its first member and its length. */
static uint32_t find_cycle_start(const struct weft__finder *f, uint32_t first, uint32_t *start)
{
	/* Brent's cycle detection needs no list of visited promises. */
	uint32_t slow = first, fast = weft__wait_graph_next_in_cycle(&f->wait_graph, first), power = 1, length = 1;
	for (; slow != fast; length++, fast = weft__wait_graph_next_in_cycle(&f->wait_graph, fast))
		if (power == length) {
			slow = fast;
			power *= 2;
			length = 0;
		}
	slow = fast = first;
	for (uint32_t i = 0; i < length; i++)
		fast = weft__wait_graph_next_in_cycle(&f->wait_graph, fast);
	for (; slow != fast; fast = weft__wait_graph_next_in_cycle(&f->wait_graph, fast))
		slow = weft__wait_graph_next_in_cycle(&f->wait_graph, slow);
	*start = slow;
	return length;
}

static const char *format_title(struct weft__finder *f, uint32_t start, uint32_t length)
{
	const char *name = weft__format_promise(f, start), *at = weft__format_site_suffix(f, start);
	uint32_t second = weft__wait_graph_next_in_cycle(&f->wait_graph, start);
	if (length == 1)
		return weft__finding_text(f, "%s waits for itself%s", name, at);
	if (length == 2)
		return weft__finding_text(f, "%s and %s wait for each other%s", name, weft__format_promise(f, second), at);
	return weft__finding_text(f, "%s and %u more promises wait for each other in a cycle%s", name, length - 1, at);
}

/* Returns whether all inputs of a promise are known.  A promise that needs only the first of its inputs to end may have had
 * another input that the trace does not record. */
static bool is_known(const struct weft__finder *f, uint32_t promise)
{
	return !weft_kind_has(f->model->promises[promise].kind, WEFT_TRAIT_FIRST) ||
	       weft__has_complete_history(f->completeness, f->model, promise);
}

/* Returns a lock or a pool of the cycle; WEFT_NONE if the cycle has none. */
static uint32_t find_lock(const struct weft__finder *f, uint32_t start, uint32_t length)
{
	for (uint32_t p = start; length > 0; length--, p = weft__wait_graph_next_in_cycle(&f->wait_graph, p))
		if (weft_kind_has(f->model->promises[p].kind, WEFT__TRAITS_HELD))
			return p;
	return WEFT_NONE;
}

static void list_members(struct weft__finder *f, uint32_t start, uint32_t length)
{
	uint32_t p = start;
	for (uint32_t i = 0; i < length; i++, p = weft__wait_graph_next_in_cycle(&f->wait_graph, p)) {
		if (!is_known(f, p))
			weft__finding_doubt(f, f->doubt);
		weft__finding_doubt_part(f, p, false);
		if (i < WEFT__MAX_LINES || i + WEFT__MAX_LINES >= length)
			weft__evidence_add_chain_link(f, p,
			    i + 1 < length ? weft__format_wait_verb(f, p)
					   : weft__finding_text(
						 f, "%s %s again", weft__format_wait_verb(f, p), weft__format_promise(f, start)));
		else if (i == WEFT__MAX_LINES)
			weft__finding_evidence(
			    f, WEFT_EVIDENCE_CHAIN, WEFT_NO_TIME, WEFT_NONE, "... %u more ...", length - 2 * WEFT__MAX_LINES);
	}
}

static void list_blocked(struct weft__finder *f, const struct weft__blocked_promise *blocked, size_t count)
{
	for (size_t i = 0; i < count && i < WEFT__MAX_LINES; i++)
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, f->model->promises[blocked[i].promise].start_ns,
		    blocked[i].promise, "%s should resolve, but %s", weft__format_promise(f, blocked[i].promise),
		    weft__wait_graph_in_cycle(&f->wait_graph, blocked[i].promise) ? "is in the cycle" : "waits for the cycle");
	if (count > WEFT__MAX_LINES)
		weft__evidence_add_more(f, WEFT_EVIDENCE_VICTIM, count - WEFT__MAX_LINES, " that should resolve");
}

/* Returns the promise of the cycle that was created last. */
static uint32_t find_youngest(const struct weft__finder *f, uint32_t start, uint32_t length)
{
	const struct weft_promise *promises = f->model->promises;
	uint32_t last = start, p = start;
	for (; length > 0; length--, p = weft__wait_graph_next_in_cycle(&f->wait_graph, p))
		last = promises[p].start_ns > promises[last].start_ns ? p : last;
	return last;
}

void weft__cycle_report(struct weft__finder *f, uint32_t first)
{
	const struct weft__blocked_promise *blocked;
	size_t blocked_count = weft__root_causes_blocked(&f->root_causes, first, &blocked);
	const struct weft_promise *promises = f->model->promises;
	uint32_t start, length = find_cycle_start(f, first, &start), lock = find_lock(f, start, length);
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
		weft__deadlock_report(f, finding, lock, length);
	} else {
		uint32_t last = find_youngest(f, start, length);
		finding->title = format_title(f, start, length);
		finding->start_ns = promises[last].start_ns;
		finding->next =
		    length == 1
			? "move the code that waits for the result of the promise out of the code that produces this result"
			: weft__finding_text(f,
			      "let one promise of the cycle continue without waiting for the next, for example %s%s, which "
			      "was created last",
			      weft__format_promise(f, last), weft__format_site_suffix(f, last));
	}
	list_blocked(f, blocked, blocked_count);
}

void weft__cycle_find(struct weft__finder *f, bool with_lock)
{
	const struct weft__root_causes *c = &f->root_causes;
	for (size_t i = 0; f->wait_graph.may_have_cycles && i < f->wait_graph.pending.count &&
			   weft__finding_may_continue(f, i, f->wait_graph.pending.count);
	     i++) {
		uint32_t p = f->wait_graph.pending.items[i], start;
		if (c->root[p] != p || c->verdict[p] != WEFT_VERDICT_CYCLE || f->reported[p])
			continue;
		uint32_t length = find_cycle_start(f, p, &start);
		if ((find_lock(f, start, length) != WEFT_NONE) != with_lock)
			continue;
		f->reported[p] = true;
		weft__cycle_report(f, p);
	}
}

void weft__find_cycle(struct weft__finder *f)
{
	weft__cycle_find(f, false);
}
