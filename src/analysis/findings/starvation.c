/* starvation.c: promises that were ready for long while many others ran.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

enum { OVERTAKERS = 20 };

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
	finding->title =
	    weft__finding_text(f, "%s%s was ready to run for %s and did not: %zu that became ready later ran before it", name, at,
		length, famine->overtakers);
	finding->next =
	    "let those run first that were ready first, or let code that wakes others again and again leave a turn to the rest "
	    "(weft_promise_pause())";
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, longest->from_ns, p, "%s becomes ready: %s ended", name, weft__words_name(f, longest->input));
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
