/* warnings.h: describes missing or contradictory parts of a trace, and their consequences, for a bar in the window.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_WARNINGS_H
#define WEFT_VIEWER_WARNINGS_H

#include "viewer/rows.h"

/* Fills rows with notes about the trace of a model, the most serious first; no rows if the trace is complete.  Notes with the
 * tone ALARM mean that the picture may be wrong, and not only incomplete.  On failure (WEFT_ENOMEM) there are no rows. */
int weft_notes_fill(struct weft_rows *rows, const struct weft_model *model, struct weft_error *err);

#endif
