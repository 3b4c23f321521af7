/* fold.h: what is folded by hand: tracks to the lines of their actors, and what is of one kind in one track to the line of the
 * first.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_FOLD_H
#define WEFT_VIEW_FOLD_H

#include "view/query.h"
#include "view/view.h"

#define WEFT_FOLDS_MOST 64

/* Queries (query.h), of which each says what is folded: of an actor that matches its track; of other promises that match, those
 * of one kind, one track and one OS thread. */
struct weft_folding {
	char queries[WEFT_FOLDS_MOST][WEFT_QUERY_BYTES + 1];
	size_t count;
};

/* Adds a query, or takes it away if it is there; false if there are too many, or if it is none or too long. */
bool weft_folding_toggle(struct weft_folding *folding, const char *query);
bool weft_folding_has(const struct weft_folding *folding, const char *query);

/* For weft_layout_create_folded(): *leader_of is the caller's to free, and NULL if nothing is folded.  `whole` is the layout of
 * all, whose folds stay folds.  WEFT_ENOMEM.  Linear in promises, for each query. */
int weft_folding_find(uint32_t **leader_of, const struct weft_folding *folding, const struct weft_model *model,
    const struct weft_layout *whole, const uint64_t *only, struct weft_error *err);

/* What stands on the line of a fold from one time to another: how many on average, and how many of them ran; how many failed. */
struct weft_fold_sum {
	double alive, running;
	size_t failed;
};

/* Of a fold that was made by hand, by its number.  Logarithmic in its promises and their runs. */
struct weft_fold_sum weft_view_sum_fold(const struct weft_view *view, size_t fold, int64_t from_ns, int64_t to_ns);

#endif
