/* summary_panel.h: shows the summary of the trace (analysis/queries/summary.h) as rows, which are the first text that a user
 * sees.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_SUMMARY_PANEL_H
#define WEFT_VIEWER_SUMMARY_PANEL_H

#include "viewer/rows.h"

/* Fills rows with the summary of the trace.  A press on a sentence selects its subject and shows its time; a press on a finding
 * goes to the finding and opens it.  On failure (WEFT_ENOMEM) there are no rows. */
int weft_summary_fill(struct weft_rows *rows, const struct weft_viewer *viewer, struct weft_error *err);

#endif
