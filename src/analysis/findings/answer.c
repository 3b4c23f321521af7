/* answer.c: why one promise is as it is.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

/* Of one that has ended. */
static void tell_end(struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	uint32_t last = f->ties.now[p];
	const struct weft_promise *promise = &m->promises[last];
	const char *how = promise->end == WEFT_END_FAILED ? "failed" : "was resolved";
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_ANSWER, p, m->promises[p].start_ns, f->ties.ended_ns[p]);
	if (!finding)
		return;
	finding->root = last;
	finding->title = weft__finding_text(f, "%s%s %s %s after its creation", weft__words_name(f, p), weft__words_at(f, p), how,
	    weft__words_span(f, promise->end_ns - m->promises[p].start_ns));
	weft__slow_tell(f, p, NULL);
	for (uint32_t q = p, left = 2 * WEFT__LINES_KEPT; q != last && left > 0; q = m->promises[q].became, left--)
		weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, m->promises[q].end_ns, q, "%s became %s", weft__words_name(f, q),
		    weft__words_name(f, m->promises[q].became));
	size_t readers = 0;
	for (uint32_t i = f->ties.in_begin[last]; i < f->ties.in_begin[last + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		const char *who = link->from == WEFT_SYSTEM ? "a callback from outside"
				  : link->from == last      ? "itself"
							    : weft__words_name(f, link->from);
		if (link->kind == WEFT_LINK_RESOLVE && link->time_ns == promise->end_ns)
			weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, link->time_ns, link->from, "%s was %s by %s%s%s",
			    weft__words_name(f, last), promise->end == WEFT_END_FAILED ? "failed" : "resolved", who,
			    promise->failure == WEFT_NONE ? "" : ": ",
			    promise->failure == WEFT_NONE ? "" : weft__words_text(f, promise->failure));
		if (link->kind == WEFT_LINK_READ && readers++ < WEFT__LINES_KEPT)
			weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, link->time_ns, link->from, "%s read it", who);
	}
	if (readers > WEFT__LINES_KEPT)
		weft__words_more(f, WEFT_EVIDENCE_NOTE, readers - WEFT__LINES_KEPT, " that read it");
	if (readers == 0 && promise->end == WEFT_END_FAILED) /* most results need no reader; an error does */
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE, "nobody read it");
}

/* Whether it only serves others until somebody ends it: that it is pending wants no reason. */
static bool is_open(const struct weft__finder *f, uint32_t p)
{
	const unsigned kind = f->model->promises[p].kind;
	return weft_kind_has(kind, WEFT_TRAIT_ENDLESS) && weft_kind_has(kind, WEFT_TRAIT_OUTSIDE | WEFT_TRAIT_CONDITION) &&
	       f->chains.root[p] == p;
}

static void tell_open(struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const int64_t until_ns = weft_model_until(m, p);
	const uint32_t run = weft_run_before(m, p, until_ns);
	const char *name = weft__words_name(f, p);
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_ANSWER, p, m->promises[p].start_ns, until_ns);
	if (!finding)
		return;
	finding->root = p;
	const char *ran = run == WEFT_NONE
			      ? "never ran"
			      : weft__finding_text(f, "last ran %s before", weft__words_span(f, until_ns - m->runs[run].end_ns));
	finding->title = weft__finding_text(
	    f, "%s%s is pending at the end, as it may be until somebody ends it: it %s", name, weft__words_at(f, p), ran);
	finding->next = "this is no fault; if it should have ended, find out who should have closed it";
	uint32_t last = WEFT_NONE;
	size_t waiters = 0;
	for (uint32_t i = f->ties.in_begin[p]; i < f->ties.in_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind == WEFT_LINK_SIGNAL && link->from != WEFT_SYSTEM)
			last = f->ties.in[i];
		if (link->kind == WEFT_LINK_AWAIT && link->from != WEFT_SYSTEM && weft_model_await_end(m, link) >= until_ns &&
		    waiters++ < WEFT__LINES_KEPT)
			weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, link->time_ns, link->from, "%s%s waits for it",
			    weft__words_name(f, link->from), weft__words_at(f, link->from));
	}
	if (waiters > WEFT__LINES_KEPT)
		weft__words_more(f, WEFT_EVIDENCE_CHAIN, waiters - WEFT__LINES_KEPT, " that wait for it");
	if (last != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->links[last].time_ns, m->links[last].from,
		    "%s%s signals it for the last time", weft__words_name(f, m->links[last].from),
		    weft__words_at(f, m->links[last].from));
	weft__finding_doubt_part(f, p, true);
}

/* Of one that is pending. */
static void tell_pending(struct weft__finder *f, uint32_t p)
{
	const struct weft__chains *c = &f->chains;
	uint32_t asked = f->asked;
	bool should = f->model->promises[p].flags & WEFT_PROMISE_NEVER_RESOLVED;
	struct weft_finding *finding = weft__finding_begin(f, should ? WEFT_FINDING_HANG : WEFT_FINDING_ANSWER, asked,
	    f->model->promises[asked].start_ns, weft_model_until(f->model, asked));
	if (!finding)
		return;
	finding->root = c->root[p];
	finding->verdict = c->verdict[p];
	weft__finding_doubt_part(f, p, true);
	weft__finding_doubt_part(f, c->root[p], true);
	const char *what = weft__finding_text(f, "%s%s %s", weft__words_name(f, asked),
	    c->root[p] == asked ? weft__words_at(f, asked) : "", should ? "never resolved" : "is pending at the end");
	weft__hang_chain(f, p);
	if (finding->verdict == WEFT_VERDICT_CYCLE) {
		finding->title = weft__finding_text(f, "%s: it waits for promises that wait for each other in a circle", what);
		finding->next = "weft explain, without --promise, tells of the circle";
	} else {
		weft__hang_root(f, finding, what);
	}
}

void weft__find_answer(struct weft__finder *f)
{
	uint32_t p = f->ties.now[f->asked];
	if (f->asked == WEFT_SYSTEM || f->ties.ended_ns[p] != WEFT_NEVER)
		tell_end(f, f->asked);
	else if (weft__waiting_in_circle(&f->waiting, p))
		weft__cycle_tell(f, f->chains.root[p]);
	else if (is_open(f, f->asked))
		tell_open(f, f->asked);
	else
		tell_pending(f, p);
}
