/* hang.c: finds promises that should resolve and never did.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"
#include "base/duration.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/known_strings.h"

void weft__hang_add_chain(struct weft__finder *f, uint32_t promise)
{
	const uint32_t *next = f->root_causes.next;
	size_t length = 1, at = 0;
	for (uint32_t p = promise; next[p] != WEFT_NONE; p = next[p])
		length++;
	for (uint32_t p = promise; p != WEFT_NONE; p = next[p], at++) {
		if (at < WEFT__MAX_LINES || at + WEFT__MAX_LINES >= length)
			weft__evidence_add_chain_link(f, p, next[p] == WEFT_NONE ? "" : weft__format_wait_verb(f, p));
		else if (at == WEFT__MAX_LINES)
			weft__finding_evidence(
			    f, WEFT_EVIDENCE_CHAIN, WEFT_NO_TIME, WEFT_NONE, "... %zu more ...", length - 2 * WEFT__MAX_LINES);
	}
}

/* Returns when a promise was cancelled; WEFT_NO_TIME if it was not, or if a timeout cancelled it. */
static int64_t find_cancel(const struct weft_model *m, uint32_t p)
{
	static const char word[] = WEFT_STRING_CANCELLED;
	for (uint32_t i = m->promises[p].labels; i < m->promises[p + 1].labels; i++)
		if (!m->labels[i].is_counter &&
		    weft_str_equal(weft_model_text(m, m->labels[i].text), (struct weft_str){word, sizeof word - 1}))
			return m->labels[i].time_ns;
	return WEFT_NO_TIME;
}

/* Returns whether an earlier wait of the promise, at the same place, was cancelled at that time or later. */
static bool has_cancelled_wait(const struct weft_model *m, uint32_t p, uint32_t wait, int64_t since_ns)
{
	for (uint32_t q = p + 1; q < wait; q++)
		if (m->promises[q].created_by == p && m->promises[q].site == m->promises[wait].site &&
		    m->promises[q].end_ns >= since_ns && weft_model_was_cancelled(m, &m->promises[q]))
			return true;
	return false;
}

/* Adds the promise of the wait chain that was cancelled, but waits again at the same place: its code caught the cancellation. */
static void report_swallowed_cancel(struct weft__finder *f, struct weft_finding *finding, uint32_t promise)
{
	const uint32_t *next = f->root_causes.next;
	for (uint32_t p = promise; next[p] != WEFT_NONE; p = next[p]) {
		const int64_t time_ns = find_cancel(f->model, p);
		if (time_ns == WEFT_NO_TIME || !has_cancelled_wait(f->model, p, next[p], time_ns))
			continue;
		const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, next[p]);
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, time_ns, p,
		    "%s was cancelled at this time, caught the cancellation, and waits again%s", name, at);
		finding->next =
		    weft__finding_text(f, "let the cancellation end %s: raise it again after the cleanup%s", name, at);
		return;
	}
}

static void report_lost_wakeup(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	uint32_t root = finding->root, condition = m->promises[root].created_by, waiter = WEFT_NONE;
	int64_t wait_ns = m->promises[root].start_ns;
	const uint32_t *missed;
	size_t missed_count = weft__root_causes_lost_signals(&f->root_causes, root, &missed), woken = 0;
	const struct weft_link *signal = &m->links[missed[missed_count - 1]];
	const char *name = weft__format_promise(f, condition), *location = weft__format_site_suffix(f, root);
	const char *early = weft__format_duration(f, wait_ns - signal->time_ns);
	for (uint32_t i = f->link_index.in_begin[condition]; i < f->link_index.in_begin[condition + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_SIGNAL && link->time_ns <= wait_ns)
			/* a wait signals its condition itself when the wait is created, so such a signal does not count */
			waiter = link->from;
	}
	for (uint32_t i = f->link_index.out_begin[condition]; i < f->link_index.out_begin[condition + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.out[i]];
		woken += link->kind == WEFT_LINK_RESOLVE && link->time_ns > wait_ns;
	}
	const char *waiter_text = waiter == WEFT_NONE || waiter == WEFT_SYSTEM ? "the program" : weft__format_promise(f, waiter);
	finding->start_ns = signal->time_ns;
	finding->end_ns = wait_ns;
	finding->title = weft__finding_text(f, "%s: %s was signalled %s before the wait%s", what, name, early, location);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, signal->time_ns, signal->from,
	    "%s%s signals %s, but no promise waits for it yet", weft__format_promise(f, signal->from),
	    weft__format_site_suffix(f, signal->from), name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, wait_ns, root, "%s starts to wait as %s%s, %s too late: lost wake-up",
	    waiter_text, weft__format_promise(f, root), location, early);
	if (woken)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, WEFT_NO_TIME, condition,
		    "later signals of %s woke %zu other waiter%s", name, woken, weft__format_plural_s(woken));
	else
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, weft_model_until(m, root), condition,
		    "the trace ends; %s was not signalled again", name);
	if (missed_count > 1)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, condition,
		    "%zu signals of %s in total came before any wait", missed_count, name);
	finding->next = weft__finding_text(
	    f, "check the condition before you wait, and do not await anything between the check and the wait%s", location);
}

