/* stats.h: how many promises of each label and kind there were, and how they spent their time.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_STATS_H
#define WEFT_ANALYSIS_STATS_H

#include "model/model.h"

/* Percentiles by nearest rank, over the promises of a group. */
struct weft_spread {
	int64_t p50_ns, p90_ns, p99_ns, max_ns;
};

/* The life of a promise, from its start to its end, has three parts, without gap or overlap.  A promise that became another one
 * lives on as that one:
 *
 *   running: its running intervals;
 *   ready: it does not run, although something that it awaits or reads next has ended: from that end on, or from its last run if
 *     that is later, until it runs again, reads or ends; a connection, and who has several inputs, only until it runs or reads;
 *   waiting: the rest.
 */
struct weft_stat {
	uint32_t label; /* its first label's text, for weft_model_text(); or WEFT_NONE */
	uint32_t site;  /* without a label: where it was created, or WEFT_NONE */
	uint16_t kind;
	size_t count;
	size_t failures; /* with those that should have resolved and never did */
	size_t pending;
	struct weft_spread waiting, ready, running;
	struct weft_spread off; /* of running: without a processor; only where has_off */
	bool has_off;           /* the trace tells who had a processor */
};

struct weft_stats {
	struct weft_stat *stats; /* most frequent first; then by label, site, kind */
	size_t count;
};

/* Groups all promises but the system.  In a simplified model, binds start when they read, so the time that they waited is not
 * counted.  The model must outlive *out.  Near-linear.  On failure *out is untouched: WEFT_ENOMEM. */
int weft_stats_create(struct weft_stats **out, const struct weft_model *model, struct weft_error *err);
void weft_stats_destroy(struct weft_stats *stats);

#endif
