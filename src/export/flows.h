/* flows.h: which links of a model become arrows of Perfetto's, and how many of its slices hang together by them.
 *
 * Perfetto follows arrows from slice to slice, both ways and without end, whenever one is clicked: of a large set it hangs
 * (google/perfetto#3224).  So a set is at most WEFT__FLOW_MOST slices.
 * Private to export/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_FLOWS_H
#define WEFT_EXPORT_FLOWS_H

#include "export/export.h"

enum { WEFT__FLOW_MOST = 200 };

struct weft__flows {
	/* Links by .from, which are arrows or awaits, and arrows by .to: of promise p those of [begin[p], begin[p + 1]), in the
	 * order of time. */
	uint32_t *by_from, *from_begin, *by_to, *to_begin;
	uint64_t *kept;        /* bits by link: it is an arrow */
	uint32_t *resolved_by; /* by promise, or WEFT_NONE */
	uint64_t left_out;     /* arrows that would have made a set too large */
	uint32_t largest;      /* slices that hang together */
};

/* only: the bits of promises between which arrows are wanted; NULL: of all.  WEFT_ENOMEM.  Linear. */
int weft__flows_find(struct weft__flows *out, const struct weft_model *model, enum weft_flows which, const uint64_t *only);
void weft__flows_finish(struct weft__flows *flows);

static inline bool weft__flows_keeps(const struct weft__flows *flows, uint32_t link)
{
	return flows->kept[link / 64] >> link % 64 & 1;
}

/* Whether reading is an arrow to the begin of that run, and not to a mark: the input was there before it. */
static inline bool weft__flows_is_into(const struct weft_model *model, const struct weft_link *read, uint32_t run)
{
	return run != WEFT_NONE && model->promises[read->to].start_ns < model->runs[run].start_ns;
}

/* The run of a promise that a time is in, at the end of one and the begin of the next the earlier one; or WEFT_NONE. Logarithmic.
 */
uint32_t weft__run_at(const struct weft_model *model, uint32_t promise, int64_t time_ns);

#endif
