/* notes.h: what is missing or wrong in a trace, and what that means for what one sees: for a bar in the window.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_NOTES_H
#define WEFT_VIEWER_NOTES_H

#include "model/model.h"

struct weft_note {
	const char *text;    /* "1,234 events were lost." */
	const char *meaning; /* "Promises that ended may look pending; ..." */
	bool serious;        /* the picture may be wrong, not only cut */
};

/* A zeroed one is empty. */
struct weft_notes {
	struct weft_note *notes; /* the most serious first */
	size_t count;
	struct weft_notes_private *priv;
};

/* What there is to say about the trace of a model; nothing, if all is well.  WEFT_ENOMEM: the notes are empty. */
int weft_notes_fill(struct weft_notes *notes, const struct weft_model *model, struct weft_error *err);
void weft_notes_finish(struct weft_notes *notes);

#endif
