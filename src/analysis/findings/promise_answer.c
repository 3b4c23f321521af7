/* promise_answer.c: explains how one promise ended or why it is pending (`weft explain --promise=ID`).
 * SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"
#include "analysis/index/account.h"

/* Adds how the promise spent its own time: the numbers of `weft stats` and `weft path`. */
static void report_states(struct weft__finder *f, uint32_t p)
{
	struct weft_state_times own;
	if (p == WEFT_SYSTEM)
		return;
	if (!weft_account_measure_life(f->link_index.accounts, p, &own)) {
		f->no_memory = true;
		return;
	}
	weft__finding_evidence(f, WEFT_EVIDENCE_TIME, WEFT_NO_TIME, p,
	    "the promise was waiting for %s, ready for %s and running for %s", weft__format_duration(f, own.waiting_ns),
	    weft__format_duration(f, own.ready_ns), weft__format_duration(f, own.running_ns));
}

/* Reports how a promise ended. */
static void report_end(struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	uint32_t last = f->link_index.final[p];
	const struct weft_promise *promise = &m->promises[last];
	const char *how = promise->end == WEFT_END_FAILED ? "failed" : "was resolved";
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_ANSWER, p, m->promises[p].start_ns, f->link_index.ended_ns[p]);
	if (!finding)
		return;
	finding->root = last;
	finding->title = weft__finding_text(f, "%s %s %s after its creation", weft__format_promise(f, p), how,
	    weft__format_duration(f, promise->end_ns - m->promises[p].start_ns));
	weft__slow_report_times(f, p, NULL);
	report_states(f, p);
	for (uint32_t q = p, left = 2 * WEFT__MAX_LINES; q != last && left > 0; q = m->promises[q].became, left--)
		weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, m->promises[q].end_ns, q, "%s became %s",
		    weft__format_promise(f, q), weft__format_promise(f, m->promises[q].became));
	size_t readers = 0;
	for (uint32_t i = f->link_index.in_begin[last]; i < f->link_index.in_begin[last + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		const char *actor = link->from == WEFT_SYSTEM ? "a callback from outside"
				    : link->from == last      ? "itself"
							      : weft__format_promise(f, link->from);
		if (link->kind == WEFT_LINK_RESOLVE && link->time_ns == promise->end_ns)
			weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, link->time_ns, link->from, "%s was %s by %s%s%s",
			    weft__format_promise(f, last), promise->end == WEFT_END_FAILED ? "failed" : "resolved", actor,
			    promise->failure == WEFT_NONE ? "" : ": ",
			    promise->failure == WEFT_NONE ? "" : weft__format_text(f, promise->failure));
		if (link->kind == WEFT_LINK_READ && readers++ < WEFT__MAX_LINES)
			weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, link->time_ns, link->from, "%s read its result", actor);
	}
	if (readers > WEFT__MAX_LINES)
		weft__evidence_add_more(f, WEFT_EVIDENCE_NOTE, readers - WEFT__MAX_LINES, " that read its result");
	if (readers == 0 && promise->end == WEFT_END_FAILED) /* most results need no reader, but an error needs one */
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE, "no code read its error");
}

/* Returns whether p, such as a listener or a condition, stays pending until the program closes it, so that its pending state
 * needs no explanation. */
static bool is_open_ended(const struct weft__finder *f, uint32_t p)
{
	const unsigned kind = f->model->promises[p].kind;
	return weft_kind_has(kind, WEFT_TRAIT_ENDLESS) && weft_kind_has(kind, WEFT_TRAIT_OUTSIDE | WEFT_TRAIT_CONDITION) &&
	       f->root_causes.root[p] == p;
}

static void report_open_ended(struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const int64_t until_ns = weft_model_until(m, p);
	const uint32_t run = weft_run_before(m, p, until_ns);
	const char *name = weft__format_promise(f, p);
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_ANSWER, p, m->promises[p].start_ns, until_ns);
	if (!finding)
		return;
	finding->root = p;
	const char *ran = run == WEFT_NONE ? "never ran"
					   : weft__finding_text(f, "last ran %s before the end",
						 weft__format_duration(f, until_ns - m->runs[run].end_ns));
	finding->title = weft__finding_text(
	    f, "%s is pending at the end, which is normal for its kind; it %s%s", name, ran, weft__format_site_suffix(f, p));
	finding->next = "if the promise should have ended, find the code that should have closed it";
	uint32_t last = WEFT_NONE;
	size_t waiters = 0;
	for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_SIGNAL && link->from != WEFT_SYSTEM)
			last = f->link_index.in[i];
		if (link->kind == WEFT_LINK_AWAIT && link->from != WEFT_SYSTEM && weft_model_await_end(m, link) >= until_ns &&
		    waiters++ < WEFT__MAX_LINES)
			weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, link->time_ns, link->from, "%s%s waits for it",
			    weft__format_promise(f, link->from), weft__format_site_suffix(f, link->from));
	}
	if (waiters > WEFT__MAX_LINES)
		weft__evidence_add_more(f, WEFT_EVIDENCE_CHAIN, waiters - WEFT__MAX_LINES, " that wait for it");
	if (last != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->links[last].time_ns, m->links[last].from,
		    "%s%s signals it for the last time", weft__format_promise(f, m->links[last].from),
		    weft__format_site_suffix(f, m->links[last].from));
	weft__finding_doubt_part(f, p, true);
}

/* Reports why a promise is pending. */
static void report_pending(struct weft__finder *f, uint32_t p)
{
	const struct weft__root_causes *c = &f->root_causes;
	uint32_t asked_promise = f->asked_promise;
	bool should = f->model->promises[p].flags & WEFT_PROMISE_NEVER_RESOLVED;
	struct weft_finding *finding = weft__finding_begin(f, should ? WEFT_FINDING_HANG : WEFT_FINDING_ANSWER, asked_promise,
	    f->model->promises[asked_promise].start_ns, weft_model_until(f->model, asked_promise));
	if (!finding)
		return;
	finding->root = c->root[p];
	finding->verdict = c->verdict[p];
	weft__finding_doubt_part(f, p, true);
	weft__finding_doubt_part(f, c->root[p], true);
	const char *what =
	    weft__finding_text(f, "%s %s", weft__format_promise(f, asked_promise), should ? "never resolved" : "is pending");
	weft__hang_add_chain(f, p);
	if (finding->verdict == WEFT_VERDICT_CYCLE) {
		finding->title = weft__finding_text(f, "%s: it waits for promises that wait for each other in a cycle%s", what,
		    weft__format_site_suffix(f, asked_promise));
		finding->next = "run weft explain without --promise to see the cycle";
	} else {
		weft__hang_report_root(f, finding, what);
	}
}

void weft__find_answer(struct weft__finder *f)
{
	uint32_t p = f->link_index.final[f->asked_promise];
	if (f->asked_promise == WEFT_SYSTEM || f->link_index.ended_ns[p] != WEFT_NEVER)
		report_end(f, f->asked_promise);
	else if (weft__wait_graph_in_cycle(&f->wait_graph, p))
		weft__cycle_report(f, f->root_causes.root[p]);
	else if (is_open_ended(f, f->asked_promise))
		report_open_ended(f, f->asked_promise);
	else
		report_pending(f, p);
	if (f->findings.count)
		weft__evidence_add_memory(f, f->asked_promise);
}
