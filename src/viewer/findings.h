/* findings.h: shows the findings of a trace (analysis/findings/explain.h) as rows; a press on a row goes to the finding.
 *
 * viewer->questions has the questions to ask.  The application answers the questions with weft_explain() or
 * weft_explain_promise() on viewer->model, best in another thread, because an analysis only reads a model.  The application
 * reports the progress and the answer to the viewer.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_FINDINGS_H
#define WEFT_VIEWER_FINDINGS_H

#include "analysis/findings/explain.h"
#include "viewer/rows.h"

/* Number of findings that are listed before the user asks for more. */
#define WEFT_FINDINGS_SHOWN 20u

/* Fills rows with the answer to "why?" if the user asked, the differences if two traces are compared, and the findings of the
 * trace.  On failure (WEFT_ENOMEM) there are no rows. */
int weft_findings_fill(struct weft_rows *rows, struct weft_viewer *viewer, struct weft_error *err);

/* Returns the number of findings of the trace, including unlisted ones; 0 until the findings are known. */
size_t weft_findings_count(const struct weft_viewer *viewer);

/* Asks why the selected promise is in its state. */
void weft_viewer_ask_why(struct weft_viewer *viewer);

/* Report that the application has started to answer a question, and its progress. */
void weft_viewer_asked(struct weft_viewer *viewer, enum weft_ask ask);
void weft_viewer_progress(struct weft_viewer *viewer, enum weft_ask ask, unsigned percent);

/* Passes an answer to the viewer, which then owns the answer; NULL means that memory was missing.  For the question "why?", the
 * first finding is opened and highlighted. */
void weft_viewer_answer(struct weft_viewer *viewer, enum weft_ask ask, struct weft_findings *answer);

#endif
