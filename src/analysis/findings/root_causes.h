/* root_causes.h: finds the last promise (the root) of each pending promise's wait chain, and why the root does not resolve.
 *
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_FINDINGS_ROOT_CAUSES_H
#define WEFT_ANALYSIS_FINDINGS_ROOT_CAUSES_H

#include "analysis/findings/explain.h"
#include "analysis/index/completeness.h"
#include "analysis/index/wait_graph.h"
#include "base/vec.h"

/* A promise that should have resolved, with the root of its wait chain. */
struct weft__blocked_promise {
	uint32_t root, promise;
};

struct weft__root_causes {
	const struct weft_link_index *link_index;
	const struct weft__wait_graph *wait_graph;
	const struct weft__completeness *completeness;
	/* The following arrays are indexed by promise and valid for pending promises: */
	uint32_t *next;   /* the awaited promise that explains most; WEFT_NONE for a root and for a member of a cycle */
	uint32_t *root;   /* the last promise of the wait chain, or the first member of the cycle in which the chain ends */
	uint8_t *verdict; /* enum weft_verdict of the promise's root */
	WEFT_VEC(struct weft__blocked_promise) blocked; /* the blocked promises, sorted by root and then by promise */
	/* Lists for conditions; the pointers are NULL until the first condition is examined. */
	/* by condition: its waiters, which are the promises that it created */
	uint32_t *condition_waiters_begin, *condition_waiters;
	uint32_t *lost_signals_begin; /* by condition: index of its list in lost_signals; WEFT_NONE if not yet examined */
	/* signals that woke no promise, as link numbers; each list is a count followed by the links */
	WEFT_VEC(uint32_t) lost_signals;
};

/* Computes all roots.  Computes the root causes; keeps pointers to the arguments, which must live as long as `c`.  Returns
 * WEFT_ENOMEM or WEFT_ECANCELLED on failure; the caller calls weft__root_causes_finish() in any case.  Near-linear. */
int weft__root_causes_init(struct weft__root_causes *c, const struct weft_link_index *link_index,
    const struct weft__wait_graph *wait_graph, const struct weft__completeness *completeness, struct weft__cancel_token *cancel);
void weft__root_causes_finish(struct weft__root_causes *c);

/* Returns the number of promises that a root blocks; sets *first to the index of the first of them. */
size_t weft__root_causes_blocked(const struct weft__root_causes *c, uint32_t root, const struct weft__blocked_promise **first);

/* Returns the input that the promise awaited last, if that input has ended and the promise has neither read it nor run since;
 * else WEFT_NONE. */
uint32_t weft__root_causes_ready_input(const struct weft__root_causes *c, uint32_t promise);

/* Returns the promise of another thread that ended that input; WEFT_NONE if the same thread ended it, or if the promise has no
 * ended input. */
uint32_t weft__root_causes_other_thread(const struct weft__root_causes *c, uint32_t promise);

/* Returns the number of the link that records the last hold of a lock, or WEFT_NONE.  The holder is .to of the link; it may
 * have become another promise, and may have ended since. */
uint32_t weft__root_causes_last_hold(const struct weft__root_causes *c, uint32_t lock);

/* Sets *links to those signals of the promise's condition that woke no promise and came before the promise began to wait, in
 * order of time; returns their number.  A root with the verdict WEFT_VERDICT_LOST_WAKEUP has at least one such signal. */
size_t weft__root_causes_lost_signals(const struct weft__root_causes *c, uint32_t promise, const uint32_t **links);

#endif
