/* wait_graph.h: the graph of waits between promises at a moment, with its cycles; waits.h and explain.h use it.
 *
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_WAIT_GRAPH_H
#define WEFT_ANALYSIS_INDEX_WAIT_GRAPH_H

#include "analysis/index/link_index.h"
#include "analysis/index/remote_waits.h"

struct weft__wait_edge {
	uint32_t to;   /* the awaited promise, or what it had become at that time */
	uint32_t link; /* the await that started the wait; a later read if the model dropped that await; WEFT_NONE: a wait of
			  remote_waits.h */
};

struct weft__wait_graph {
	const struct weft_model *model;
	int64_t time_ns;
	WEFT_VEC(uint32_t) pending;    /* pending promises, ascending */
	WEFT_VEC(uint32_t) should_end; /* pending promises that should resolve */
	uint32_t *begin; /* by promise: its waits are waits[begin[p]] to waits[begin[p + 1] - 1], in the order of their awaits */
	struct weft__wait_edge *waits;
	struct weft__remote_waits remote_waits; /* waits that no event records, which are also in `waits`: for other processes,
						   and those of signallers.h */
	/* Strongly connected components: promises that wait for each other are one component, any other promise is one of its
	 * own.  A component has a higher number than those that it waits for. */
	uint32_t *component;  /* by promise: its component, from 1 on; 0: it was not pending */
	uint32_t *order;      /* pending promises, by component */
	bool *deadlocked;     /* by promise: it cannot end, because its waits lead into a cycle */
	bool may_have_cycles; /* false: each promise is a component of its own */
	uint64_t kinds;       /* kinds of the pending promises: bit kind % 64 */
};

/* Builds the graph at `time_ns` (INT64_MAX: at the end).  A wait holds if the waiter awaited the promise, both are pending, and
 * the waiter has not ended the wait.  Unless its kind gathers inputs, the waiter must not have run and awaited another promise
 * since.
 *
 * `link_index` needs the links from each promise.  Returns WEFT_ENOMEM or WEFT_ECANCELLED on failure; call
 * weft__wait_graph_finish() in any case.  Linear. */
int weft__wait_graph_init(
    struct weft__wait_graph *w, const struct weft_link_index *link_index, int64_t time_ns, struct weft__cancel_token *cancel);
void weft__wait_graph_finish(struct weft__wait_graph *w);

/* Returns whether the promise itself, not one that it became, is pending at that time. */
bool weft__wait_graph_is_pending(const struct weft_model *m, uint32_t promise, int64_t time_ns);

/* Returns the start of a wait. */
int64_t weft__wait_graph_since(const struct weft__wait_graph *w, uint32_t promise, const struct weft__wait_edge *wait);

/* Returns whether the promise is a member of a cycle and cannot continue. */
bool weft__wait_graph_in_cycle(const struct weft__wait_graph *w, uint32_t promise);

/* Returns the first promise that a member of a cycle waits for in the same cycle. */
uint32_t weft__wait_graph_next_in_cycle(const struct weft__wait_graph *w, uint32_t promise);

/* Returns whether a promise of the kind may be pending: a check can skip the other kinds. */
static inline bool weft__wait_graph_has_kind(const struct weft__wait_graph *w, enum weft_kind kind)
{
	return w->kinds >> (unsigned)kind % 64 & 1;
}

static inline size_t weft__wait_graph_count(const struct weft__wait_graph *w, uint32_t promise)
{
	return w->begin[promise + 1] - w->begin[promise];
}

#endif
