/* rule_window.h: checks a rule over a window that moves along a trace, also while the trace is being recorded.
 *
 * A window moves in steps of a tenth of its length.  The steps are at multiples of UTC time, so that readers that begin at
 * different times see the same windows.  A further breach of a rule is counted when the rule is broken after a window in which
 * it held.
 *
 * A window has the promises, stalls, times off CPU and findings that ended in it; for `count`, the promises that were created
 * in it.  A window also has the highest number of promises in flight and the highest value of a counter, or the lowest ones for
 * the relations > and >=.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_RULE_WINDOW_H
#define WEFT_ANALYSIS_QUERIES_RULE_WINDOW_H

#include "analysis/queries/check.h"

/* A time from which on a rule was broken. */
struct weft_rule_breach {
	uint64_t number; /* number of this breach, counted from 1 */
	int64_t utc_ns;  /* UTC time of the breach; the recorded time if the trace has no UTC time */
	int64_t time_ns; /* since the first event */
	int64_t value;
	char why[160]; /* a clause about the value that broke the rule, or "" */
};

struct weft_rule_window;

/* Creates the state of a rule for one trace; the rule's texts must live as long as the state.  A rule without a window gets one
 * window for the whole trace. after_ns is the time after the start of each process that does not count.  Free it with
 * weft_rule_window_destroy().  WEFT_ENOMEM.
 */
int weft_rule_window_create(
    struct weft_rule_window **out, const struct weft_rule *rule, int64_t after_ns, struct weft_error *err);
void weft_rule_window_destroy(struct weft_rule_window *window); /* accepts NULL */

/* Measures what is new in a model, which should have been built without simplification. known_from_ns is the time, relative to
 * the first event, since which the model has all events; the time between two models is counted as unseen.  Near-linear in the
 * model.  WEFT_ENOMEM. */
int weft_rule_window_update(
    struct weft_rule_window *window, const struct weft_model *model, int64_t known_from_ns, struct weft_error *err);

/* Returns the result of all windows so far; its value is the worst value of a window. is_end says that the trace has ended, so
 * that an incomplete window counts if there is no complete one. */
struct weft_rule_result weft_rule_window_result(struct weft_rule_window *window, bool is_end);

/* Returns the newest breaches, at most 64, the oldest first; valid until the next update. */
const struct weft_rule_breach *weft_rule_window_breaches(const struct weft_rule_window *window, size_t *count);

#endif
