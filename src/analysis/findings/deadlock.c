/* deadlock.c: reports cycles in which each promise holds a lock, or an item of a pool, that the next promise waits for.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/sort.h"

/* A lock of the cycle, its holder, and the lock that the holder waits for. */
struct held {
	uint32_t lock, holder, wanted;
	uint32_t asker; /* the holder, or the promise that waits for the other lock while the holder waits for that promise */
	int64_t taken_ns, waits_ns;
};

/* Returns how a promise of the cycle waits for the next promise of the cycle. */
static const struct weft__wait_edge *find_wait_in_cycle(const struct weft__wait_graph *w, uint32_t p)
{
	for (uint32_t i = w->begin[p]; i < w->begin[p + 1]; i++)
		if (w->component[w->waits[i].to] == w->component[p])
			return &w->waits[i];
	return NULL;
}

/* Returns whether a promise of the cycle has a name, and is neither a lock nor only the wait of another promise. */
static bool is_actor(const struct weft_model *m, uint32_t p)
{
	return weft_first_label(m, p) != WEFT_NONE && m->promises[p].kind != WEFT_KIND_WAIT &&
	       !weft_kind_has(m->promises[p].kind, WEFT__TRAITS_HELD);
}

/* Follows the cycle from one lock to the next. */
static struct held get_held_lock(const struct weft__finder *f, uint32_t lock)
{
	const struct weft__wait_graph *w = &f->wait_graph;
	const struct weft__wait_edge *wait = find_wait_in_cycle(w, lock);
	struct held held = {.lock = lock, .holder = wait->to, .taken_ns = weft__wait_graph_since(w, lock, wait)};
	uint32_t p = wait->to;
	held.asker = p;
	while (!weft_kind_has(f->model->promises[p].kind, WEFT__TRAITS_HELD)) {
		wait = find_wait_in_cycle(w, p);
		held.waits_ns = weft__wait_graph_since(w, p, wait);
		p = wait->to;
		if (is_actor(f->model, p))
			held.asker = p;
	}
	held.wanted = p;
	return held;
}

static bool is_pool(const struct weft__finder *f, uint32_t held)
{
	return weft_kind_has(f->model->promises[held].kind, WEFT_TRAIT_POOL);
}

/* Returns the number of promises that hold an item of a pool. */
static uint32_t count_holders(const struct weft__finder *f, uint32_t pool)
{
	return (uint32_t)weft__wait_graph_count(&f->wait_graph, pool);
}

static const char *format_held_lock(struct weft__finder *f, const struct held *held)
{
	return weft__finding_text(f, "%s holds %s%s and waits for %s", weft__format_promise(f, held->holder),
	    is_pool(f, held->lock) ? "1 of " : "", weft__format_promise(f, held->lock), weft__format_promise(f, held->wanted));
}

/* Adds where the lock was taken, and where its holder waits for the next one, unless that wait is the last one.  is_again: the
 * holder waits for the lock that it holds. */
static void add_held_lock(struct weft__finder *f, const struct held *held, bool is_last, bool is_again)
{
	const char *name = weft__format_promise(f, held->holder),
		   *waits_at = is_last ? "" : weft__format_wait_place(f, held->holder, held->wanted, held->waits_ns);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, held->taken_ns, held->holder, "%s takes %s%s%s%s", name,
	    is_pool(f, held->lock) ? "1 of " : "", weft__format_promise(f, held->lock),
	    weft__format_wait_place(f, held->lock, held->holder, held->taken_ns),
	    is_again ? ", and has not released it since" : "");
	if (*waits_at)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, held->waits_ns, held->holder, "%s waits for %s%s", name,
		    weft__format_promise(f, held->wanted), waits_at);
}

static int compare_taken_ns(const void *a, const void *b)
{
	const struct held *x = a, *y = b;
	return (x->taken_ns > y->taken_ns) - (x->taken_ns < y->taken_ns);
}

/* Returns a condition of the cycle that waits for the promise that should signal it; WEFT_NONE if the cycle has none. */
static uint32_t find_condition(const struct weft__finder *f, uint32_t lock, uint32_t length)
{
	for (uint32_t p = lock; length > 0; length--, p = weft__wait_graph_next_in_cycle(&f->wait_graph, p))
		if (weft_kind_has(f->model->promises[p].kind, WEFT_TRAIT_CONDITION))
			return p;
	return WEFT_NONE;
}

/* Reports a promise that waits for a condition while it holds a lock, if the promise that should signal the condition needs
 * that lock. */
