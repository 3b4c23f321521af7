/* underway.c: reports promises that should resolve and were still in progress when the trace ended.
 * SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

/* Returns whether a promise continues another one of its place, as each turn of a loop does. */
static bool is_turn_of_loop(const struct weft_model *m, uint32_t p)
{
	const uint32_t before = m->promises[p].created_by;
	return before != WEFT_NONE && m->promises[before].end == WEFT_END_BECAME && m->promises[before].became == p &&
	       m->promises[before].site == m->promises[p].site;
}

/* Names the wait that seems to wait for a loop that goes on, if the reader only infers this: the wait may hang instead. */
static void report_doubtful_loop(struct weft__finder *f, uint32_t p, uint32_t root)
{
	const struct weft_model *m = f->model;
	uint32_t waiter = p;
	while (waiter != root && f->root_causes.next[waiter] != root && f->root_causes.next[waiter] != WEFT_NONE)
		waiter = f->root_causes.next[waiter];
	if (waiter == root || m->promises[waiter].kind != WEFT_KIND_WAIT ||
	    !(m->promises[waiter].flags & WEFT_PROMISE_INFERRED) || !is_turn_of_loop(m, root))
		return;
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, m->promises[waiter].start_ns, waiter,
	    "%s%s has been pending for %s: it waits for the loop%s, which continues, or for something that the trace does not "
	    "record",
	    weft__format_promise(f, waiter), weft__format_site_suffix(f, waiter),
	    weft__format_duration(f, weft_model_until(m, waiter) - m->promises[waiter].start_ns),
	    weft__format_site_suffix(f, root));
}

void weft__find_underway(struct weft__finder *f)
{
	const struct weft__blocked_promise *blocked = f->root_causes.blocked.items;
	const struct weft_promise *promises = f->model->promises;
	for (size_t i = 0, count = 0;
	     i < f->root_causes.blocked.count && weft__finding_may_continue(f, i, f->root_causes.blocked.count); i += count) {
		uint32_t root = blocked[i].root, p = blocked[i].promise;
		count = weft__root_causes_blocked(&f->root_causes, root, &(const struct weft__blocked_promise *){NULL});
		if (f->reported[root])
			continue;
		f->reported[root] = true;
		struct weft_finding *finding =
		    weft__finding_begin(f, WEFT_FINDING_UNDERWAY, p, promises[p].start_ns, weft_model_until(f->model, p));
		if (!finding)
			continue;
		const char *name = weft__format_promise(f, p);
		finding->root = root;
		finding->verdict = f->root_causes.verdict[root];
		finding->weight = count;
		finding->title = weft__finding_text(f, "%s had not resolved when the trace ended: %s was pending for %s%s",
		    count == 1 ? name : weft__finding_text(f, "%s and %zu more", name, count - 1), weft__format_promise(f, root),
		    weft__format_duration(f, weft_model_until(f->model, root) - promises[root].start_ns),
		    weft__format_site_suffix(f, root));
		finding->next = "if the promise should finish, wait for it before the loop returns or the program exits";
		/* The promise may have been resolved by an event that is missing. */
		weft__finding_doubt_part(f, p, true);
		if (root != p)
			weft__finding_doubt_part(f, root, true);
		weft__hang_add_chain(f, p);
		weft__evidence_add_creation(f, root);
		report_doubtful_loop(f, p, root);
		weft__evidence_add_peers(f, root);
	}
}