/* Adds what is known of a root for whose pending state no reason is known: its creator, and how other promises of its type
 * ended. */
static void report_origin(struct weft__finder *f, uint32_t root)
{
	weft__evidence_add_creation(f, root);
	weft__evidence_add_peers(f, root);
}

static void report_creator_failed(struct weft__finder *f, struct weft_finding *finding, const char *what, const char *it)
{
	uint32_t root = finding->root, creator = f->model->promises[root].created_by;
	const char *name = weft__format_promise(f, creator);
	finding->title =
	    weft__finding_text(f, "%s: %s, which created %s, failed%s", what, name, it, weft__format_site_suffix(f, root));
	weft__evidence_add_creation(f, root);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->model->promises[creator].end_ns, creator, "%s fails: %s", name,
	    weft__format_text(f, f->model->promises[creator].failure));
	weft__evidence_add_peers(f, root);
	finding->next = weft__finding_text(f, "resolve %s%s, or let it fail, also when %s fails", weft__format_promise(f, root),
	    weft__format_site_suffix(f, root), name);
}

static void report_not_run(struct weft__finder *f, struct weft_finding *finding, const char *what, const char *it)
{
	uint32_t input = weft__root_causes_ready_input(&f->root_causes, finding->root);
	const uint32_t other = weft__root_causes_other_thread(&f->root_causes, finding->root);
	const char *name = weft__format_promise(f, input);
	if (other != WEFT_NONE) {
		const char *by = weft__format_promise(f, other), *at = weft__format_site_suffix(f, input);
		finding->title = weft__finding_text(f, "%s: %s ended %s and did not wake the event loop%s", what, by, name, at);
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->link_index.ended_ns[input], input,
		    "%s ends %s from another thread; %s does not run afterwards", by, name,
		    weft__format_promise(f, finding->root));
		finding->next = weft__finding_text(
		    f, "end %s in the thread of the loop, which call_soon_threadsafe() does in Python%s", name, at);
		return;
	}
	finding->title = weft__finding_text(
	    f, "%s: %s did not run after %s ended%s", what, it, name, weft__format_site_suffix(f, finding->root));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->link_index.ended_ns[input], input,
	    "%s ends; %s does not run afterwards", name, weft__format_promise(f, finding->root));
	finding->next =
	    weft__finding_text(f, "wake the waiters where the code resolves %s%s", name, weft__format_site_suffix(f, input));
}

static void report_lock(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	uint32_t lock = finding->root;
	const struct weft_link *hold = &m->links[weft__root_causes_last_hold(&f->root_causes, lock)];
	uint32_t holder = f->link_index.final[hold->to];
	const char *name = weft__format_promise(f, lock), *waiter_text = weft__format_promise(f, holder),
		   *at = weft__format_site_suffix(f, holder);
	int64_t over_ns = weft_model_await_end(m, hold);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, hold->time_ns, holder, "%s%s takes %s", waiter_text, at, name);
	if (finding->verdict == WEFT_VERDICT_NOT_RELEASED) {
		finding->title =
		    weft__finding_text(f, "%s: %s is held by %s, which has %s%s", what, name, weft__format_promise_id(f, holder),
			weft_kind_has(m->promises[holder].kind, WEFT_TRAIT_THREAD) ? "exited" : "ended", at);
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->link_index.ended_ns[holder], holder,
		    "%s ends and still holds %s", waiter_text, name);
		finding->next =
		    weft__finding_text(f, "release %s on every path out of %s%s, also on error paths", name, waiter_text, at);
	} else {
		finding->title = weft__finding_text(f, "%s: %s was released, but no waiter was woken%s", what, name, at);
		weft__finding_evidence(
		    f, WEFT_EVIDENCE_CAUSE, over_ns, holder, "%s releases %s; no promise takes it afterwards", waiter_text, name);
		finding->next = weft__finding_text(f, "wake one waiter wherever the code releases %s", name);
	}
}

/* Reports a wait for a condition that began after all signals, which woke other waiters.  Returns false if the root is no such
 * wait. */
