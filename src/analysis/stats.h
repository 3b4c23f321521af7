/* stats.h: how many promises there were of each label and kind, and what they spent their time with.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_STATS_H
#define WEFT_ANALYSIS_STATS_H

#include "model/model.h"

/* Percentiles by nearest rank, over the promises of a group. */
struct weft_spread {
	int64_t p50_ns, p90_ns, p99_ns, max_ns;
};

/* The life of a promise, from start to end, is divided without gap or overlap:
 *
 *   running: its running intervals;
 *   ready: it does not run although something that it awaits, or reads next, has come to its end: from that end (or from when it
 *     last ran, if that is later) until it runs or reads again, or ends;
 *   waiting: the rest.
 */
struct weft_stat {
	uint32_t label; /* its first label's text, for weft_model_text(); or WEFT_NONE */
	uint32_t site;  /* where there is no label: where it was created, or WEFT_NONE */
	uint16_t kind;
	size_t count;
	size_t failures; /* never resolved ones included */
	size_t pending;
	struct weft_spread waiting, ready, running;
};

struct weft_stats {
	struct weft_stat *stats; /* most frequent first; then by label, site, kind */
	size_t count;
};

/* Groups all promises but the system.  The model is best one that kept its binds where they were created, or their waiting is not
 * counted.  It must outlive *out.  Near-linear.  On failure *out is untouched: WEFT_ENOMEM. */
int weft_stats_create(struct weft_stats **out, const struct weft_model *model, struct weft_error *err);
void weft_stats_destroy(struct weft_stats *stats);

#endif
