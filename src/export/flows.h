/* flows.h: chooses the links of a model that become arrows in Perfetto, and limits the number of slices that they connect.
 * Private to src/export.
 *
 * When a user clicks a slice, Perfetto follows arrows in both directions without a limit, and hangs if they connect many slices
 * (google/perfetto#3224).  So arrows connect at most WEFT__MAX_FLOW_SLICES slices with each other.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_FLOWS_H
#define WEFT_EXPORT_FLOWS_H

#include "export/export.h"

enum { WEFT__MAX_FLOW_SLICES = 200 };

struct weft__flows {
	/* Links that are arrows or awaits, sorted by their field `from`, and arrows sorted by their field `to`.  The links of
	 * promise p are those at [begin[p], begin[p + 1]), in time order. */
	uint32_t *by_from, *from_begin, *by_to, *to_begin;
	uint64_t *arrow_bits;  /* one bit for each link, set if the link is an arrow */
	uint32_t *resolved_by; /* for each promise: the promise that resolved it, or WEFT_NONE */
	uint64_t left_out;     /* number of arrows that were dropped because their set would be too large */
	uint32_t largest;      /* number of slices in the largest set */
};

/* Chooses the arrows.  `only` has a bit for each promise that may have arrows; NULL means all promises.  WEFT_ENOMEM.
 * Linear. */
int weft__flows_find(struct weft__flows *out, const struct weft_model *model, enum weft_flows which, const uint64_t *only);
void weft__flows_finish(struct weft__flows *flows);

static inline bool weft__flows_is_arrow(const struct weft__flows *flows, uint32_t link)
{
	return flows->arrow_bits[link / 64] >> link % 64 & 1;
}

/* Returns whether the arrow of a read ends at the start of the run, and not at a mark, because the input existed before the
 * run. */
static inline bool weft__flows_enters_run(const struct weft_model *model, const struct weft_link *read, uint32_t run)
{
	return run != WEFT_NONE && model->promises[read->to].start_ns < model->runs[run].start_ns;
}

/* Returns the run of a promise at a time; if one run ends when the next one starts, the earlier run; WEFT_NONE: none.
 * Logarithmic. */
uint32_t weft__run_at(const struct weft_model *model, uint32_t promise, int64_t time_ns);

#endif
