/* double_resolve.c: finds promises that were resolved again after their end.
 *
 * Only the first end of a promise has an effect.  Typical causes are an answer that is sent twice, a callback that is called
 * twice, or a use after free.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"

/* The promises of one type that were resolved again after their end. */
struct double_end {
	uint32_t count, first_link;
};

/* Returns whether the link resolves a promise that had already ended. */
static bool is_double_end(const struct weft__finder *f, const struct weft_link *link)
{
	const struct weft_promise *p = &f->model->promises[link->to];
	if (link->kind != WEFT_LINK_RESOLVE || link->to == WEFT_SYSTEM || p->end == WEFT_END_PENDING ||
	    p->end == WEFT_END_BECAME ||
	    weft_model_was_cancelled(f->model, p)) /* the result of a cancelled operation may still arrive */
		return false;
	if (link->time_ns > p->end_ns)
		return true;
	/* If two links have the same time, the first of them ended the promise. */
	for (uint32_t i = f->link_index.in_begin[link->to]; i < f->link_index.in_begin[link->to + 1]; i++) {
		const struct weft_link *other = &f->model->links[f->link_index.in[i]];
		if (other->kind == WEFT_LINK_RESOLVE)
			return other != link;
	}
	return false;
}

static void report_double_end(struct weft__finder *f, const struct double_end *double_end)
{
	const struct weft_model *m = f->model;
	const struct weft_link *link = &m->links[double_end->first_link];
	uint32_t p = link->to;
	int64_t end_ns = m->promises[p].end_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_TWICE, p, end_ns, link->time_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p),
		   *by = weft__format_promise(f, link->from);
	const char *late = weft__format_duration(f, link->time_ns - end_ns);
	finding->weight = double_end->count;
	if (double_end->count == 1)
		finding->title = weft__finding_text(f, "%s was resolved a second time, %s after its end%s", name, late, at);
	else
		finding->title = weft__finding_text(f, "%s and %" PRIu32 " more were resolved a second time, %s after its end%s",
		    name, double_end->count - 1, late, at);
	finding->next = weft__finding_text(f,
	    "find the two code paths that end the promise, and check that the second does not answer or free memory again%s", at);
	weft__evidence_add_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, end_ns, p, "%s ends", name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, link->time_ns, link->from, "%s%s ends this promise again", by,
	    weft__format_site_suffix(f, link->from));
	weft__finding_doubt_part(f, p, false);
}

void weft__find_twice(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	if (m->anomalies[WEFT_ANOMALY_ENDED_TWICE] == 0)
		return;
	struct double_end *double_end = weft__finding_alloc(f, f->types.items.count, sizeof *double_end);
	for (size_t l = 0; double_end && l < m->link_count && weft__finding_may_continue(f, l, m->link_count); l++) {
		if (!is_double_end(f, &m->links[l]))
			continue;
		struct double_end *of = &double_end[f->types.of[m->links[l].to]];
		if (of->count++ == 0)
			of->first_link = (uint32_t)l;
	}
	for (size_t s = 0; double_end && s < f->types.items.count; s++)
		if (double_end[s].count > 0)
			report_double_end(f, &double_end[s]);
	free(double_end);
}
