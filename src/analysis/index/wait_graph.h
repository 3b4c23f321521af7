/* wait_graph.h: builds the graph of waits between promises at a moment, with its cycles; waits.h and explain.h use it.
 *
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_WAIT_GRAPH_H
#define WEFT_ANALYSIS_INDEX_WAIT_GRAPH_H

#include "analysis/index/link_index.h"
#include "analysis/index/remote_waits.h"

struct weft__wait_edge {
	uint32_t to; /* the awaited promise, or the promise that it had become at that time */
	/* link number of the await that started the wait; of a later read if the model dropped that await; WEFT_NONE for a wait
	 * from remote_waits.h */
	uint32_t link;
};

struct weft__wait_graph {
	const struct weft_model *model;
	int64_t time_ns;
	WEFT_VEC(uint32_t) pending;    /* pending promises, ascending */
	WEFT_VEC(uint32_t) should_end; /* pending promises that should resolve */
	uint32_t *begin; /* by promise: its waits are waits[begin[p]] to waits[begin[p + 1] - 1], in the order of their awaits */
	struct weft__wait_edge *waits;
	/* waits that no event records, which are also in `waits`: waits for other processes, and the waits that signallers.h
	 * finds */
	struct weft__remote_waits remote_waits;
	/* Strongly connected components: promises that wait for each other form one component; each other promise is a
	 * component of its own.  A component has a higher number than the components for which it waits. */
	uint32_t *component;  /* by promise: number of its component, counted from 1; 0 if it was not pending */
	uint32_t *order;      /* pending promises, by component */
	bool *deadlocked;     /* by promise: true if it can never end, because its waits lead into a cycle */
	bool may_have_cycles; /* false if each promise is a component of its own */
	uint64_t kinds;       /* set of the kinds of the pending promises: bit kind % 64 */
};

/* Builds the graph of waits at `time_ns` (INT64_MAX: at the end of the trace).  A wait is in force if the waiter awaited the
 * promise, both are pending, and the waiter has not ended the wait.  In addition, a waiter whose kind does not gather several
 * inputs must not have run and then awaited another promise.
 *
 * `link_index` needs the list of links from each promise.  Returns WEFT_ENOMEM or WEFT_ECANCELLED on failure; the caller calls
 * weft__wait_graph_finish() in any case.  Linear. */
int weft__wait_graph_init(
    struct weft__wait_graph *w, const struct weft_link_index *link_index, int64_t time_ns, struct weft__cancel_token *cancel);
void weft__wait_graph_finish(struct weft__wait_graph *w);

/* Returns whether the promise itself, not a promise that it became, is pending at a time. */
bool weft__wait_graph_is_pending(const struct weft_model *m, uint32_t promise, int64_t time_ns);

/* Returns the time at which a wait began. */
int64_t weft__wait_graph_since(const struct weft__wait_graph *w, uint32_t promise, const struct weft__wait_edge *wait);

/* Returns whether the promise is a member of a cycle and cannot continue. */
bool weft__wait_graph_in_cycle(const struct weft__wait_graph *w, uint32_t promise);

/* Returns the first promise of the same cycle for which a member of a cycle waits. */
uint32_t weft__wait_graph_next_in_cycle(const struct weft__wait_graph *w, uint32_t promise);

/* Returns whether a promise of the kind may be pending: if not, a check can skip the kind. */
static inline bool weft__wait_graph_has_kind(const struct weft__wait_graph *w, enum weft_kind kind)
{
	return w->kinds >> (unsigned)kind % 64 & 1;
}

static inline size_t weft__wait_graph_count(const struct weft__wait_graph *w, uint32_t promise)
{
	return w->begin[promise + 1] - w->begin[promise];
}

#endif
