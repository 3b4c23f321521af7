/* rule_private.h: declares what the checks of rules over a whole trace (check.c) and over windows (rule_window.c) share.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_RULE_PRIVATE_H
#define WEFT_ANALYSIS_QUERIES_RULE_PRIVATE_H

#include "analysis/findings/explain.h"
#include "analysis/queries/check.h"

/* Returns whether the rule covers the promise: the rule names no label, or the promise's first label. */
bool weft__rule_is_about(const struct weft_model *m, const struct weft_rule *rule, uint32_t p);

/* Returns whether a rule about findings counts the given finding. */
bool weft__rule_counts_finding(const struct weft_rule *rule, const struct weft_finding *finding);

bool weft__rule_is_satisfied(enum weft_comparison relation, int64_t value, int64_t limit);

/* Returns the percentile that the measure asks for; 100 for the maximum. */
unsigned weft__rule_percentile(enum weft_measure measure);

/* Returns the share of failed promises in thousandths of a percent, rounded so that it is on the correct side of the limit;
 * `ended` must not be 0. */
int64_t weft__rule_share(const struct weft_rule *rule, uint64_t failed, uint64_t ended);

#endif
