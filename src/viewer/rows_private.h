/* rows_private.h: functions with which the files of viewer/ build rows.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_ROWS_PRIVATE_H
#define WEFT_VIEWER_ROWS_PRIVATE_H

#include "base/number.h"
#include "viewer/findings.h"

/* A viewer and the rows that are written for it. */
struct weft__writer {
	struct weft_viewer *v;
	struct weft_rows *to;
};
#define WEFT__TEXT(...) weft__rows_text(w->to, __VA_ARGS__)

/* Clears rows and starts adding texts and rows.  weft__rows_end() then publishes all of them or, without memory, none. */
bool weft__rows_begin(struct weft_rows *rows);

/* Sets the topic of the rows added next; the initial one is WEFT_ROWS_OF_FINDINGS. */
void weft__rows_set_topic(struct weft_rows *rows, enum weft_rows_topic topic);
int weft__rows_end(struct weft_rows *rows, struct weft_error *err);

/* Adds a text, cut at 600 bytes.  Returns its handle for weft__rows_add(); 0 is "". */
__attribute__((format(printf, 2, 3))) size_t weft__rows_text(struct weft_rows *rows, const char *format, ...);

/* Adds a row, which the caller must complete before the next is added.  Never returns NULL. */
struct weft_row *weft__rows_add(struct weft_rows *rows, enum weft_row_kind kind, size_t name, size_t value);

/* findings.c: adds the tag of a finding, such as "Stall, uncertain"; returns the tone of its row. */
size_t weft__rows_add_tag(struct weft_rows *rows, const struct weft_finding *finding);
enum weft_row_tone weft__finding_tone(const struct weft_finding *finding);

/* The source of evidence. */
struct weft__evidence_source {
	const struct weft_model *model;
	const struct weft_clock *clock;
	bool leads, of_answer; /* for the rows, as is the number of the finding */
	uint32_t finding;
};

/* Adds the evidence of a finding, the reason for doubt, and the advice. */
void weft__rows_add_evidence(
    struct weft_rows *rows, const struct weft_finding *finding, const struct weft__evidence_source *topic);

#endif
