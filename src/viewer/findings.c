/* findings.c: what a viewer does with findings.  SPDX-License-Identifier: ISC */
#include "viewer/findings.h"

#include <stdio.h>

#include "viewer/private.h"

static void highlight(struct weft_viewer *v, uint32_t promise)
{
	if (weft__viewer_has(v, promise))
		weft_view_set_highlight(v->view, promise, true);
}

void weft_viewer_highlight_finding(struct weft_viewer *v, const struct weft_finding *finding)
{
	weft__viewer_end_search(v);
	weft_view_unhighlight(v->view);
	highlight(v, finding->promise);
	highlight(v, finding->root);
	for (size_t i = 0; i < finding->evidence_count; i++)
		highlight(v, finding->evidence[i].promise);
	v->highlighting = v->view->found > 0 ? WEFT_HIGHLIGHT_FINDING : WEFT_HIGHLIGHT_NONE;
	weft__viewer_highlighted(v);
}

void weft_viewer_go_to_finding(struct weft_viewer *v, const struct weft_finding *finding)
{
	int64_t margin_ns = (finding->end_ns - finding->start_ns) / 10 + 1000;
	weft_viewer_highlight_finding(v, finding);
	weft_viewer_show(v, weft__add_ns(finding->start_ns, -margin_ns), weft__add_ns(finding->end_ns, margin_ns));
	uint32_t promise = weft__viewer_has(v, finding->root) ? finding->root : finding->promise;
	if (weft__viewer_has(v, promise))
		weft_viewer_select_and_reveal(v, promise);
}

bool weft_viewer_has_evidence(const struct weft_viewer *v, const struct weft_evidence *line)
{
	return weft__viewer_has(v, line->promise) || line->time_ns != WEFT_NO_TIME;
}

void weft_viewer_go_to_evidence(struct weft_viewer *v, const struct weft_evidence *line)
{
	int64_t from, to;
	if (weft__viewer_has(v, line->promise))
		weft_viewer_select_and_reveal(v, line->promise);
	if (line->time_ns == WEFT_NO_TIME)
		return;
	weft_viewer_times(v, &from, &to);
	if (line->time_ns < from || line->time_ns > to)
		weft_viewer_show(v, weft__add_ns(line->time_ns, -(to - from) / 2), weft__add_ns(line->time_ns, (to - from) / 2));
	/* The line of the pointer stands there until the pointer moves. */
	weft__viewer_guide(v, true, line->time_ns);
}

const char *weft_evidence_heading(enum weft_evidence_role role)
{
	static const char *const headings[] = {
	    [WEFT_EVIDENCE_CHAIN] = "Who waits for whom",
	    [WEFT_EVIDENCE_CAUSE] = "What happened",
	    [WEFT_EVIDENCE_VICTIM] = "Who had to wait",
	    [WEFT_EVIDENCE_NOTE] = "Also known",
	};
	return headings[role];
}

const char *weft_evidence_time(const struct weft_viewer *v, const struct weft_evidence *line, char buf[80])
{
	buf[0] = '\0';
	if (line->time_ns != WEFT_NO_TIME)
		weft_clock_print(buf, 80, v->model, &v->clock, line->time_ns, 1);
	return buf;
}

const char *weft_findings_summary(const struct weft_findings *findings, char buf[200])
{
	size_t count = findings->count + findings->left_out;
	char number[40] = "Nothing found";
	if (count > 0)
		snprintf(number, sizeof number, "%zu %s", count, count == 1 ? "finding" : "findings");
	snprintf(buf, 200, "%s%s%s", number, findings->doubt ? "; " : "", findings->doubt ? findings->doubt : "");
	return buf;
}
