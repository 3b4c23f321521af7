/* diff.h: differences between two runs of a program.
 *
 * Promises of two runs are aligned by what they are, not by their ids.  They have the same first label, site (source_diff.h) and
 * kind, aligned creators, and the same position among the promises of their type that the creator made.  Numbers in labels do not
 * matter unless most labels of their pattern are in both runs: ports and durations change.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_DIFF_H
#define WEFT_ANALYSIS_QUERIES_DIFF_H

#include "model/model.h"

/* X(NAME, "name", "meaning"), most significant first. */
#define WEFT_DIFFERENCES(X)                                                                                                      \
	X(FINDING, "finding", "an alarm of weft explain that only one run has")                                                  \
	X(ORDER, "order", "the first place where the order of events differs")                                                   \
	X(END, "end", "a promise ends differently")                                                                              \
	X(MISSING, "missing", "one run has more promises of a type")                                                             \
	X(COUNTER, "counter", "a counter's last value")                                                                          \
	X(LATENCY, "latency", "how long promises of a type take")

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
	size_t left_out; /* number of differences that are not listed */
	size_t aligned;  /* promises of the first run that are aligned with one of the second */
};

/* Compares two models, which must have been built without simplification.  Fails with WEFT_ENOMEM, and then leaves *out
 * untouched. Near-linear. */
int weft_diff_create(struct weft_diff **out, const struct weft_model *a, const struct weft_model *b, struct weft_error *err);
void weft_diff_destroy(struct weft_diff *diff);
const char *weft_difference_name(enum weft_difference_kind kind);

#endif
