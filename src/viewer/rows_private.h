/* rows_private.h: functions with which the files of src/viewer build rows.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_ROWS_PRIVATE_H
#define WEFT_VIEWER_ROWS_PRIVATE_H

#include "base/number.h"
#include "viewer/findings.h"

/* A viewer, and the rows that are written for it. */
struct weft__writer {
	struct weft_viewer *v;
	struct weft_rows *to;
};
#define WEFT__TEXT(...) weft__rows_text(w->to, __VA_ARGS__)

/* Clears the rows, and starts to add texts and rows. weft__rows_end() then publishes all of them or, without memory, none. */
bool weft__rows_begin(struct weft_rows *rows);

/* Sets the topic of the rows that are added next; the initial topic is WEFT_ROWS_OF_FINDINGS. */
void weft__rows_set_topic(struct weft_rows *rows, enum weft_rows_topic topic);
int weft__rows_end(struct weft_rows *rows, struct weft_error *err);

/* Adds a text, which is cut at 600 bytes.  Returns the text's handle for weft__rows_add(); a handle of 0 is the text "". */
__attribute__((format(printf, 2, 3))) size_t weft__rows_text(struct weft_rows *rows, const char *format, ...);

/* Adds a row, which the caller must complete before the next row is added.  Never returns NULL. */
struct weft_row *weft__rows_add(struct weft_rows *rows, enum weft_row_kind kind, size_t name, size_t value);

/* Adds the tag of a finding, such as "Stall, uncertain", and returns the tone of the finding's row (findings.c). */
size_t weft__rows_add_tag(struct weft_rows *rows, const struct weft_finding *finding);
enum weft_row_tone weft__finding_tone(const struct weft_finding *finding);

/* The source of evidence. */
struct weft__evidence_source {
	const struct weft_model *model;
	const struct weft_clock *clock;
	bool leads, of_answer; /* fields that the rows get, as also the number of the finding */
	uint32_t finding;
};

/* Adds rows for the evidence of a finding, the reason for doubt, and the advice. */
void weft__rows_add_evidence(
    struct weft_rows *rows, const struct weft_finding *finding, const struct weft__evidence_source *topic);

#endif
