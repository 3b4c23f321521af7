/* sorts.h: promises of one sort: of the same first label and kind, else of the same place of creation and kind, else of the same
 * kind.  Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_SORTS_H
#define WEFT_ANALYSIS_SORTS_H

#include "analysis/ties.h"
#include "base/vec.h"

struct weft__sort {
	uint32_t first;         /* of them */
	uint32_t last_resolved; /* of those that were resolved, or WEFT_NONE */
	uint32_t count, resolved, pending, ended;
	int64_t longest_ns; /* from creation to end, of those whose creation is known */
	uint32_t label;     /* their first label, or WEFT_NONE */
	uint16_t kind;      /* of all of them */
	bool named;         /* by a label or a place: more than a kind */
};

struct weft__sorts {
	uint32_t *of;    /* by promise: index into items */
	uint16_t *kinds; /* by promise, close together: whoever looks for all of a kind need not touch the others */
	WEFT_VEC(struct weft__sort) items;
	bool has_kind[WEFT_KIND_PREEXISTING + 1];
};

/* Whether there is a promise of that kind: most programs have few kinds, and a check need not look for others. */
static inline bool weft__sorts_have(const struct weft__sorts *sorts, unsigned kind)
{
	return sorts->has_kind[kind];
}

/* As weft_first_label(), without a look at the promise's labels. */
static inline uint32_t weft__sorts_label(const struct weft__sorts *sorts, uint32_t p)
{
	return sorts->items.items[sorts->of[p]].label;
}

/* WEFT_ENOMEM, WEFT_ECANCELLED.  Linear.  Finish it in any case. */
int weft__sorts_init(struct weft__sorts *sorts, const struct weft_ties *ties, struct weft__watch *watch);
void weft__sorts_finish(struct weft__sorts *sorts);

#endif
