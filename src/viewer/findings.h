/* findings.h: what a viewer does with findings (analysis/explain.h): a click on one leads to where it happened.
 *
 * Who shows them asks weft_explain() about viewer->model, in an OS thread of its own where the trace is large: a model that was
 * built is only read.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_FINDINGS_H
#define WEFT_VIEWER_FINDINGS_H

#include "analysis/explain.h"
#include "viewer/viewer.h"

/* Highlights all promises that a finding names, in place of what a search found. */
void weft_viewer_highlight_finding(struct weft_viewer *viewer, const struct weft_finding *finding);

/* The same, selects the end of its chain, and shows its time with a little around. */
void weft_viewer_go_to_finding(struct weft_viewer *viewer, const struct weft_finding *finding);

/* Selects and reveals the promise that a line is about, at its time, if it has them. */
void weft_viewer_go_to_evidence(struct weft_viewer *viewer, const struct weft_evidence *line);

/* Whether there is anywhere to go to. */
bool weft_viewer_has_evidence(const struct weft_viewer *viewer, const struct weft_evidence *line);

/* What stands above the lines of a role. */
const char *weft_evidence_heading(enum weft_evidence_role role);

/* When it was, as the viewer writes times; "" where the line has no time.  Returns `buf`. */
const char *weft_evidence_time(const struct weft_viewer *viewer, const struct weft_evidence *line, char buf[80]);

/* "2 findings", and what limits them: "events were lost"; one line.  Returns `buf`. */
const char *weft_findings_summary(const struct weft_findings *findings, char buf[200]);

#endif
