/* unclosed.c: reports event loops that were closed before their handles.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

/* Returns how many handles that p awaited were still open when p ended; adds evidence for them if is_reporting. */
static size_t list_open_handles(struct weft__finder *f, uint32_t p, bool is_reporting)
{
	const struct weft_model *m = f->model;
	int64_t end_ns = weft_has_ended(&m->promises[p]) ? m->promises[p].end_ns : weft_model_until(m, p);
	size_t count = 0;
	for (uint32_t i = f->link_index.out_begin[p]; i < f->link_index.out_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.out[i]];
		if (link->kind != WEFT_LINK_AWAIT || f->link_index.ended_ns[link->to] <= end_ns)
			continue;
		if (is_reporting && count < WEFT__MAX_LINES)
			weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[link->to].start_ns, link->to,
			    "%s%s is created; it is open when the loop is closed", weft__format_promise(f, link->to),
			    weft__format_site_suffix(f, link->to));
		count++;
	}
	if (is_reporting && count > WEFT__MAX_LINES)
		weft__evidence_add_more(f, WEFT_EVIDENCE_CAUSE, count - WEFT__MAX_LINES, " that are open");
	return count;
}

/* Reports that a loop with open handles was closed.  A close that is still pending was refused by libuv and not retried. */
static void check_close(struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	size_t open = promise->kind == WEFT_KIND_CLOSE ? list_open_handles(f, p, false) : 0;
	if (open == 0)
		return;
	f->reported[p] = true;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_UNCLOSED, p, promise->start_ns, promise->end_ns);
	if (!finding)
		return;
	const char *how = weft_has_ended(promise)
			      ? weft__finding_text(f, "failed with \"%s\"", weft__format_text(f, promise->failure))
			      : "was refused";
	finding->weight = open;
	finding->title = weft__finding_text(f, "%s %s: %zu handle%s of the loop %s open%s", weft__format_promise(f, p), how, open,
	    weft__format_plural_s(open), open == 1 ? "is" : "are", weft__format_site_suffix(f, p));
	finding->next = "close the handles, and run the loop until their close callbacks have run, before you close the loop";
	list_open_handles(f, p, true);
	weft__finding_doubt_part(f, p, false);
}

void weft__find_unclosed(struct weft__finder *f)
{
	const uint32_t *failed = f->link_index.failed.items, *pending = f->wait_graph.pending.items;
	size_t failed_count = f->link_index.failed.count, pending_count = f->wait_graph.pending.count;
	bool any = weft__wait_graph_has_kind(&f->wait_graph, WEFT_KIND_CLOSE);
	for (size_t i = 0; i < failed_count && weft__finding_may_continue(f, i, failed_count); i++)
		check_close(f, failed[i]);
	for (size_t i = 0; any && i < pending_count && weft__finding_may_continue(f, i, pending_count); i++)
		check_close(f, pending[i]);
}
