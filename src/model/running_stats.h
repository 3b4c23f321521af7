/* running_stats.h: statistics of all promises that ever existed, in constant memory.  Rules use them while a trace is followed
 * without end.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_RUNNING_STATS_H
#define WEFT_MODEL_RUNNING_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

/* Buckets of lifetimes have a width of a 64th of the lifetime. */
enum { WEFT_STATS_STEPS = 64, WEFT_STATS_BUCKETS = (63 - 5) * WEFT_STATS_STEPS };

struct weft_running_stats {
	/* The query, set by the caller. */
	struct weft_str label; /* if has_label: count only promises with this first label */
	bool has_label;
	int64_t limit_ns; /* lifetimes are compared with it exactly */

	uint64_t count, failed, ended; /* ended: the promise itself, or the one that it became */
	uint64_t below, equal;         /* ended promises with a lifetime shorter than the limit, and equal to it */
	int64_t longest_ns;
	uint64_t lives[WEFT_STATS_BUCKETS];
};

/* Resets the counts; the query stays. */
void weft_running_stats_clear(struct weft_running_stats *stats);

/* Counts a promise; ended_ns is INT64_MAX for one that has not ended. */
void weft_running_stats_add(struct weft_running_stats *stats, int64_t start_ns, int64_t ended_ns, bool has_failed);

/* Adds the counts of statistics with the same query. */
void weft_running_stats_merge(struct weft_running_stats *stats, const struct weft_running_stats *other);

/* Returns the lifetime at `percent` of ended promises, by nearest rank.  It is on the correct side of the limit, and otherwise
 * accurate to a 64th; the longest lifetime is exact. 0 if no promise ended. */
int64_t weft_running_stats_lifetime(const struct weft_running_stats *stats, unsigned percent);

#endif
