/* starvation.c: promises that were ready for long while many others ran.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/search.h"

enum { OVERTAKERS = 20 };

/* Promises of one sort that ran instead. */
struct instead {
	uint32_t sort, first;
	size_t count;
	int64_t ran_ns;
};

/* For how long p ran from that time on, before `until_ns`. */
static int64_t ran_ns(const struct weft_model *m, uint32_t p, int64_t from_ns, int64_t until_ns)
{
	const uint32_t end = m->promises[p + 1].runs;
	const uint32_t run = (uint32_t)WEFT_FIRST(i, m->promises[p].runs, end, m->runs[i].end_ns > from_ns);
	return run < end && m->runs[run].start_ns <= until_ns
		   ? weft_max_ns(weft_min_ns(m->runs[run].end_ns, until_ns) - weft_max_ns(m->runs[run].start_ns, from_ns), 0)
		   : 0;
}

/* What was read on that OS thread meanwhile says who ran: of which sort most were, and the others. */
static size_t find_instead(const struct weft__finder *f, const struct weft__ready *r, struct instead list[WEFT__LINES_KEPT])
{
	const struct weft_model *m = f->model;
	size_t count = 0;
	for (size_t l = weft_link_from(m, r->from_ns); l < m->link_count && m->links[l].time_ns < r->to_ns; l++) {
		const struct weft_link *link = &m->links[l];
		if (link->kind != WEFT_LINK_READ || link->stream != r->stream || link->from == r->promise ||
		    link->from == WEFT_SYSTEM)
			continue;
		size_t at = 0;
		while (at < count && list[at].sort != f->sorts.of[link->from])
			at++;
		if (at == WEFT__LINES_KEPT)
			continue;
		if (at == count)
			list[count++] = (struct instead){f->sorts.of[link->from], link->from, 0, 0};
		list[at].count++;
		list[at].ran_ns += ran_ns(m, link->from, link->time_ns, r->to_ns);
	}
	for (size_t i = 1; i < count; i++) /* those that ran for longest come first */
		for (size_t k = i; k > 0 && list[k].ran_ns > list[k - 1].ran_ns; k--) {
			struct instead other = list[k];
			list[k] = list[k - 1];
			list[k - 1] = other;
		}
	return count;
}

static void tell_starvation(struct weft__finder *f, const struct weft__famine *famine)
{
	const struct weft__ready *longest = &famine->longest;
	uint32_t p = longest->promise;
	int64_t length_ns = longest->to_ns - longest->from_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_STARVATION, p, longest->from_ns, longest->to_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p), *length = weft__words_span(f, length_ns);
	for (size_t i = famine->first; i <= famine->last; i++)
		finding->weight += (uint64_t)(f->delays.starving[i].to_ns - f->delays.starving[i].from_ns);
	struct instead instead[WEFT__LINES_KEPT];
	const size_t instead_count = find_instead(f, longest, instead);
	const char *most = instead_count > 0 ? weft__finding_text(f, ", above all %s%s", weft__words_sort(f, instead[0].first),
						   weft__words_at(f, instead[0].first))
					     : "";
	finding->title =
	    weft__finding_text(f, "%s%s was ready to run for %s and did not: %zu that became ready later ran before it%s", name,
		at, length, famine->overtakers, most);
	finding->next =
	    "let those run first that were ready first, or let code that wakes others again and again leave a turn to the rest "
	    "(weft_promise_pause())";
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, longest->from_ns, p, "%s becomes ready: %s ended", name, weft__words_name(f, longest->input));
	for (size_t i = 0; i < instead_count; i++)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, WEFT_NO_TIME, instead[i].first,
		    "%s%s ran meanwhile, %zu time%s, for %s in all", weft__words_sort(f, instead[i].first),
		    weft__words_at(f, instead[i].first), instead[i].count, weft__words_s(instead[i].count),
		    weft__words_span(f, instead[i].ran_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, longest->to_ns, p, "%s runs, %s later", name, length);
	size_t shown = 0;
	for (size_t i = famine->first; i <= famine->last && shown < WEFT__LINES_KEPT; i++) {
		const struct weft__ready *r = &f->delays.starving[i];
		if (r->promise == p)
			continue;
		shown++;
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, r->from_ns, r->promise, "%s was ready for %s, too",
		    weft__words_name(f, r->promise), weft__words_span(f, r->to_ns - r->from_ns));
	}
	if (famine->victims > shown + 1)
		weft__words_more(f, WEFT_EVIDENCE_VICTIM, famine->victims - shown - 1, "");
}

void weft__find_starvation(struct weft__finder *f)
{
	const struct weft__delays *d = &f->delays;
	for (size_t i = 0; i < d->famines.count && weft__finding_goes_on(f, i, d->famines.count); i++)
		if (d->famines.items[i].overtakers >= OVERTAKERS && !weft__delays_slept(d, &d->famines.items[i].longest))
			tell_starvation(f, &d->famines.items[i]);
}
