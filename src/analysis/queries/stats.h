/* stats.h: counts the promises of each label and kind, and sums up how they spent their time.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_STATS_H
#define WEFT_ANALYSIS_QUERIES_STATS_H

#include "model/model.h"

/* Percentiles over the promises of a group, by nearest rank. */
struct weft_spread {
	int64_t p50_ns, p90_ns, p99_ns, max_ns;
};

/* A group of promises.  The times are those of account.h; a promise that became another one includes the times of that other
 * one, and a pending promise lasts until the end of its process. */
struct weft_stat {
	uint32_t label; /* number of the text of the promises' first label, for weft_model_text(); or WEFT_NONE */
	uint32_t site;  /* site of the promises if they have no label; or WEFT_NONE */
	uint16_t kind;
	size_t count;
	size_t failures; /* number of promises that failed, or that should have resolved and did not */
	size_t pending;
	struct weft_spread waiting, ready, running;
	struct weft_spread off; /* time off CPU, contained in the running time; valid only if has_off */
	bool has_off;           /* true if the trace has CPU times */
};

struct weft_stats {
	struct weft_stat *stats; /* groups, the most frequent first, then sorted by label, site and kind */
	size_t count;
};

/* Groups all promises except the system.  In a simplified model, binds start when they read, so their waits do not count.  The
 * model must live as long as *out.  Fails with WEFT_ENOMEM; then *out is unchanged.  Near-linear. */
int weft_stats_create(struct weft_stats **out, const struct weft_model *model, struct weft_error *err);
void weft_stats_destroy(struct weft_stats *stats);

#endif
