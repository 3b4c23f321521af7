/* root_causes.h: the end of each pending promise's wait chain (its root), and why the root does not resolve.
 *
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_FINDINGS_ROOT_CAUSES_H
#define WEFT_ANALYSIS_FINDINGS_ROOT_CAUSES_H

#include "analysis/findings/explain.h"
#include "analysis/index/completeness.h"
#include "analysis/index/wait_graph.h"
#include "base/vec.h"

/* A promise that should have resolved, and the root of its wait chain. */
struct weft__blocked_promise {
	uint32_t root, promise;
};

struct weft__root_causes {
	const struct weft_link_index *link_index;
	const struct weft__wait_graph *wait_graph;
	const struct weft__completeness *completeness;
	/* By promise, valid for pending promises: */
	uint32_t *next;   /* the awaited promise that explains most; WEFT_NONE for a root and for a member of a cycle */
	uint32_t *root;   /* the end of the chain of next, or the first member of the cycle in which the chain ends */
	uint8_t *verdict; /* enum weft_verdict of the root */
	WEFT_VEC(struct weft__blocked_promise) blocked; /* sorted by root, then by promise */
	/* Lists for conditions; NULL until the first condition is examined. */
	uint32_t *condition_waiters_begin, *condition_waiters; /* by condition: the promises that it created, its waiters */
	uint32_t *lost_signals_begin;    /* by condition: start of its list in lost_signals; WEFT_NONE: not yet examined */
	WEFT_VEC(uint32_t) lost_signals; /* signals that woke no promise, as link numbers; each list is [count, link...] */
};

/* Computes all roots.  Keeps the arguments, which must outlive it.  Returns WEFT_ENOMEM or WEFT_ECANCELLED on failure; call
 * weft__root_causes_finish() in any case.  Near-linear. */
int weft__root_causes_init(struct weft__root_causes *c, const struct weft_link_index *link_index,
    const struct weft__wait_graph *wait_graph, const struct weft__completeness *completeness, struct weft__cancel_token *cancel);
void weft__root_causes_finish(struct weft__root_causes *c);

/* Returns the number of promises that a root blocks, and sets *first to the first of them. */
size_t weft__root_causes_blocked(const struct weft__root_causes *c, uint32_t root, const struct weft__blocked_promise **first);

/* Returns the input that the promise awaited last, if that has ended and the promise neither read it nor ran since; else
 * WEFT_NONE. */
uint32_t weft__root_causes_ready_input(const struct weft__root_causes *c, uint32_t promise);

/* Returns the promise of another thread that ended that input; WEFT_NONE: this thread did, or there is no such input. */
uint32_t weft__root_causes_other_thread(const struct weft__root_causes *c, uint32_t promise);

/* Returns the number of the link by which a lock was last held, or WEFT_NONE.  The holder is its .to, which may have become
 * another promise, and may have ended since. */
uint32_t weft__root_causes_last_hold(const struct weft__root_causes *c, uint32_t lock);

/* Sets *links to the signals to the promise's condition that woke no promise, before the promise waited there, in order of time;
 * returns how many.  A root with WEFT_VERDICT_LOST_WAKEUP has at least one. */
size_t weft__root_causes_lost_signals(const struct weft__root_causes *c, uint32_t promise, const uint32_t **links);

#endif
