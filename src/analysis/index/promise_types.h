/* promise_types.h: types of promises.  Promises of a type have the same kind and first label; without a label, the same kind
 * and site; without a site, the same kind.  Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_PROMISE_TYPES_H
#define WEFT_ANALYSIS_INDEX_PROMISE_TYPES_H

#include "analysis/index/link_index.h"
#include "base/vec.h"

struct weft__promise_type {
	uint32_t first;         /* the first promise of the type */
	uint32_t last_resolved; /* the promise of the type that was resolved last, or WEFT_NONE */
	uint32_t count, resolved, pending, ended;
	int64_t longest_ns; /* longest time from creation to end, among promises whose creation is known */
	uint32_t label;     /* the first label of the promises, or WEFT_NONE */
	uint16_t kind;
	bool named; /* true if the type has a label or a site */
};

struct weft__promise_types {
	uint32_t *of;    /* by promise: index of its type in items */
	uint16_t *kinds; /* by promise: its kind; the array is dense, so that a search for a kind reads little memory */
	WEFT_VEC(struct weft__promise_type) items;
	bool has_kind[WEFT_KIND_PREEXISTING + 1];
};

/* Returns whether any promise has the kind: most programs have few kinds, so a check can skip the other kinds. */
static inline bool weft__promise_types_have(const struct weft__promise_types *types, unsigned kind)
{
	return types->has_kind[kind];
}

/* Returns the same as weft_first_label(), but without reading the labels of the promise. */
static inline uint32_t weft__promise_types_label(const struct weft__promise_types *types, uint32_t p)
{
	return types->items.items[types->of[p]].label;
}

/* Finds all types.  Returns WEFT_ENOMEM or WEFT_ECANCELLED on failure; the caller calls weft__promise_types_finish() in any
 * case.  Linear. */
int weft__promise_types_init(
    struct weft__promise_types *types, const struct weft_link_index *link_index, struct weft__cancel_token *cancel);
void weft__promise_types_finish(struct weft__promise_types *types);

#endif
