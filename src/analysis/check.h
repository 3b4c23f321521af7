/* check.h: rules for a trace, as CI has them: `pending=0`, `stall<10ms`, `p99(disk.read)<2ms`, `counter(errors)=0`.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_CHECK_H
#define WEFT_ANALYSIS_CHECK_H

#include "model/model.h"

/* X(NAME, "name", has an argument, is a time, "what it is") */
#define WEFT_MEASURES(X)                                                                                                         \
	X(PENDING, "pending", 0, 0,                                                                                              \
	    "promises, with (LABEL) of that label, that should have been resolved and were not; "                                \
	    "with a label: that did not come to their end")                                                                      \
	X(FAILED, "failed", 0, 0, "promises, with (LABEL) of that label, that failed")                                           \
	X(COUNT, "count", 0, 0, "promises, with (LABEL) of that label")                                                          \
	X(FINDINGS, "findings", 0, 0, "what weft explain finds for certain; with (KIND) of that kind, as findings(leak)")        \
	X(LOST, "lost", 0, 0, "events known to be missing")                                                                      \
	X(STALL, "stall", 0, 1, "the longest that a promise ran, or a pause lasted")                                             \
	X(P50, "p50", 1, 1, "the median life of those of that label that ended")                                                 \
	X(P90, "p90", 1, 1, "their 90th percentile, by nearest rank")                                                            \
	X(P99, "p99", 1, 1, "their 99th percentile")                                                                             \
	X(MAX, "max", 1, 1, "the longest life of those of that label")                                                           \
	X(COUNTER, "counter", 1, 0, "a counter's last value")

enum weft_measure {
#define WEFT_MEASURE_ENUM(NAME, name, argument, time, text) WEFT_MEASURE_##NAME,
	WEFT_MEASURES(WEFT_MEASURE_ENUM)
#undef WEFT_MEASURE_ENUM
	    WEFT_MEASURES_END
};

enum weft_relation { WEFT_LESS, WEFT_LESS_EQUAL, WEFT_EQUAL, WEFT_NOT_EQUAL, WEFT_MORE_EQUAL, WEFT_MORE };

struct weft_rule {
	enum weft_measure measure;
	enum weft_relation relation;
	bool has_argument;
	struct weft_str argument; /* points into the text */
	int64_t limit;            /* a number, or ns */
	bool is_time;
};

enum weft_outcome { WEFT_RULE_KEPT, WEFT_RULE_BROKEN, WEFT_RULE_UNKNOWN };

struct weft_checked {
	enum weft_outcome outcome; /* unknown: there is nothing of that label, or no such counter */
	int64_t value;
	char why[256]; /* of what is not kept: one clause more, or "" */
};

/* Reads a rule; the text must outlive it.  WEFT_EINVAL: `err` says what is wrong with it, and *out is untouched. */
int weft_rule_parse(struct weft_rule *out, const char *text, struct weft_error *err);

/* Measures a model, which should have kept its binds where they were created.  WEFT_ENOMEM, and *out is untouched. */
int weft_rule_check(
    struct weft_checked *out, const struct weft_model *model, const struct weft_rule *rule, struct weft_error *err);

#endif