static bool report_late_wait(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	uint32_t root = finding->root, condition = m->promises[root].created_by;
	int64_t wait_ns = m->promises[root].start_ns, last_ns = WEFT_NEVER;
	uint32_t by = WEFT_NONE;
	if (condition == WEFT_NONE || !weft_kind_has(m->promises[condition].kind, WEFT_TRAIT_CONDITION))
		return false;
	for (uint32_t i = f->link_index.in_begin[condition]; i < f->link_index.in_begin[condition + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		/* a waiter signals the condition when its wait is created, so such a signal does not count */
		bool is_wait = false;
		for (size_t l = f->link_index.in[i] + 1; l < m->link_count && m->links[l].time_ns == link->time_ns; l++)
			is_wait |= m->links[l].kind == WEFT_LINK_AWAIT && m->links[l].from == link->from;
		if (link->kind != WEFT_LINK_SIGNAL || link->time_ns >= wait_ns || is_wait)
			continue;
		last_ns = link->time_ns;
		by = link->from;
	}
	if (by == WEFT_NONE)
		return false;
	const char *name = weft__format_promise(f, condition), *location = weft__format_site_suffix(f, root);
	const char *early = weft__format_duration(f, wait_ns - last_ns);
	finding->title = weft__finding_text(f, "%s: %s was signalled %s before the wait%s", what, name, early, location);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, last_ns, by, "%s%s signals %s for the last time",
	    weft__format_promise(f, by), weft__format_site_suffix(f, by), name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, wait_ns, root,
	    "%s%s starts to wait for this condition %s too late: lost wake-up", weft__format_promise(f, root), location, early);
	finding->next = weft__finding_text(
	    f, "check the condition before you wait, and do not await anything between the check and the wait%s", location);
	return true;
}

/* Adds a line for each lock that promise p holds. */
static void report_held_locks(struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->link_index.in_begin[p], reported = 0;
	     i < f->link_index.in_begin[p + 1] && reported < WEFT__MAX_LINES; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if (link->kind != WEFT_LINK_AWAIT || !weft_kind_has(m->promises[link->from].kind, WEFT__TRAITS_HELD) ||
		    weft_model_await_end(m, link) < weft_model_until(m, p))
			continue;
		reported++;
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, link->time_ns, link->from, "%s has held %s%s since this time",
		    weft__format_promise(f, p), weft__format_promise(f, link->from), weft__format_host_suffix(f, link->from));
	}
}

enum { LONG_NS = 1000000000 };

/* Returns whether the reader only infers what the root or a promise that waits for it waits for. */
static bool is_inferred_wait(const struct weft__finder *f, uint32_t root)
{
	enum { MAX_SCANNED = 64 };
	const struct weft_model *m = f->model;
	bool is_inferred = m->promises[root].flags & WEFT_PROMISE_INFERRED;
	uint32_t i = f->link_index.in_begin[root], end = f->link_index.in_begin[root + 1];
	for (end = end - i > MAX_SCANNED ? i + MAX_SCANNED : end; i < end && !is_inferred; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		is_inferred = link->kind == WEFT_LINK_AWAIT && link->from != WEFT_SYSTEM &&
			      m->promises[link->from].flags & WEFT_PROMISE_INFERRED;
	}
	return is_inferred;
}

/* Returns whether p waits only for a pending promise that nothing tried to resolve, which no finding has reported, and which may
 * explain why the root is pending: it is older than the root.  If the reader only infers what waits for the root, both must have
 * been pending for long instead. */
static bool may_explain(const struct weft__finder *f, uint32_t p, uint32_t root, bool is_inferred)
{
	const struct weft_promise *promises = f->model->promises;
	const uint32_t q = f->root_causes.root[p];
	if (f->root_causes.next[p] != q || f->root_causes.verdict[q] != WEFT_VERDICT_NEVER_TRIED ||
	    (f->reported && f->reported[q]) || f->types.of[q] == f->types.of[root] ||
	    weft_kind_has(promises[q].kind, WEFT_TRAIT_ENDLESS) || weft_kind_has(promises[p].kind, WEFT__TRAITS_LASTING))
		return false;
	return is_inferred ? weft_model_until(f->model, q) - promises[q].start_ns >= LONG_NS
			   : promises[q].start_ns < promises[root].start_ns;
}

/* Adds promises of other types that are still pending: the promises that wait for them may be the ones that should resolve the
 * root.  The advice then begins with the first of these promises, unless the reader only infers what they wait for. */
static void report_others(struct weft__finder *f, struct weft_finding *finding)
{
	enum { MAX_OTHERS = 3 };
	const struct weft_promise *promises = f->model->promises;
	const uint32_t root = finding->root;
	const bool is_inferred = is_inferred_wait(f, root);
	uint32_t types[MAX_OTHERS] = {WEFT_NONE, WEFT_NONE, WEFT_NONE};
	size_t reported = 0;
	for (size_t i = 0; i < f->wait_graph.pending.count && reported < MAX_OTHERS; i++) {
		const uint32_t p = f->wait_graph.pending.items[i], q = f->root_causes.root[p];
		bool is_new = may_explain(f, p, root, is_inferred);
		for (size_t k = 0; k < reported; k++)
			is_new &= types[k] != f->types.of[q];
		if (!is_new)
			continue;
		if (reported == 0 && !is_inferred)
			finding->next = weft__finding_text(f,
			    "find the code that should resolve %s%s: the promise that waits for it may be the one that should "
			    "resolve %s",
			    weft__format_promise(f, q), weft__format_site_suffix(f, q), weft__format_promise(f, root));
		types[reported++] = f->types.of[q];
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, promises[q].start_ns, q,
		    is_inferred ? "%s%s waits for %s%s, which is pending too"
				: "%s%s has waited even longer for %s%s, which nothing tried to resolve either",
		    weft__format_promise(f, p), weft__format_site_suffix(f, p), weft__format_promise(f, q),
		    weft__format_site_suffix(f, q));
	}
}

