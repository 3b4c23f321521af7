/* rows_private.h: how the files of viewer/ make rows.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_ROWS_PRIVATE_H
#define WEFT_VIEWER_ROWS_PRIVATE_H

#include "base/number.h"
#include "viewer/findings.h"

/* Who writes rows of what a viewer shows, and a text of theirs. */
struct weft__writer {
	struct weft_viewer *v;
	struct weft_rows *to;
};
#define WEFT__TEXT(...) weft__rows_text(w->to, __VA_ARGS__)

/* Forgets what rows had; then texts and rows are added, and weft__rows_end() makes them rows, or none at all without memory. */
bool weft__rows_begin(struct weft_rows *rows);

/* What the rows that are added from now on are about; first, of findings. */
void weft__rows_of(struct weft_rows *rows, enum weft_rows_of of);
int weft__rows_end(struct weft_rows *rows, struct weft_error *err);

/* A text, cut at 600 bytes, as a number that weft__rows_add() takes; 0 is "". */
__attribute__((format(printf, 2, 3))) size_t weft__rows_text(struct weft_rows *rows, const char *format, ...);

/* Adds a row, to be completed before the next one is added; never NULL. */
struct weft_row *weft__rows_add(struct weft_rows *rows, enum weft_row_kind kind, size_t name, size_t value);

/* How evidence is told of. */
struct weft__evidence_of {
	const struct weft_model *model;
	const struct weft_clock *clock;
	bool leads, of_answer; /* of its rows, and likewise the finding's number; the line is that of the evidence */
	uint32_t finding;
};

/* Adds how one knows of a finding, why it is not certain, and what to look at next. */
void weft__rows_add_evidence(struct weft_rows *rows, const struct weft_finding *finding, const struct weft__evidence_of *of);

#endif
