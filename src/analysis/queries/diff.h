/* diff.h: finds the differences between two runs of a program.
 *
 * The promises of two runs are aligned by their properties, not by their ids.  Aligned promises have the same first label, site
 * (source_diff.h) and kind, their creators are aligned, and each has the same position among the promises of its type that its
 * creator made.  Numbers in labels are ignored unless most labels of their pattern are in both runs, because port numbers and
 * durations change from run to run.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_DIFF_H
#define WEFT_ANALYSIS_QUERIES_DIFF_H

#include "model/model.h"

/* X(NAME, "name", "meaning"): the kinds of differences, the most significant first. */
#define WEFT_DIFFERENCES(X)                                                                                                      \
	X(FINDING, "finding", "an alarm of weft explain that only one of the two runs has")                                      \
	X(ORDER, "order", "the first action at which the order of the two runs differs")                                         \
	X(END, "end", "a promise ends differently")                                                                              \
	X(MISSING, "missing", "the two runs have different numbers of promises of a type")                                       \
	X(COUNTER, "counter", "a counter's last value")                                                                          \
	X(LATENCY, "latency", "the median time of promises of a type differs")

enum weft_difference_kind {
#define WEFT_DIFFERENCE_ENUM(NAME, name, text) WEFT_DIFFERENCE_##NAME,
	WEFT_DIFFERENCES(WEFT_DIFFERENCE_ENUM)
#undef WEFT_DIFFERENCE_ENUM
	    WEFT_DIFFERENCE_KINDS
};

struct weft_difference {
	enum weft_difference_kind kind;
	uint32_t a, b;                /* promise of the first run; promise of the second run; or WEFT_NONE */
	int64_t a_time_ns, b_time_ns; /* time in each run that a viewer should show; -1 if there is none */
	const char *text;             /* one sentence */
};

struct weft_diff {
	struct weft_difference *differences; /* differences, sorted by kind, then by time */
	size_t count;
	size_t left_out; /* number of differences that are not listed because there are too many of their kind */
	size_t aligned;  /* number of promises of the first run that are aligned with a promise of the second run */
};

/* Compares two models, which must have been built without simplification.  Fails with WEFT_ENOMEM; then *out is unchanged.
 * Near-linear. */
int weft_diff_create(struct weft_diff **out, const struct weft_model *a, const struct weft_model *b, struct weft_error *err);
void weft_diff_destroy(struct weft_diff *diff);
const char *weft_difference_name(enum weft_difference_kind kind);

#endif
