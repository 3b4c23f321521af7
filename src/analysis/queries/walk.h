/* walk.h: steps from a promise to a related promise, to find out why it waits.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_WALK_H
#define WEFT_ANALYSIS_QUERIES_WALK_H

#include "analysis/queries/promise_info.h"

enum weft_walk_step {
	/* the promise that it became; otherwise the promise that it waits for at its end; otherwise the promise that it awaited
	 * or read last; otherwise the condition for which it waits */
	WEFT_WALK_AWAITED,
	WEFT_WALK_RESOLVER, /* the promise that resolved it, or the promise that it became */
	WEFT_WALK_CREATOR,
	/* a promise that it woke: the first promise that read it; otherwise the first promise that it signalled; otherwise a
	 * promise that found it unresolved */
	WEFT_WALK_WOKEN,
	WEFT_WALK_STEP_COUNT
};

/* Returns the promise to which a step leads; WEFT_NONE if it leads to no promise, or to the system. */
uint32_t weft_walk(const struct weft_promise_info *facts, uint32_t promise, enum weft_walk_step step);

#endif