/* Reports a request that waits for an answer from outside, or a request to the program that the program never answers.  Returns
 * false if the root is no such request. */
static bool report_request(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	const uint32_t root = finding->root, asked = weft__asked_on(f, root, INT64_MAX);
	const char *at = weft__format_site_suffix(f, root);
	if (weft_kind_has(m->promises[root].kind, WEFT_TRAIT_CONNECTION) && asked != WEFT_NONE &&
	    f->link_index.ended_ns[asked] == WEFT_NEVER) {
		finding->title = weft__finding_text(f, "%s: %s has waited %s for an answer from %s", what,
		    asked == finding->promise ? "it" : weft__format_promise(f, asked),
		    weft__format_duration(f, weft_model_until(m, asked) - m->promises[asked].start_ns),
		    weft__format_promise(f, root));
		finding->next = weft__finding_text(
		    f, "find out why the peer of %s is silent, or set a timeout", weft__format_promise(f, root));
		weft__evidence_add_creation(f, asked);
		return true;
	}
	if (!weft__is_served(f, root) || finding->verdict != WEFT_VERDICT_NEVER_TRIED)
		return false;
	finding->title = weft__finding_text(
	    f, "%s: the program wrote no answer to %s", what, weft__format_promise(f, m->promises[root].created_by));
	finding->next = weft__finding_text(f, "find the path through the code on which no answer is written%s", at);
	report_origin(f, root);
	weft__hang_thread_add_sleepers(f, root);
	return true;
}

void weft__hang_report_root(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	uint32_t root = finding->root;
	const char *name = weft__format_promise(f, root), *at = weft__format_site_suffix(f, root);
	/* If the promise waits only for itself, the title has already named it. */
	const char *it = root == finding->promise ? "it" : name;
	struct weft__late_waiter late;
	uint32_t stuck;
	if ((finding->verdict == WEFT_VERDICT_NEVER_TRIED || finding->verdict == WEFT_VERDICT_OUTSIDE) &&
	    weft__hang_pool_find(f, root, &late)) {
		weft__hang_pool_report(f, finding, what, &late);
		return;
	}
	if (weft__unread_report(f, finding, what) || report_request(f, finding, what))
		return;
	switch (finding->verdict) {
	case WEFT_VERDICT_LOST_WAKEUP: report_lost_wakeup(f, finding, what); return;
	case WEFT_VERDICT_CREATOR_FAILED: report_creator_failed(f, finding, what, it); return;
	case WEFT_VERDICT_NOT_RUN: report_not_run(f, finding, what, it); return;
	case WEFT_VERDICT_NOT_RELEASED:
	case WEFT_VERDICT_NOT_HANDED_ON: report_lock(f, finding, what); return;
	case WEFT_VERDICT_NEVER_TRIED:
		if (report_late_wait(f, finding, what))
			return;
		if ((stuck = weft__hang_pool_find_stuck(f, root)) != WEFT_NONE) {
			weft__hang_pool_report_stuck(f, finding, what, stuck);
			return;
		}
		if (weft__hang_thread_report(f, finding, what))
			return;
		finding->title = weft__finding_text(f, "%s: nothing tried to resolve %s%s", what, it, at);
		finding->next = weft__finding_text(
		    f, "find the code that should resolve %s%s; this code was never called, or dropped the resolver", name, at);
		report_origin(f, root);
		report_held_locks(f, root);
		report_others(f, finding);
		if (f->model->promises[root].kind == WEFT_KIND_SEMAPHORE)
			weft__hang_pool_report_tokens(f, root);
		return;
	case WEFT_VERDICT_OUTSIDE:
		if (weft__hang_thread_report(f, finding, what) || weft__hang_thread_report_work(f, finding, what))
			return;
		finding->title = weft__finding_text(f, "%s: %s has waited %s for an answer%s", what, it,
		    weft__format_duration(f, weft_model_until(f->model, root) - f->model->promises[root].start_ns), at);
		finding->next = weft__finding_text(f, "look at the peer of %s%s, and add a timeout", name, at);
		report_origin(f, root);
		return;
	default:
		finding->verdict = WEFT_VERDICT_UNKNOWN;
		finding->title = weft__finding_text(f, "%s: the trace does not record what %s waits for%s", what, it, at);
		finding->next =
		    f->model->promises[root].flags & WEFT_PROMISE_START_UNKNOWN
			? "record with a larger ring buffer, which keeps the creation of the promise, or with state dumps"
			: "record the wait with weft_await()";
		if (!weft__finding_doubt_part(f, root, true))
			weft__finding_doubt(f, f->doubt ? f->doubt : "the trace does not record what the promise waits for");
	}
}

