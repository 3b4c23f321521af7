/* stats.h: the number of promises of each label and kind, and how they spent their time.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_STATS_H
#define WEFT_ANALYSIS_QUERIES_STATS_H

#include "model/model.h"

/* Percentiles over the promises of a group, by nearest rank. */
struct weft_spread {
	int64_t p50_ns, p90_ns, p99_ns, max_ns;
};

/* A group of promises.  The times are those of account.h; a promise that became another one continues as that one, and a pending
 * promise lasts until the end of its process. */
struct weft_stat {
	uint32_t label; /* its first label's text, for weft_model_text(); or WEFT_NONE */
	uint32_t site;  /* without a label: the site, or WEFT_NONE */
	uint16_t kind;
	size_t count;
	size_t failures; /* failed promises, and promises that should have resolved and did not */
	size_t pending;
	struct weft_spread waiting, ready, running;
	struct weft_spread off; /* part of running: off CPU; valid only if has_off */
	bool has_off;           /* the trace has CPU times */
};

struct weft_stats {
	struct weft_stat *stats; /* most frequent first; then by label, site, kind */
	size_t count;
};

/* Groups all promises except the system.  In a simplified model, binds start when they read, so their waits do not count.  The
 * model must outlive *out.  Fails with WEFT_ENOMEM, and then leaves *out untouched.  Near-linear. */
int weft_stats_create(struct weft_stats **out, const struct weft_model *model, struct weft_error *err);
void weft_stats_destroy(struct weft_stats *stats);

#endif
