/* twice.c: promises that were ended again after their end.  The first end counts, so the second was for nothing: an answer that
 * is sent twice, a callback that comes twice, what was used after its end.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"

/* Of one sort. */
struct again {
	uint32_t count, first_link;
};

/* Whether the link ends a promise that has ended before. */
static bool is_again(const struct weft__finder *f, const struct weft_link *link)
{
	const struct weft_promise *p = &f->model->promises[link->to];
	if (link->kind != WEFT_LINK_RESOLVE || link->to == WEFT_SYSTEM || p->end == WEFT_END_PENDING ||
	    p->end == WEFT_END_BECAME || weft_model_was_cancelled(f->model, p)) /* whose result may still come */
		return false;
	if (link->time_ns > p->end_ns)
		return true;
	/* At the same time: the first of them is its end. */
	for (uint32_t i = f->ties.in_begin[link->to]; i < f->ties.in_begin[link->to + 1]; i++) {
		const struct weft_link *other = &f->model->links[f->ties.in[i]];
		if (other->kind == WEFT_LINK_RESOLVE)
			return other != link;
	}
	return false;
}

static void tell_twice(struct weft__finder *f, const struct again *again)
{
	const struct weft_model *m = f->model;
	const struct weft_link *link = &m->links[again->first_link];
	uint32_t p = link->to;
	int64_t end_ns = m->promises[p].end_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_TWICE, p, end_ns, link->time_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p), *by = weft__words_name(f, link->from);
	const char *more =
	    again->count == 1 ? "" : weft__finding_text(f, ", and so were %" PRIu32 " more of its sort", again->count - 1);
	finding->weight = again->count;
	finding->title = weft__finding_text(
	    f, "%s%s was ended a second time, %s after its end%s", name, at, weft__words_span(f, link->time_ns - end_ns), more);
	finding->next = weft__finding_text(
	    f, "find the two ways on which it is ended: only the first counts, and the second may answer, or free, twice%s", at);
	weft__words_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, end_ns, p, "%s ends", name);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, link->time_ns, link->from, "%s%s ends it again", by, weft__words_at(f, link->from));
	weft__finding_doubt_part(f, p, false);
}

void weft__find_twice(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	if (m->anomalies[WEFT_ANOMALY_ENDED_TWICE] == 0)
		return;
	struct again *again = weft__finding_alloc(f, f->sorts.items.count, sizeof *again);
	for (size_t l = 0; again && l < m->link_count && weft__finding_goes_on(f, l, m->link_count); l++) {
		if (!is_again(f, &m->links[l]))
			continue;
		struct again *of = &again[f->sorts.of[m->links[l].to]];
		if (of->count++ == 0)
			of->first_link = (uint32_t)l;
	}
	for (size_t s = 0; again && s < f->sorts.items.count; s++)
		if (again[s].count > 0)
			tell_twice(f, &again[s]);
	free(again);
}
