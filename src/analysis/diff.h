/* diff.h: where two runs of a program part.
 *
 * A promise of one run is aligned with a promise of the other, whatever their ids: both have the same first label, place
 * (lines.h) and kind, aligned creators, and the same number among the promises of their sort that their creator made.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_DIFF_H
#define WEFT_ANALYSIS_DIFF_H

#include "model/model.h"

/* X(NAME, "name", "what it is"), most telling first. */
#define WEFT_DIFFERENCES(X)                                                                                                      \
	X(FINDING, "finding", "an alarm of explain.h that there is in one run only")                                             \
	X(ORDER, "order", "the first place where the order of events parts")                                                     \
	X(END, "end", "a promise ends differently")                                                                              \
	X(MISSING, "missing", "one run has more promises of a sort")                                                             \
	X(COUNTER, "counter", "a counter's last value")                                                                          \
	X(LATENCY, "latency", "how long promises of a sort take")

enum weft_difference_kind {
#define WEFT_DIFFERENCE_ENUM(NAME, name, text) WEFT_DIFFERENCE_##NAME,
	WEFT_DIFFERENCES(WEFT_DIFFERENCE_ENUM)
#undef WEFT_DIFFERENCE_ENUM
	    WEFT_DIFFERENCE_KINDS
};

struct weft_difference {
	enum weft_difference_kind kind;
	uint32_t a, b;                /* promises of the first run and of the second, or WEFT_NONE */
	int64_t a_time_ns, b_time_ns; /* where to look in each run; -1: there is no such place */
	const char *text;             /* one sentence */
};

struct weft_diff {
	struct weft_difference *differences; /* by kind, then by time */
	size_t count;
	size_t left_out; /* how many more differences there are, of kinds of which only the first are listed */
	size_t aligned;  /* how many promises of the first run have a counterpart in the second */
};

/* Both models must have been built without simplification.  On failure *out is untouched: WEFT_ENOMEM.  Near-linear. */
int weft_diff_create(struct weft_diff **out, const struct weft_model *a, const struct weft_model *b, struct weft_error *err);
void weft_diff_destroy(struct weft_diff *diff);
const char *weft_difference_name(enum weft_difference_kind kind);

#endif
