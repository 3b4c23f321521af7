/* unclosed.c: loops that were closed before their handles were.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

/* Calls tell() for each that the promise awaited and that had not ended when it did; returns how many. */
static size_t list_open(struct weft__finder *f, uint32_t p, bool tell)
{
	const struct weft_model *m = f->model;
	int64_t end_ns = weft_has_ended(&m->promises[p]) ? m->promises[p].end_ns : weft_model_until(m, p);
	size_t count = 0;
	for (uint32_t i = f->ties.out_begin[p]; i < f->ties.out_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.out[i]];
		if (link->kind != WEFT_LINK_AWAIT || f->ties.ended_ns[link->to] <= end_ns)
			continue;
		if (tell && count < WEFT__LINES_KEPT)
			weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[link->to].start_ns, link->to,
			    "%s%s is created, and is still open when the loop is closed", weft__words_name(f, link->to),
			    weft__words_at(f, link->to));
		count++;
	}
	if (tell && count > WEFT__LINES_KEPT)
		weft__words_more(f, WEFT_EVIDENCE_CAUSE, count - WEFT__LINES_KEPT, " that are still open");
	return count;
}

/* Also one that is pending: the loop was refused, and was not asked to close again. */
static void look_at(struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	size_t open = promise->kind == WEFT_KIND_CLOSE ? list_open(f, p, false) : 0;
	if (open == 0)
		return;
	f->told[p] = true;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_UNCLOSED, p, promise->start_ns, promise->end_ns);
	if (!finding)
		return;
	const char *how = weft_has_ended(promise)
			      ? weft__finding_text(f, "failed with \"%s\"", weft__words_text(f, promise->failure))
			      : "was refused, and not asked for again";
	finding->weight = open;
	finding->title = weft__finding_text(f, "%s%s %s: %zu handle%s of the loop %s not closed", weft__words_name(f, p),
	    weft__words_at(f, p), how, open, weft__words_s(open), open == 1 ? "was" : "were");
	finding->next = "close them, and run the loop until their close callbacks have been called, before the loop is closed";
	list_open(f, p, true);
	weft__finding_doubt_part(f, p, false);
}

void weft__find_unclosed(struct weft__finder *f)
{
	const uint32_t *failed = f->ties.failed.items, *pending = f->waiting.pending.items;
	size_t failed_count = f->ties.failed.count, pending_count = f->waiting.pending.count;
	bool any = weft__waiting_any(&f->waiting, WEFT_KIND_CLOSE);
	for (size_t i = 0; i < failed_count && weft__finding_goes_on(f, i, failed_count); i++)
		look_at(f, failed[i]);
	for (size_t i = 0; any && i < pending_count && weft__finding_goes_on(f, i, pending_count); i++)
		look_at(f, pending[i]);
}
