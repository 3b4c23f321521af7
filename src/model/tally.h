/* tally.h: numbers of all promises of a sort that ever were, in memory that does not grow: what rules ask for when a trace is
 * followed without end.  SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_TALLY_H
#define WEFT_MODEL_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

/* Lives are counted in steps of a 64th of their length. */
enum { WEFT_TALLY_STEPS = 64, WEFT_TALLY_BUCKETS = (63 - 5) * WEFT_TALLY_STEPS };

struct weft_tally {
	/* What is asked; the caller's. */
	struct weft_str label; /* has_label: of promises with that first label alone */
	bool has_label;
	int64_t limit_ns; /* lives are compared with it, exactly */

	uint64_t count, failed, ended; /* ended: themselves, or what they became */
	uint64_t below, equal;         /* of those that ended: they lived so much shorter than the limit, exactly so long */
	int64_t longest_ns;
	uint64_t lives[WEFT_TALLY_BUCKETS];
};

/* Nothing is counted; what is asked stays. */
void weft_tally_clear(struct weft_tally *tally);

/* Counts a promise; ended_ns is INT64_MAX for one that has not ended. */
void weft_tally_add(struct weft_tally *tally, int64_t start_ns, int64_t ended_ns, bool has_failed);

/* Counts what another one with the same question has counted, too. */
void weft_tally_join(struct weft_tally *tally, const struct weft_tally *other);

/* How long the one at `percent` of those that ended lived, by nearest rank: on the right side of the limit, and else good to a
 * 64th; the longest is exact.  0 if none ended. */
int64_t weft_tally_life(const struct weft_tally *tally, unsigned percent);

#endif
