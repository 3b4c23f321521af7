/* check.h: checks rules for a trace: `pending=0`, `stall<10ms`, `p99(disk.read)<2ms`, `failed(connect)<1%/1m`.
 *
 * A rule with a time window, such as `/1m`, must hold in each window of that length (rule_window.h).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_CHECK_H
#define WEFT_ANALYSIS_QUERIES_CHECK_H

#include "base/duration.h"
#include "model/model.h"
#include "model/running_stats.h"

/* X(NAME, "name", whether it has an argument, whether its value is a time, "meaning") */
#define WEFT_MEASURES(X)                                                                                                         \
	X(PENDING, "pending", 0, 0,                                                                                              \
	    "number of promises that should have resolved and did not; with (LABEL): all promises with that label that did not " \
	    "end")                                                                                                               \
	X(FAILED, "failed", 0, 0,                                                                                                \
	    "number of promises that failed, or with % their share of the promises that ended; with (LABEL): only promises "     \
	    "with that label")                                                                                                   \
	X(COUNT, "count", 0, 0, "number of promises; with (LABEL): only promises with that label")                               \
	X(FINDINGS, "findings", 0, 0,                                                                                            \
	    "number of certain alarms of weft explain; with (NAME): findings of that name; with (uncertain): uncertain alarms")  \
	X(LOST, "lost", 0, 0, "number of events that are known to be missing")                                                   \
	X(STALL, "stall", 0, 1,                                                                                                  \
	    "longest time that an event loop was blocked or, in a trace without a loop, that a promise ran or a pause lasted")   \
	X(OFFCPU, "offcpu", 0, 1, "longest time that a running promise was off CPU; needs weft record --kernel")                 \
	X(P50, "p50", 1, 1, "median time from creation to end of promises with that label")                                      \
	X(P90, "p90", 1, 1, "90th percentile of the time from creation to end of promises with that label, by nearest rank")     \
	X(P99, "p99", 1, 1, "99th percentile of the time from creation to end of promises with that label, by nearest rank")     \
	X(MAX, "max", 1, 1, "longest time from creation to end of a promise with that label")                                    \
	X(COUNTER, "counter", 1, 0, "last value of the counter of that name")

enum weft_measure {
#define WEFT_MEASURE_ENUM(NAME, name, argument, time, text) WEFT_MEASURE_##NAME,
	WEFT_MEASURES(WEFT_MEASURE_ENUM)
#undef WEFT_MEASURE_ENUM
	    WEFT_MEASURES_END
};

#define WEFT_RULE_LEAST_WINDOW_NS INT64_C(100000000)

enum weft_comparison { WEFT_LESS, WEFT_LESS_EQUAL, WEFT_EQUAL, WEFT_NOT_EQUAL, WEFT_MORE_EQUAL, WEFT_MORE };

struct weft_rule {
	enum weft_measure measure;
	enum weft_comparison relation;
	bool has_argument;
	struct weft_str argument; /* points into the text */
	int64_t limit;            /* limit of the rule: a number, ns, or thousandths of a percent */
	/* unit of limit and value: ns if is_time, thousandths of a percent if is_share, else a number */
	bool is_time, is_share;
	bool is_uncertain; /* true if a rule about findings counts the uncertain findings instead of the certain ones */
	int64_t window_ns; /* length of the window; 0 if the rule is about the whole trace */
};

enum weft_rule_outcome { WEFT_RULE_PASSED, WEFT_RULE_VIOLATED, WEFT_RULE_UNKNOWN };

struct weft_rule_result {
	enum weft_rule_outcome outcome; /* whether the rule holds; unknown if the trace has no such label or counter */
	int64_t value;
	uint64_t breaches; /* for a rule with a window: how often the rule was broken after it had held */
	char why[256];     /* a clause about the value, such as the first promise that was counted; or "" */
};

/* Parses a rule; the text must stay valid as long as the rule.  Returns WEFT_EINVAL if the text is wrong: then `err` says why,
 * and *out is unchanged. */
int weft_rule_parse(struct weft_rule *out, const char *text, struct weft_error *err);

/* Formats a value of the rule with its unit, such as "20 ms" or "1.5 %", and returns buf. */
const char *weft_rule_format_value(char buf[WEFT_DURATION_BYTES], const struct weft_rule *rule, int64_t value);

/* Measures the rule for a whole model, ignoring the rule's window.  The model should have been built without simplification.
 * WEFT_ENOMEM: *out is untouched. */
int weft_rule_check(
    struct weft_rule_result *out, const struct weft_model *model, const struct weft_rule *rule, struct weft_error *err);

/* Returns whether running statistics can measure the rule; if so, initializes *out for the rule. *out points into the rule. */
bool weft_rule_running_stats(struct weft_running_stats *out, const struct weft_rule *rule);

/* Measures the rule for a followed trace, whose model has only the newest events. *checked is the result of the last refresh
 * (zeroed at first), and becomes the result for all events so far.  The running statistics count what the rule measures, from
 * counted_ns before the last event on; they may be NULL.  WEFT_ENOMEM: *checked is untouched. */
int weft_rule_check_followed(struct weft_rule_result *checked, const struct weft_model *model, const struct weft_rule *rule,
    const struct weft_running_stats *stats, int64_t counted_ns, struct weft_error *err);

#endif
