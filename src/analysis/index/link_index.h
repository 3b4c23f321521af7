/* link_index.h: lists the links of each promise, and the promise that each promise became.  All analyses use it.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_LINK_INDEX_H
#define WEFT_ANALYSIS_INDEX_LINK_INDEX_H

#include "analysis/index/cancel_token.h"
#include "base/vec.h"
#include "model/model.h"

#define WEFT_NEVER INT64_MAX /* the time of an event that never happened */

struct weft_link_index {
	const struct weft_model *model;
	/* by promise: the promise that it became in the end; the promise itself if it became none, or is in a cycle */
	uint32_t *final;
	int64_t *ended_ns; /* by promise: end of final[p], or WEFT_NEVER */
	uint32_t *out_begin,
	    *out;                /* out[out_begin[p]] to out[out_begin[p + 1] - 1]: numbers of the links from p, in time order */
	uint32_t *in_begin, *in; /* links to each promise p, in the same form: in[in_begin[p]] to in[in_begin[p + 1] - 1] */
	WEFT_VEC(uint32_t) failed;      /* promises that failed themselves */
	struct weft_accounts *accounts; /* accounts of time (account.h) if the index has all lists, else NULL */
};

/* Selects the lists to make: links from promises, links to promises, or both; the other lists are NULL. */
enum weft_link_index_lists { WEFT_LINK_INDEX_NONE, WEFT_LINK_INDEX_OUT = 1, WEFT_LINK_INDEX_IN = 2, WEFT_LINK_INDEX_ALL = 3 };

/* Builds the index, which must stay at its address; the model must live as long as the index.  `cancel` may be NULL.  Returns
 * WEFT_ENOMEM or WEFT_ECANCELLED on failure; then the index owns no memory.  Linear. */
int weft_link_index_init(struct weft_link_index *link_index, const struct weft_model *model, enum weft_link_index_lists lists,
    struct weft__cancel_token *cancel);
void weft_link_index_finish(struct weft_link_index *link_index);

/* Sets final[p], for each promise p, to the promise that p had become at time_ns (INT64_MAX: at the end); to p itself if it
 * became none, or is in a cycle.  Returns false if the caller cancelled. */
bool weft_link_index_successors_at(
    const struct weft_model *model, int64_t time_ns, uint32_t *final, struct weft__cancel_token *cancel);

/* Returns whether p itself, not a promise that p became, has ended. */
static inline bool weft_has_ended(const struct weft_promise *p)
{
	return p->end == WEFT_END_RESOLVED || (p->end == WEFT_END_FAILED && !(p->flags & WEFT_PROMISE_NEVER_RESOLVED));
}

/* Returns the number of p's last run that starts before `time_ns`, or WEFT_NONE.  Logarithmic. */
uint32_t weft_run_before(const struct weft_model *model, uint32_t p, int64_t time_ns);

/* Returns the number of the first link at `time_ns` or later; model->link_count if there is none. */
size_t weft_first_link_from(const struct weft_model *model, int64_t time_ns);

/* Returns the number of the first sleep that starts at `time_ns` or later; model->sleep_count if there is none. */
size_t weft_first_sleep_from(const struct weft_model *model, int64_t time_ns);

/* Returns the text of p's first label that is neither an error nor a counter, or WEFT_NONE. */
uint32_t weft_first_label(const struct weft_model *model, uint32_t p);

#endif