static void report_signaller(struct weft__finder *f, struct weft_finding *finding, uint32_t lock, uint32_t condition)
{
	const struct weft__wait_graph *w = &f->wait_graph;
	const struct weft__wait_edge *holds = find_wait_in_cycle(w, lock), *waits = find_wait_in_cycle(w, holds->to),
				     *signal = find_wait_in_cycle(w, condition), *needs = find_wait_in_cycle(w, signal->to);
	const uint32_t holder = holds->to, signaller = signal->to;
	const int64_t waits_ns = weft__wait_graph_since(w, holder, waits), needs_ns = weft__wait_graph_since(w, signaller, needs);
	const char *name = weft__format_promise(f, holder), *what = weft__format_promise(f, condition),
		   *by = weft__format_promise(f, signaller), *at = weft__format_site_suffix(f, condition);
	finding->promise = finding->root = holder;
	finding->start_ns = weft_max_ns(waits_ns, needs_ns);
	finding->title = weft__finding_text(f, "%s waits for %s and holds %s, which its signaller %s needs%s", name, what,
	    weft__format_promise(f, lock), weft__format_promise_id(f, signaller), at);
	const char *closes = ", which closes the cycle";
	const int64_t taken_ns = weft__wait_graph_since(w, lock, holds);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, taken_ns < waits_ns ? taken_ns : WEFT_NO_TIME, holder,
	    "%s took %s%s, and has not released it", name, weft__format_promise(f, lock),
	    weft__format_wait_place(f, lock, holder, taken_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, waits_ns, holder, "%s waits for %s with %s held%s", name, what,
	    weft__format_promise(f, lock), waits_ns > needs_ns ? closes : "");
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, needs_ns, signaller, "%s waits for %s%s%s", by,
	    weft__format_promise(f, lock), waits_ns > needs_ns ? "" : closes, weft__format_site_suffix(f, lock));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, condition,
	    "no thread that can run signals %s, so the wait ends only when %s continues", what, by);
	finding->next = weft__finding_text(
	    f, "release %s before the wait, or let the signaller work without this lock", weft__format_promise(f, lock));
}

void weft__deadlock_report(struct weft__finder *f, struct weft_finding *finding, uint32_t lock, uint32_t length)
{
	const uint32_t condition = find_condition(f, lock, length);
	if (condition != WEFT_NONE && length == 4) {
		report_signaller(f, finding, lock, condition);
		return;
	}
	struct held held[WEFT__MAX_LINES], last = {.waits_ns = INT64_MIN};
	uint32_t count = 0, p = lock;
	do {
		struct held held_lock = get_held_lock(f, p);
		if (held_lock.waits_ns > last.waits_ns)
			last = held_lock;
		if (count < WEFT__MAX_LINES)
			held[count] = held_lock;
		count++;
		p = held_lock.wanted;
	} while (p != lock && count < length);
	uint32_t listed_count = count < WEFT__MAX_LINES ? count : WEFT__MAX_LINES;
	const char *holder = weft__format_promise(f, held[0].holder), *first = weft__format_promise(f, lock),
		   *at = weft__format_wait_suffix(f, held[0].holder, held[0].wanted, held[0].waits_ns);
	if (count == 1 && is_pool(f, lock))
		finding->title = weft__finding_text(
		    f, "%s holds 1 of %s and waits for another: no holder can return one%s", holder, first, at);
	else if (count == 1 && held[0].asker != held[0].holder)
		finding->title = weft__finding_text(f, "%s holds %s and waits for %s, which waits for it%s", holder, first,
		    weft__format_promise(f, held[0].asker), at);
	else if (count == 1)
		finding->title = weft__finding_text(f, "%s waits for %s, which it already holds%s", holder, first, at);
	else
		finding->title =
		    weft__finding_text(f, "%s: cycle of %" PRIu32 " locks%s", format_held_lock(f, &held[0]), count, at);
	finding->promise = finding->root = last.holder;
	finding->start_ns = last.waits_ns;
	weft_sort(held, listed_count, sizeof *held, compare_taken_ns);
	for (uint32_t i = 0; i < listed_count; i++)
		add_held_lock(f, &held[i], held[i].waits_ns == last.waits_ns, count == 1 && !is_pool(f, lock));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, last.waits_ns, last.holder, "%s waits for %s%s, which closes the cycle",
	    weft__format_promise(f, last.asker), weft__format_promise(f, last.wanted),
	    weft__format_wait_place(f, last.asker, last.wanted, last.waits_ns));
	bool any_pool = false;
	for (uint32_t i = 0; i < listed_count; i++)
		any_pool |= is_pool(f, held[i].lock);
	for (uint32_t i = 0; i < listed_count; i++)
		if (is_pool(f, held[i].lock) && count_holders(f, held[i].lock) > 1)
			weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, held[i].lock,
			    "%" PRIu32 " promises hold 1 of %s, and none of them can return it", count_holders(f, held[i].lock),
			    weft__format_promise(f, held[i].lock));
	if (any_pool)
		finding->next = count == 1 ? "take all needed items at once, or return one before you wait for the next"
					   : "take these locks and pool items in the same order everywhere, or return the first "
					     "before you wait for the second";
	else if (count == 1 && held[0].asker != held[0].holder)
		finding->next =
		    weft__finding_text(f, "release %s before you wait for %s", first, weft__format_promise(f, held[0].asker));
	else
		finding->next =
		    count == 1
			? "release the lock before you take it again, or let the called code know that the lock is held"
			: "take these locks in the same order everywhere, or release the first before you wait for the second";
}

void weft__find_deadlock(struct weft__finder *f)
{
	weft__cycle_find(f, true);
}
