/* running_stats.h: keeps statistics of all promises that ever existed, in constant memory.  Rules use these statistics while a
 * trace is followed without end.  SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_RUNNING_STATS_H
#define WEFT_MODEL_RUNNING_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

/* A bucket of lifetimes is as wide as a 64th of the lifetime. */
enum { WEFT_STATS_STEPS = 64, WEFT_STATS_BUCKETS = (63 - 5) * WEFT_STATS_STEPS };

struct weft_running_stats {
	/* The query: which promises to count; the caller sets it. */
	struct weft_str label; /* if has_label: only promises with this first label are counted */
	bool has_label;
	int64_t limit_ns; /* limit with which lifetimes are compared exactly */

	/* number of promises; number that failed; number that ended, themselves or as the promise that they became */
	uint64_t count, failed, ended;
	/* number of ended promises with a lifetime below limit_ns; number with a lifetime equal to it */
	uint64_t below, equal;
	int64_t longest_ns;
	uint64_t lives[WEFT_STATS_BUCKETS];
};

/* Sets the counts to 0; the query stays. */
void weft_running_stats_clear(struct weft_running_stats *stats);

/* Counts a promise; ended_ns is INT64_MAX if the promise has not ended. */
void weft_running_stats_add(struct weft_running_stats *stats, int64_t start_ns, int64_t ended_ns, bool has_failed);

/* Adds the counts of other statistics with the same query. */
void weft_running_stats_merge(struct weft_running_stats *stats, const struct weft_running_stats *other);

/* Returns the lifetime at `percent` of ended promises, by nearest rank.  The result is on the correct side of the limit, and
 * otherwise accurate to a 64th; the longest lifetime is exact.  Returns 0 if no promise ended. */
int64_t weft_running_stats_lifetime(const struct weft_running_stats *stats, unsigned percent);

#endif
