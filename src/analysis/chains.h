/* chains.h: for each pending promise, what it waits for in the end, and why that does not come.
 *
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_CHAINS_H
#define WEFT_ANALYSIS_CHAINS_H

#include "analysis/explain.h"
#include "analysis/lacks.h"
#include "analysis/waiting.h"
#include "base/vec.h"

/* A promise that should resolve and never did, and what it waits for in the end. */
struct weft__blocked {
	uint32_t root, promise;
};

struct weft__chains {
	const struct weft_ties *ties;
	const struct weft__waiting *waiting;
	const struct weft__lacks *lacks;
	/* By promise, of those that are pending: */
	uint32_t *next;   /* of those that it waits for the one that explains most; WEFT_NONE: it is a root, or in a circle */
	uint32_t *root;   /* the end of that chain, or the first member of the circle that it ends in */
	uint8_t *verdict; /* enum weft_verdict of its root */
	WEFT_VEC(struct weft__blocked) blocked; /* by root, then by promise */
	/* Of conditions; NULL until one is asked for. */
	uint32_t *kids_begin, *kids; /* by condition: what it created, which is who waits there */
	uint32_t *unheard_of;        /* by condition that was looked at: where its list in `unheard` begins, or WEFT_NONE */
	WEFT_VEC(uint32_t) unheard;  /* signals that met nobody, numbers of links: [count, link...] each */
};

/* All that is passed must outlive it.  WEFT_ENOMEM, WEFT_ECANCELLED.  Near-linear.  Finish it in any case. */
int weft__chains_init(struct weft__chains *c, const struct weft_ties *ties, const struct weft__waiting *waiting,
    const struct weft__lacks *lacks, struct weft__watch *watch);
void weft__chains_finish(struct weft__chains *c);

/* Those that are blocked by a root: how many, and the first of them. */
size_t weft__chains_blocked(const struct weft__chains *c, uint32_t root, const struct weft__blocked **first);

/* What the promise awaited last, if that has ended and the promise neither read it nor ran since; else WEFT_NONE. */
uint32_t weft__chains_ready_input(const struct weft__chains *c, uint32_t promise);

/* The number of the link by which a lock was last held, or WEFT_NONE.  Its .to holds it; that may have become another promise,
 * and may have come to its end since. */
uint32_t weft__chains_last_hold(const struct weft__chains *c, uint32_t lock);

/* Signals to the promise's condition that met nobody, before the promise waited there: their numbers as links, the last one last.
 * Of a root whose verdict is WEFT_VERDICT_LOST_WAKEUP there is one at least. */
size_t weft__chains_missed_signals(const struct weft__chains *c, uint32_t promise, const uint32_t **links);

#endif
