/* top.h: summarizes the promises in flight at a moment, and the interval before it, for viewers of a running program.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_TOP_H
#define WEFT_ANALYSIS_QUERIES_TOP_H

#include "analysis/queries/type_table.h"
#include "analysis/queries/waits.h"

/* A type with promises that are in flight, or were active in the interval. */
struct weft_top_type {
	struct weft_table_row row; /* figures of the type in the whole trace */
	/* number of promises in flight at the moment; number that ended, and number that failed, in the interval */
	size_t in_flight, ended, failed;
	int64_t ran_ns;    /* time for which promises of the type ran in the interval */
	int64_t oldest_ns; /* age of the oldest promise in flight; -1 if there is none or its age is unknown */
};

/* A promise in flight for which no promise waits. */
struct weft_top_wait {
	uint32_t promise, awaits; /* the promise; the first promise for which it waits */
	size_t more;              /* number of other promises for which it waits */
	/* last promise of the wait chain, as long as each promise waits for one other; a member of the cycle if the chain has
	 * one */
	uint32_t root;
	int64_t since_ns;
	bool in_cycle;
};

/* A promise that was ready, and ran late. */
struct weft_top_late {
	uint32_t promise;
	int64_t from_ns, to_ns;
};

/* A thread, and how it spent the interval. */
struct weft_top_stream {
	int64_t slept_ns, paused_ns;
	uint16_t stream;
};

struct weft_top {
	int64_t from_ns, to_ns;      /* the interval, in ns since the first event */
	size_t in_flight;            /* number of promises in flight, without promises that need not end */
	struct weft_top_type *types; /* types, sorted by the number of promises in flight, then by running time */
	size_t type_count;
	uint32_t *type_of;      /* by promise: the number of its type (weft_top_type.row.type), or WEFT_NONE */
	uint64_t *is_in_flight; /* bit set by promise: whether it is in flight, also for promises that need not end */
	struct weft_waits *all_waits;
	struct weft_top_wait *waits; /* promises in flight for which no promise waits, the longest wait first */
	size_t wait_count;
	struct weft_top_late *late; /* the latest first */
	size_t late_count;
	struct weft_top_stream *streams;
	size_t stream_count;
};

/* Computes the summary at to_ns since the first event, and of the window_ns before it; the model must have been built with
 * binds at the time of their creation.  Fails with WEFT_ENOMEM; then *out is unchanged.  Near-linear. */
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