/* Returns whether a promise that is resolved from outside has been pending much longer than earlier promises of its type. */
static bool is_overdue(const struct weft__finder *f, uint32_t root)
{
	/* A program is often killed while it waits for an answer, and a busy machine delays answers for as long as CUT_STALLS. */
	enum { TIMES_LONGER = 5, CUT_STALLS = 100 };
	const struct weft__promise_type *type = &f->types.items.items[f->types.of[root]];
	int64_t age_ns = weft_model_until(f->model, root) - f->model->promises[root].start_ns;
	const bool is_cut = weft__completeness_of(f->completeness, f->model, root)->end_missing;
	return type->ended > 0 && age_ns / TIMES_LONGER > type->longest_ns &&
	       age_ns >= (is_cut ? CUT_STALLS : 1) * f->options.stall_ns;
}

/* Returns whether other waiters got the semaphore shortly before the end, so that it is in use. */
static bool is_in_use(const struct weft__finder *f, uint32_t root)
{
	uint32_t last = f->types.items.items[f->types.of[root]].last_resolved;
	int64_t until_ns = weft_model_until(f->model, root);
	return last != WEFT_NONE && until_ns - f->link_index.ended_ns[last] < (until_ns - f->model->promises[root].start_ns) / 2;
}

/* Returns whether p holds a lock.  The lock counts if the thread of p sleeps, or if p has held the lock for long; otherwise p
 * may release it soon. */
static bool has_lock(const struct weft__finder *f, uint32_t p)
{
	enum { LONG_HELD_NS = 50000000 };
	const struct weft_model *m = f->model;
	const int64_t until_ns = weft_model_until(m, p);
	for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_AWAIT && weft_kind_has(m->promises[link->from].kind, WEFT__TRAITS_HELD) &&
		    weft_model_await_end(m, link) >= until_ns &&
		    (f->idle_at_end[m->promises[p].stream] || until_ns - link->time_ns >= LONG_HELD_NS))
			return true;
	}
	return false;
}

/* Returns whether the root, or a promise that waits for the root, holds a lock. */
static bool has_lock_in_chain(const struct weft__finder *f, uint32_t root)
{
	enum { MAX_SCANNED = 64 };
	const struct weft_model *m = f->model;
	bool holds = has_lock(f, root);
	uint32_t i = f->link_index.in_begin[root], end = f->link_index.in_begin[root + 1];
	for (end = end - i > MAX_SCANNED ? i + MAX_SCANNED : end; i < end && !holds; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		holds = link->kind == WEFT_LINK_AWAIT && link->from != WEFT_SYSTEM &&
			weft_model_await_end(m, link) >= weft_model_until(m, root) && has_lock(f, link->from);
	}
	return holds;
}

/* Groups the sleeps by thread, each group in time order. */
static void sort_sleeps(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	const size_t streams = m->trace->stream_count;
	f->sleeps_begin = weft__finding_alloc(f, streams + 1, sizeof *f->sleeps_begin);
	f->sleeps = weft__finding_alloc(f, m->sleep_count, sizeof *f->sleeps);
	if (f->no_memory)
		return;
	for (size_t i = 0; i < m->sleep_count; i++)
		f->sleeps_begin[m->sleeps[i].stream + 1]++;
	for (size_t s = 0; s < streams; s++)
		f->sleeps_begin[s + 1] += f->sleeps_begin[s];
	/* The loop runs backwards, so that the start of a group is at the same time the place of its next item. */
	for (size_t i = m->sleep_count; i-- > 0;)
		f->sleeps[--f->sleeps_begin[m->sleeps[i].stream + 1]] = (uint32_t)i;
	memmove(f->sleeps_begin, f->sleeps_begin + 1, streams * sizeof *f->sleeps_begin);
	f->sleeps_begin[streams] = (uint32_t)m->sleep_count;
}

/* Returns whether the root was active shortly before the end of a trace of a program that has not ended, or is work that waits
 * for a thread of the pool. */
static bool was_progressing(const struct weft__finder *f, uint32_t root)
{
	const struct weft_promise *promises = f->model->promises;
	const int64_t until_ns = weft_model_until(f->model, root), age_ns = until_ns - promises[root].start_ns;
	const uint32_t last = f->types.items.items[f->types.of[root]].last_resolved;
	if (!weft__completeness_of(f->completeness, f->model, root)->end_missing)
		return false;
	if (promises[root].kind == WEFT_KIND_WORK)
		return last != WEFT_NONE && is_in_use(f, root) &&
		       (promises[last].start_ns <= promises[root].start_ns ||
			   weft_run_before(f->model, root, INT64_MAX) != WEFT_NONE);
	return (f->root_causes.verdict[root] == WEFT_VERDICT_NEVER_TRIED ||
		   f->root_causes.verdict[root] == WEFT_VERDICT_UNKNOWN) &&
	       !has_lock_in_chain(f, root) && until_ns - weft__finding_last_action_ns(f, root) < age_ns / 4 * 3;
}

