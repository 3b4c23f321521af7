/* turns.h: who was asked, over a connection, and answered late.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_TURNS_H
#define WEFT_ANALYSIS_TURNS_H

#include "model/model.h"

/* The turn without whose answer the OS thread of a promise had nothing to do for at least half of a stretch of its time: what the
 * promise asked itself before what others did; NULL: there is none.  Linear in turns. */
const struct weft_turn *weft_turn_in(const struct weft_model *model, uint32_t promise, int64_t start_ns, int64_t end_ns);

/* What was written to a connection last before a time, or NULL.  A search. */
const struct weft_turn *weft_turn_before(const struct weft_model *model, uint32_t connection, int64_t time_ns);

/* When the answer came, or the connection was closed; INT64_MAX: neither. */
int64_t weft_turn_until(const struct weft_model *model, const struct weft_turn *turn);

/* For how long the OS thread that asked slept between the question and the answer; all of that time if the trace does not tell
 * when it sleeps.  Looks at the last 10,000 sleeps of that time. */
int64_t weft_turn_slept_ns(const struct weft_model *model, const struct weft_turn *turn, int64_t until_ns);

#endif
