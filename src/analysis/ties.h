/* ties.h: what all questions about a model begin with: its links by promise, and what became of what.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_TIES_H
#define WEFT_ANALYSIS_TIES_H

#include "analysis/watch.h"
#include "base/vec.h"
#include "model/model.h"

#define WEFT_NEVER INT64_MAX /* a time that did not come */

struct weft_ties {
	const struct weft_model *model;
	uint32_t *now;             /* by promise: what it is in the end; itself if it became nothing, or goes round in a circle */
	int64_t *ended_ns;         /* by promise: when that came to its end, or WEFT_NEVER */
	uint32_t *out_begin, *out; /* out[out_begin[p]] up to out[out_begin[p + 1]]: numbers of the links from p, in time order */
	uint32_t *in_begin, *in;   /* the same of the links to p */
	WEFT_VEC(uint32_t) failed; /* those that themselves came to their end by failing */
	struct weft_run *ran;      /* by block of WEFT_TIES_BLOCK promises: from their first run to the end of their last one */
};

#define WEFT_TIES_BLOCK 64u

/* Which lists are wanted: links from promises, links to them, runs of blocks; the others are NULL. */
enum weft_ties_lists { WEFT_TIES_NONE, WEFT_TIES_OUT = 1, WEFT_TIES_IN = 2, WEFT_TIES_RAN = 4, WEFT_TIES_ALL = 7 };

/* The model must outlive it.  WEFT_ENOMEM, WEFT_ECANCELLED (by `watch`, which may be NULL): nothing is kept.  Linear. */
int weft_ties_init(struct weft_ties *ties, const struct weft_model *model, enum weft_ties_lists lists, struct weft__watch *watch);
void weft_ties_finish(struct weft_ties *ties);

/* By promise: what it was at a time (INT64_MAX: is in the end); itself if it had become nothing, or goes round in a circle.
 * False: it was called off. */
bool weft_ties_follow(const struct weft_model *model, int64_t time_ns, uint32_t *now, struct weft__watch *watch);

/* Whether p, itself and not what it became, came to its end; one that never resolved did not. */
static inline bool weft_has_ended(const struct weft_promise *p)
{
	return p->end == WEFT_END_RESOLVED || (p->end == WEFT_END_FAILED && !(p->flags & WEFT_PROMISE_NEVER_RESOLVED));
}

/* The number of p's last run that begins before `time_ns`, or WEFT_NONE; logarithmic. */
uint32_t weft_run_before(const struct weft_model *model, uint32_t p, int64_t time_ns);

/* The number of the first link at `time_ns` or later; model->link_count if there is none. */
size_t weft_link_from(const struct weft_model *model, int64_t time_ns);

/* The number of the first sleep that begins at `time_ns` or later; model->sleep_count if there is none. */
size_t weft_sleep_from(const struct weft_model *model, int64_t time_ns);

/* A first label's text (neither an error nor a counter's), or WEFT_NONE. */
uint32_t weft_first_label(const struct weft_model *model, uint32_t p);

#endif
