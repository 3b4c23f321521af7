/* findings.h: what went wrong in a trace (analysis/explain.h), as rows that lead there.
 *
 * The viewer says what is to be asked: viewer->questions.  The application asks weft_explain() or weft_explain_promise() about
 * viewer->model, where it holds up nobody: a model that was built is only read.  It hands back how far that is, and the answer.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_FINDINGS_H
#define WEFT_VIEWER_FINDINGS_H

#include "analysis/explain.h"
#include "viewer/rows.h"

/* So many findings are listed before the user asks for more. */
#define WEFT_FINDINGS_SHOWN 20u

/* Fills rows with the answer to "why?", if it was asked, with where two traces part, if two are compared, and with what went
 * wrong in the trace.  WEFT_ENOMEM: there are no rows.
 */
int weft_findings_fill(struct weft_rows *rows, struct weft_viewer *viewer, struct weft_error *err);

/* How many there are in the trace, also those not listed; 0 until that is known. */
size_t weft_findings_count(const struct weft_viewer *viewer);

/* Asks why the selected promise is as it is. */
void weft_viewer_ask_why(struct weft_viewer *viewer);

/* A new question is being asked; so much of it is done. */
void weft_viewer_asked(struct weft_viewer *viewer, enum weft_ask ask);
void weft_viewer_progress(struct weft_viewer *viewer, enum weft_ask ask, unsigned percent);

/* The answer to what is being asked, which is now the viewer's; NULL: there was no memory.  To "why?" the first finding is opened
 * and highlighted. */
void weft_viewer_answer(struct weft_viewer *viewer, enum weft_ask ask, struct weft_findings *answer);

#endif
