/* diff.h: where two runs of a program part.
 *
 * Promises are aligned by what they are, not by their ids: by first label, place and kind, and by how they were created: by whom
 * (aligned in the same way), as the how-manieth of their sort.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_DIFF_H
#define WEFT_ANALYSIS_DIFF_H

#include "model/model.h"

/* X(NAME, "name", "what it is"), most telling first. */
#define WEFT_DIFFERENCES(X)                                                                                                      \
	X(ORDER, "order", "the first place where the order of events parts")                                                     \
	X(END, "end", "a promise ends otherwise")                                                                                \
	X(MISSING, "missing", "promises of a sort that are in one run only, or fewer")                                           \
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
	int64_t a_time_ns, b_time_ns; /* where to look; -1: nowhere */
	const char *text;             /* one sentence */
};

struct weft_diff {
	struct weft_difference *differences; /* by kind, then by time */
	size_t count;
	size_t left_out; /* how many more there are of kinds that have plenty */
	size_t aligned;  /* promises */
};

/* Both models must have kept their binds where they were created.  On failure *out is untouched: WEFT_ENOMEM.  Near-linear. */
int weft_diff_create(struct weft_diff **out, const struct weft_model *a, const struct weft_model *b, struct weft_error *err);
void weft_diff_destroy(struct weft_diff *diff);
const char *weft_difference_name(enum weft_difference_kind kind);

#endif