/* Returns whether the root was woken so shortly before the end that it could not run yet: its thread has not slept since. */
static bool is_wakeup_recent(const struct weft__finder *f, uint32_t root)
{
	/* a sleep shorter than ASLEEP_NS does not count: a loop appears to sleep between two callbacks */
	enum { STALLS_UNTIL_TAKEN = 50, ASLEEP_NS = 100000 };
	const struct weft_model *m = f->model;
	const uint16_t stream = m->promises[root].stream;
	int64_t came_ns = INT64_MIN;
	if (f->root_causes.verdict[root] == WEFT_VERDICT_NOT_RUN)
		came_ns = f->link_index.ended_ns[weft__root_causes_ready_input(&f->root_causes, root)];
	else if (f->root_causes.verdict[root] == WEFT_VERDICT_NOT_HANDED_ON)
		came_ns = weft_model_await_end(m, &m->links[weft__root_causes_last_hold(&f->root_causes, root)]);
	/* The waiter of a lock may be on another thread, which gets no CPU on a busy machine. */
	const bool is_cut = f->root_causes.verdict[root] == WEFT_VERDICT_NOT_HANDED_ON &&
			    weft__completeness_of(f->completeness, m, root)->end_missing;
	if (came_ns <= weft_model_until(m, root) - f->options.stall_ns * (is_cut ? STALLS_UNTIL_TAKEN : 1))
		return false;
	for (uint32_t i = f->sleeps_begin[stream + 1]; !is_cut && i-- > f->sleeps_begin[stream];) {
		const struct weft_interval *s = &m->sleeps[f->sleeps[i]];
		if (s->end_ns - weft_max_ns(s->start_ns, came_ns) >= ASLEEP_NS)
			return false;
		if (s->start_ns < came_ns)
			break;
	}
	return true;
}

/* Returns whether other requests with the same label pattern took as long, so that the answer may still come. */
static bool is_no_slower(const struct weft__finder *f, uint32_t root)
{
	const int64_t age_ns = weft_model_until(f->model, root) - f->model->promises[root].start_ns;
	return f->pattern_of && weft_kind_has(f->model->promises[root].kind, WEFT_TRAIT_REQUEST) &&
	       f->pattern_longest_ns[f->pattern_of[f->types.of[root]]] >= age_ns;
}

/* Returns the connection of a write; WEFT_NONE if it is unknown. */
static uint32_t find_written_connection(const struct weft__finder *f, uint32_t write)
{
	for (uint32_t i = f->link_index.in_begin[write]; i < f->link_index.in_begin[write + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_AWAIT && weft_kind_has(f->model->promises[link->from].kind, WEFT_TRAIT_CONNECTION))
			return link->from;
	}
	return WEFT_NONE;
}

/* Returns whether the root is a write after others that ended, to a peer that is not in the trace: the buffers of a connection
 * hold megabytes, so a peer that reads slowly lets a write wait for long. */
static bool is_behind_slow_reader(const struct weft__finder *f, uint32_t root)
{
	const struct weft_model *m = f->model;
	const uint32_t connection =
	    m->promises[root].kind == WEFT_KIND_STREAM_WRITE ? find_written_connection(f, root) : WEFT_NONE;
	return connection != WEFT_NONE && f->types.items.items[f->types.of[root]].ended > 0 &&
	       weft_other_end_of(m, connection) == WEFT_NONE;
}

/* Whether a pending promise is a fault: a promise that is in progress is none.  UNCERTAIN and CERTAIN say how certain the fault
 * is. */
enum reason { IN_PROGRESS, UNCERTAIN, CERTAIN };

static enum reason get_reason(const struct weft__finder *f, uint32_t root)
{
	enum { SOON_NS = LONG_NS / 2 };
	const struct weft_promise *promise = &f->model->promises[root];
	const struct weft__completeness *of = weft__completeness_of(f->completeness, f->model, root);
	int64_t age_ns = weft_model_until(f->model, root) - promise->start_ns;
	const uint32_t asked =
	    weft_kind_has(promise->kind, WEFT_TRAIT_CONNECTION) ? weft__asked_on(f, root, INT64_MAX) : WEFT_NONE;
	if ((promise->kind == WEFT_KIND_SEMAPHORE && is_in_use(f, root)) || is_behind_slow_reader(f, root))
		return IN_PROGRESS;
	if (asked != WEFT_NONE) /* the peer of the connection must answer, not this program */
		return is_overdue(f, asked)                                                                ? CERTAIN
		       : weft_model_until(f->model, asked) - f->model->promises[asked].start_ns >= LONG_NS ? UNCERTAIN
													   : IN_PROGRESS;
	/* The program may end while it serves, and take its time for an answer that nothing waits for. */
	if (weft__is_given_up(f, root) || (weft__is_served(f, root) && age_ns < SOON_NS && !is_overdue(f, root)))
		return IN_PROGRESS;
	if (is_wakeup_recent(f, root) || was_progressing(f, root))
		return IN_PROGRESS;
	if (f->root_causes.verdict[root] == WEFT_VERDICT_NEVER_TRIED && is_inferred_wait(f, root) && age_ns < LONG_NS &&
	    !is_overdue(f, root))
		return IN_PROGRESS; /* a timer or a file may end it, which the trace does not record */
	switch (f->root_causes.verdict[root]) {
	case WEFT_VERDICT_OUTSIDE: return is_overdue(f, root) ? CERTAIN : age_ns >= LONG_NS ? UNCERTAIN : IN_PROGRESS;
	case WEFT_VERDICT_NOT_RUN:
	case WEFT_VERDICT_NEVER_TRIED:
		if (f->root_causes.verdict[root] == WEFT_VERDICT_NEVER_TRIED && is_no_slower(f, root) &&
		    !has_lock_in_chain(f, root))
			return IN_PROGRESS;
		/* The program was killed, or the trace is read while the program runs: a promise counts as in progress if it is
		 * no older than other promises of its type became. */
		if (of->end_missing && !is_overdue(f, root) && age_ns < LONG_NS && !has_lock_in_chain(f, root))
			return IN_PROGRESS; /* fall through */
	case WEFT_VERDICT_NOT_RELEASED:
	case WEFT_VERDICT_NOT_HANDED_ON:
		return f->idle_at_end[promise->stream] || f->blocked_at_end[promise->stream] ? CERTAIN : UNCERTAIN;
	/* in an incomplete trace, a promise counts as in progress if it is no older than other promises of its type became */
	case WEFT_VERDICT_UNKNOWN:
		return (!of->lost && !of->end_missing) || is_overdue(f, root) || age_ns >= LONG_NS ? CERTAIN : IN_PROGRESS;
	default: return CERTAIN;
	}
}

