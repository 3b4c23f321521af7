/* top.h: what is in flight at the end of a trace, and what the last stretch of it was spent with: for who looks at a running
 * program.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_TOP_H
#define WEFT_ANALYSIS_TOP_H

#include "analysis/table.h"

/* A sort of which one is in flight, or did something in the stretch. */
struct weft_top_sort {
	struct weft_table_row row;       /* of the whole trace */
	size_t in_flight, ended, failed; /* in flight at the end; ended and failed: in the stretch */
	int64_t ran_ns;                  /* in the stretch */
	int64_t oldest_ns;               /* how old the oldest in flight is; -1: none is, or nobody knows */
};

/* Someone in flight, for whom nobody waits. */
struct weft_top_wait {
	uint32_t promise, awaits;
	uint32_t root; /* at the end of what that waits for; one of a circle where there is one */
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
	struct weft_top_wait *waits; /* the longest first */
	size_t wait_count;
	struct weft_top_late *late; /* the latest first */
	size_t late_count;
	struct weft_top_stream *streams;
	size_t stream_count;
};

/* Of the last window_ns; the model must have kept its binds where they were created.  Near-linear.  On failure *out is untouched:
 * WEFT_ENOMEM. */
int weft_top_create(struct weft_top **out, const struct weft_model *model, int64_t window_ns, struct weft_error *err);
void weft_top_destroy(struct weft_top *top); /* accepts NULL */

#endif
