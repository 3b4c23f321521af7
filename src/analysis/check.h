/* check.h: rules for a trace, for CI: `pending=0`, `stall<10ms`, `p99(disk.read)<2ms`, `counter(errors)=0`.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_CHECK_H
#define WEFT_ANALYSIS_CHECK_H

#include "model/model.h"
#include "model/tally.h"

/* X(NAME, "name", has an argument, is a time, "what it is") */
#define WEFT_MEASURES(X)                                                                                                         \
	X(PENDING, "pending", 0, 0,                                                                                              \
	    "promises that should have resolved and did not; with (LABEL): those of that label that did not end")                \
	X(FAILED, "failed", 0, 0, "promises that failed; with (LABEL): those of that label")                                     \
	X(COUNT, "count", 0, 0, "promises; with (LABEL): those of that label")                                                   \
	X(FINDINGS, "findings", 0, 0, "what weft explain is certain of; with (KIND): of that kind, as findings(leak)")           \
	X(LOST, "lost", 0, 0, "events that are known to be missing")                                                             \
	X(STALL, "stall", 0, 1, "the longest time that a promise ran or a pause lasted")                                         \
	X(OFFCPU, "offcpu", 0, 1, "the longest time that a promise ran without a processor; needs weft record --kernel")         \
	X(P50, "p50", 1, 1, "how long promises of that label took that ended: the median")                                       \
	X(P90, "p90", 1, 1, "the 90th percentile of these times, by nearest rank")                                               \
	X(P99, "p99", 1, 1, "the 99th percentile of these times, by nearest rank")                                               \
	X(MAX, "max", 1, 1, "the longest of these times")                                                                        \
	X(COUNTER, "counter", 1, 0, "the last value of the counter of that name")

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
	enum weft_outcome outcome; /* unknown: the trace has no such label or counter */
	int64_t value;
	char why[256]; /* a clause more about the value, as the first promise that was counted; or "" */
};

/* Reads a rule; the text must outlive the rule.  WEFT_EINVAL: `err` says what is wrong with the text, and *out is untouched. */
int weft_rule_parse(struct weft_rule *out, const char *text, struct weft_error *err);

/* Measures a model, which should have been built without simplification.  WEFT_ENOMEM: *out is untouched. */
int weft_rule_check(
    struct weft_checked *out, const struct weft_model *model, const struct weft_rule *rule, struct weft_error *err);

/* Whether a tally can say what the rule asks; if so *out is that tally, which points into the rule. */
bool weft_rule_tally(struct weft_tally *out, const struct weft_rule *rule);

/* The same of a trace that is followed, whose model has the newest events alone.  *checked is what the last look said, at first
 * zeroes, and becomes what holds of all that was seen: `tally` counts what the rule asks, since counted_ns before the last event;
 * or it is NULL.  WEFT_ENOMEM: *checked is untouched. */
int weft_rule_check_on(struct weft_checked *checked, const struct weft_model *model, const struct weft_rule *rule,
    const struct weft_tally *tally, int64_t counted_ns, struct weft_error *err);

#endif
