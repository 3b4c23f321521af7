/* top.h: promises in flight at a moment, and how the interval before it was spent, for viewers of a running program.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_TOP_H
#define WEFT_ANALYSIS_QUERIES_TOP_H

#include "analysis/queries/type_table.h"
#include "analysis/queries/waits.h"

/* A type with promises that are in flight, or were active in the interval. */
struct weft_top_type {
	struct weft_table_row row;       /* the type in the whole trace */
	size_t in_flight, ended, failed; /* in flight at the moment; ended and failed in the interval */
	int64_t ran_ns;                  /* running time in the interval */
	int64_t oldest_ns;               /* age of the oldest in flight; -1: there is none, or it is unknown */
};

/* A promise in flight without a waiter. */
struct weft_top_wait {
	uint32_t promise, awaits; /* the promise, and the first promise that it waits for */
	size_t more;              /* number of other promises that it waits for */
	uint32_t root;            /* end of the chain of waits, while each waits for one; a member of the cycle if there is one */
	int64_t since_ns;
	bool in_cycle;
};

/* A promise that was ready, and ran late. */
struct weft_top_late {
	uint32_t promise;
	int64_t from_ns, to_ns;
};

/* A thread in the interval. */
struct weft_top_stream {
	int64_t slept_ns, paused_ns;
	uint16_t stream;
};

struct weft_top {
	int64_t from_ns, to_ns;      /* the interval, since the first event */
	size_t in_flight;            /* without promises that need not end */
	struct weft_top_type *types; /* most in flight first, then longest running */
	size_t type_count;
	uint32_t *type_of;      /* by promise: weft_top_type.row.type, or WEFT_NONE */
	uint64_t *is_in_flight; /* bit by promise, also for promises that need not end */
	struct weft_waits *all_waits;
	struct weft_top_wait *waits; /* promises without a waiter; the longest first */
	size_t wait_count;
	struct weft_top_late *late; /* the latest first */
	size_t late_count;
	struct weft_top_stream *streams;
	size_t stream_count;
};

/* Computes the summary at to_ns since the first event, and for the window_ns before; the model must have kept its binds where
 * they were created.  Fails with WEFT_ENOMEM, and then leaves *out untouched.  Near-linear. */
int weft_top_create(
    struct weft_top **out, struct weft_promise_info *facts, int64_t to_ns, int64_t window_ns, struct weft_error *err);
void weft_top_destroy(struct weft_top *top); /* accepts NULL */

/* Returns the first wait of a promise, or NULL.  Logarithmic. */
const struct weft_wait *weft_top_wait_of(const struct weft_top *top, uint32_t promise);

static inline bool weft_top_is_in_flight(const struct weft_top *top, uint32_t promise)
{
	return top->is_in_flight[promise / 64] >> promise % 64 & 1;
}

#endif
