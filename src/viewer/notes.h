/* notes.h: what is missing or wrong in a trace, and what that means for what one sees: for a bar in the window.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_NOTES_H
#define WEFT_VIEWER_NOTES_H

#include "viewer/rows.h"

/* What there is to say about the trace of a model, the most serious first: rows of kind NOTE, of which those that are alarms say
 * that the picture may be wrong, not only cut.  No rows, if all is well.  WEFT_ENOMEM: there are no rows. */
int weft_notes_fill(struct weft_rows *rows, const struct weft_model *model, struct weft_error *err);

#endif