/* ---- Similar hangs ---- */

/* If at least MIN_ALIKE roots have one label pattern, and promises with one label pattern wait for them in the same way, the
 * roots share one finding.  For example, 200 orders that no code serves are one fault. */
enum { MIN_ALIKE = 3 };

struct alike {
	/* by type: first type with the same label pattern (label_patterns.h); NULL if there are too few hangs */
	const uint32_t *pattern_of;
	struct weft_idmap groups; /* number of roots for each key */
};

static int64_t make_key(const struct weft__finder *f, const struct alike *alike, const struct weft__blocked_promise *blocked)
{
	uint64_t types =
	    (uint64_t)alike->pattern_of[f->types.of[blocked->promise]] << 32 | alike->pattern_of[f->types.of[blocked->root]];
	return (int64_t)(weft_hash_u64(weft_hash_u64(types) + f->root_causes.verdict[blocked->root]) >> 1);
}

static bool is_reported_here(const struct weft__finder *f, uint32_t root)
{
	return !f->reported[root] && get_reason(f, root) != IN_PROGRESS;
}

static void gather_alike(struct weft__finder *f, struct alike *alike)
{
	const struct weft__blocked_promise *blocked = f->root_causes.blocked.items;
	if (f->root_causes.blocked.count < MIN_ALIKE || !(alike->pattern_of = weft__finding_patterns(f)))
		return;
	for (size_t i = 0, count;
	     i < f->root_causes.blocked.count && weft__finding_may_continue(f, i, f->root_causes.blocked.count); i += count) {
		count =
		    weft__root_causes_blocked(&f->root_causes, blocked[i].root, &(const struct weft__blocked_promise *){NULL});
		if (!is_reported_here(f, blocked[i].root))
			continue;
		int64_t key = make_key(f, alike, &blocked[i]);
		uint32_t known = weft_idmap_get(&alike->groups, key);
		f->no_memory |= !weft_idmap_set(&alike->groups, key, known == WEFT_IDMAP_NONE ? 1 : known + 1);
	}
}

/* Returns the number of roots that hang like this one, including itself, if they share one finding; 1 if they do not.  Returns 0
 * if a finding has already reported them. */
static uint32_t count_alike(const struct weft__finder *f, const struct alike *alike, const struct weft__blocked_promise *blocked)
{
	uint32_t count = alike->pattern_of ? weft_idmap_get(&alike->groups, make_key(f, alike, blocked)) : 1;
	return count > 0 && count < MIN_ALIKE ? 1 : count;
}

/* Adds evidence for the other roots that hang like blocked[0]. */
static void report_alike(
    struct weft__finder *f, const struct alike *alike, const struct weft__blocked_promise *blocked, uint32_t count)
{
	const struct weft__blocked_promise *end = f->root_causes.blocked.items + f->root_causes.blocked.count;
	int64_t key = make_key(f, alike, blocked);
	size_t shown = 0;
	for (const struct weft__blocked_promise *other = blocked + 1; other < end && shown + 1 < count; other++) {
		if (other->root == other[-1].root || !is_reported_here(f, other->root) || make_key(f, alike, other) != key)
			continue;
		if (++shown > WEFT__MAX_LINES)
			break;
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, f->model->promises[other->root].start_ns, other->root,
		    "%s hangs in the same way", weft__format_promise(f, other->root));
	}
	if (count > WEFT__MAX_LINES + 1)
		weft__evidence_add_more(f, WEFT_EVIDENCE_VICTIM, count - 1 - WEFT__MAX_LINES, "");
}

