/* walk.h: steps from a promise to a related one, to find out why it waits.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_WALK_H
#define WEFT_ANALYSIS_QUERIES_WALK_H

#include "analysis/queries/promise_info.h"

enum weft_walk_step {
	WEFT_WALK_AWAITED,  /* the promise that it became; else the one that it waits for at its end; else the one that it
			       awaited or read last; else the condition that it waits at */
	WEFT_WALK_RESOLVER, /* the promise that resolved it, or that it became */
	WEFT_WALK_CREATOR,
	WEFT_WALK_WOKEN, /* the promise that it woke: the first that read it, else the first that it signalled, else one that
			    found it unresolved */
	WEFT_WALK_STEP_COUNT
};

/* Returns the promise that a step leads to; WEFT_NONE if it leads to none, or to the system. */
uint32_t weft_walk(const struct weft_promise_info *facts, uint32_t promise, enum weft_walk_step step);

#endif
