/* walk.h: from a promise to the next one, to find out why it waits.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_WALK_H
#define WEFT_ANALYSIS_WALK_H

#include "analysis/facts.h"

enum weft_step {
	WEFT_STEP_AWAITED,  /* what it became; else what it waits for at its end; else what it waited for or read last; else, of
			       one who waits for a condition, that */
	WEFT_STEP_RESOLVER, /* who resolved it, or what it became */
	WEFT_STEP_CREATOR,
	WEFT_STEP_WOKEN, /* whom it woke: who read it first, or else whom it signalled first, or who found it unresolved */
	WEFT_STEP_COUNT
};

/* The promise that a step leads to; WEFT_NONE if it leads to none, or to the system. */
uint32_t weft_walk(const struct weft_facts *facts, uint32_t promise, enum weft_step step);

#endif
