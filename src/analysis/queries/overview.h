/* overview.h: what a trace without findings shows: the slowest promises and the busiest event loop.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_OVERVIEW_H
#define WEFT_ANALYSIS_QUERIES_OVERVIEW_H

#include "model/model.h"

enum { WEFT_OVERVIEW_SLOWEST = 3 };

struct weft_overview {
	uint32_t
	    slowest[WEFT_OVERVIEW_SLOWEST]; /* the ended promises that lasted longest, the slowest first; no loops or threads */
	size_t slowest_count;
	size_t loop_count;
	bool has_callbacks; /* some promise ran that is neither a loop nor a thread: the trace shows which callback ran */
	uint32_t busiest;   /* the loop whose thread was awake for the largest part of its life; WEFT_NONE: no loop is known */
	int64_t awake_ns;   /* how long that thread was awake while the loop ran */
	int64_t loop_ns;    /* how long that loop ran */
	int64_t stall_ns;   /* the longest stall (index/delays.h); 0: none */
	uint32_t stall_promise; /* its promise, or WEFT_SYSTEM */
};

/* Summarizes a model.  Returns WEFT_OK or WEFT_ENOMEM.  n log n. */
int weft_overview_find(struct weft_overview *out, const struct weft_model *m);

#endif
