/* top.h: what is in flight at a moment, and what the stretch before it was spent with: for who looks at a running program.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_TOP_H
#define WEFT_ANALYSIS_TOP_H

#include "analysis/table.h"
#include "analysis/waits.h"

/* A sort of which one is in flight, or did something in the stretch. */
struct weft_top_sort {
	struct weft_table_row row;       /* of the whole trace */
	size_t in_flight, ended, failed; /* in flight at the moment; ended and failed: in the stretch */
	int64_t ran_ns;                  /* in the stretch */
	int64_t oldest_ns;               /* how old the oldest in flight is; -1: none is, or nobody knows */
};

/* Someone in flight, for whom nobody waits. */
struct weft_top_wait {
	uint32_t promise, awaits; /* the first that it waits for */
	size_t more;              /* so many others does it wait for, too */
	uint32_t root; /* at the end of what that waits for, as long as it is one alone; one of a circle where there is one */
	int64_t since_ns;
	bool in_cycle;
};

/* Someone who was ready, and ran late. */
struct weft_top_late {
	uint32_t promise;
	int64_t from_ns, to_ns;
};

/* An OS thread in the stretch. */
struct weft_top_stream {
	int64_t slept_ns, paused_ns;
	uint16_t stream;
};

struct weft_top {
	int64_t from_ns, to_ns;      /* the stretch, since the first event */
	size_t in_flight;            /* kinds that need not end are left out */
	struct weft_top_sort *sorts; /* most in flight first, then who ran longest */
	size_t sort_count;
	uint32_t *sort_of;      /* by promise: weft_top_sort.row.sort, or WEFT_NONE */
	uint64_t *is_in_flight; /* bits by promise, also of kinds that need not end */
	struct weft_waits *all_waits;
	struct weft_top_wait *waits; /* of those for whom nobody waits; the longest first */
	size_t wait_count;
	struct weft_top_late *late; /* the latest first */
	size_t late_count;
	struct weft_top_stream *streams;
	size_t stream_count;
};

/* At to_ns since the first event, and of the window_ns before; the model must have kept its binds where they were created.
 * Near-linear.  On failure *out is untouched: WEFT_ENOMEM. */
int weft_top_create(struct weft_top **out, struct weft_facts *facts, int64_t to_ns, int64_t window_ns, struct weft_error *err);
void weft_top_destroy(struct weft_top *top); /* accepts NULL */

/* The first of what a promise waits for, or NULL.  Logarithmic. */
const struct weft_wait *weft_top_wait_of(const struct weft_top *top, uint32_t promise);

static inline bool weft_top_is_in_flight(const struct weft_top *top, uint32_t promise)
{
	return top->is_in_flight[promise / 64] >> promise % 64 & 1;
}

#endif