/* Reports the promises that should resolve and wait for one root; `alike_count` roots hang in the same way. */
static void report_hang(struct weft__finder *f, enum reason reason, const struct weft__blocked_promise *blocked, size_t count,
    const struct alike *alike, uint32_t alike_count)
{
	const struct weft_promise *promises = f->model->promises;
	uint32_t p = blocked[0].promise, root = blocked[0].root;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_HANG, p, promises[p].start_ns, weft_model_until(f->model, p));
	if (!finding)
		return;
	finding->root = root;
	finding->verdict = f->root_causes.verdict[root];
	/* A promise that waits for a semaphore depends on the semaphore's holders, so the finding about the holders comes
	 * first. */
	finding->weight = promises[root].kind == WEFT_KIND_SEMAPHORE ? 0 : alike_count > 1 ? alike_count : count;
	bool is_open = weft__finding_doubt_part(f, p, true);
	is_open |= weft__finding_doubt_part(f, root, true);
	if (!is_open && reason == UNCERTAIN)
		weft__finding_doubt(f, finding->verdict == WEFT_VERDICT_OUTSIDE
					   ? "the trace does not record how long an answer may take"
					   : "a promise was running when the trace ended, and might have resolved this one");
	/* A missing event may have resolved the promise, or an overwritten event may say what it waits for. */
	const struct weft__completeness *of = weft__completeness_of(f->completeness, f->model, root);
	if (weft__completeness_of(f->completeness, f->model, p)->lost || of->lost ||
	    (of->wrapped && finding->verdict == WEFT_VERDICT_UNKNOWN))
		finding->severity = WEFT_SEVERITY_INFORMATION;
	const size_t others = alike_count > 1 ? alike_count - 1 : count - 1;
	const bool is_cut = is_open || weft__completeness_of(f->completeness, f->model, root)->end_missing;
	const char *never = !is_cut ? "never resolved" : others > 0 ? "are pending" : "is pending";
	const char *name = weft__format_promise(f, p);
	weft__hang_add_chain(f, p);
	weft__hang_report_root(f, finding,
	    others > 0 ? weft__finding_text(f, "%s and %zu more %s", name, others, never)
		       : weft__finding_text(f, "%s %s", name, never));
	report_swallowed_cancel(f, finding, p);
	for (size_t i = 1; i < count && i <= WEFT__MAX_LINES; i++)
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, promises[blocked[i].promise].start_ns, blocked[i].promise,
		    "%s should resolve too, and waits for the same promise", weft__format_promise(f, blocked[i].promise));
	if (count > WEFT__MAX_LINES + 1)
		weft__evidence_add_more(f, WEFT_EVIDENCE_VICTIM, count - 1 - WEFT__MAX_LINES, "");
	if (alike_count > 1)
		report_alike(f, alike, blocked, alike_count);
}

/* Leaves out waits that may last forever: waits for a signal of the operating system, and waits for a client. */
static void skip_endless_waits(struct weft__finder *f)
{
	for (size_t i = 0; i < f->root_causes.blocked.count; i++) {
		const uint32_t root = f->root_causes.blocked.items[i].root;
		const uint8_t kind = f->model->promises[root].kind;
		if (kind == WEFT_KIND_OS_SIGNAL || kind == WEFT_KIND_LISTEN || kind == WEFT_KIND_ACCEPT)
			f->reported[root] = true;
	}
}

void weft__find_hang(struct weft__finder *f)
{
	const struct weft__blocked_promise *blocked = f->root_causes.blocked.items;
	struct alike alike = {.pattern_of = NULL};
	if (f->root_causes.blocked.count > 0) { /* get_reason() needs these */
		weft__finding_patterns(f);
		sort_sleeps(f);
	}
	if (f->no_memory)
		return;
	skip_endless_waits(f);
	gather_alike(f, &alike);
	for (size_t i = 0, count;
	     i < f->root_causes.blocked.count && weft__finding_may_continue(f, i, f->root_causes.blocked.count); i += count) {
		uint32_t root = blocked[i].root;
		count = weft__root_causes_blocked(&f->root_causes, root, &(const struct weft__blocked_promise *){NULL});
		if (!is_reported_here(f, root))
			continue;
		uint32_t alike_count = count_alike(f, &alike, &blocked[i]);
		if (alike_count > 0)
			report_hang(f, get_reason(f, root), &blocked[i], count, &alike, alike_count);
		if (alike_count > 1)
			f->no_memory |= !weft_idmap_set(&alike.groups, make_key(f, &alike, &blocked[i]), 0);
		f->reported[root] = true;
	}
	weft_idmap_finish(&alike.groups);
	if (weft__wait_graph_has_kind(&f->wait_graph, WEFT_KIND_TASK))
		weft__hang_task_find(f);
	if (weft__wait_graph_has_kind(&f->wait_graph, WEFT_KIND_THREAD))
		weft__hang_thread_find(f);
	if (weft__wait_graph_has_kind(&f->wait_graph, WEFT_KIND_TIMER))
		weft__overdue_find(f);
}
