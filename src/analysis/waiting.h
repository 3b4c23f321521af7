/* waiting.h: who waits for whom at a moment, and in which circles: the graph that waits.h shows and explain.h explains.
 *
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_WAITING_H
#define WEFT_ANALYSIS_WAITING_H

#include "analysis/across.h"
#include "analysis/ties.h"

struct weft__wait {
	uint32_t to;   /* who is waited for, as what it was by then */
	uint32_t link; /* the await by which the wait began; a later read, if the model dropped that await; WEFT_NONE: across.h */
};

struct weft__waiting {
	const struct weft_model *model;
	int64_t time_ns;
	WEFT_VEC(uint32_t) pending;    /* ascending */
	WEFT_VEC(uint32_t) should_end; /* those of them that the program says should resolve */
	uint32_t *begin; /* by promise: its waits are waits[begin[p]] up to waits[begin[p + 1]], in the order of their awaits */
	struct weft__wait *waits;
	struct weft__across_list across; /* what of them leads through connections into other processes, and to work for these */
	/* Promises that wait for each other are one part; each promise of which nobody waits for the other is a part alone.  A
	 * part has a higher number than those that it waits for. */
	uint32_t *part;  /* by promise: the number of its part, from 1 on; 0: it was not pending */
	uint32_t *order; /* those that are pending, by part */
	bool *stuck;     /* by promise: nothing but a circle can come of its waits, whatever happens outside of circles */
	bool circles;    /* there may be one; otherwise each promise is a part alone */
	uint64_t kinds;  /* that any of those that are pending may have: a bit for each, modulo 64 */
};

/* At `time_ns`; INT64_MAX: at the end.  A wait holds if the waiter awaited it, both are pending, the waiter has not said that it
 * waits no more, and, unless its kind gathers inputs, it has not run and awaited something else since.
 *
 * `ties` has the links from each promise.  WEFT_ENOMEM, WEFT_ECANCELLED.  Linear.  Finish it in any case. */
int weft__waiting_init(struct weft__waiting *w, const struct weft_ties *ties, int64_t time_ns, struct weft__watch *watch);
void weft__waiting_finish(struct weft__waiting *w);

/* Whether the promise, itself and not what it became, is pending at that time. */
bool weft__waiting_is_pending(const struct weft_model *m, uint32_t promise, int64_t time_ns);

/* Since when it waits. */
int64_t weft__waiting_since(const struct weft__waiting *w, uint32_t promise, const struct weft__wait *wait);

/* Whether the promise waits for itself, in the end, and cannot go on otherwise. */
bool weft__waiting_in_circle(const struct weft__waiting *w, uint32_t promise);

/* Of a promise in a circle: the first one it waits for that is in the same circle. */
uint32_t weft__waiting_next_in_circle(const struct weft__waiting *w, uint32_t promise);

/* Whether a promise of that kind may be pending: most kinds are not, and need not be looked for. */
static inline bool weft__waiting_any(const struct weft__waiting *w, enum weft_kind kind)
{
	return w->kinds >> (unsigned)kind % 64 & 1;
}

static inline size_t weft__waiting_count(const struct weft__waiting *w, uint32_t promise)
{
	return w->begin[promise + 1] - w->begin[promise];
}

#endif
