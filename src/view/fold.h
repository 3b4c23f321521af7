/* fold.h: computes folds that the user makes: a track onto the line of its actor, or promises of one kind in one track onto the
 * line of the first promise.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_FOLD_H
#define WEFT_VIEW_FOLD_H

#include "view/query.h"
#include "view/view.h"

#define WEFT_MAX_FOLDS 64
#define WEFT_MAX_OPENED_FOLDS 32
#define WEFT_MAX_HIDDEN 16
#define WEFT_THIN_ROW_PX 3.0 /* height in px below which rows cannot be distinguished */
/* Height in px below which rows are too crowded if their promises are shorter than WEFT_NAMED_PROMISE_PX. */
#define WEFT_CROWDED_ROW_PX 8.0
#define WEFT_NAMED_PROMISE_PX 48.0 /* length in px of a promise that has space for a name */

/* Queries (query.h) that select promises to fold.  If an actor matches, its track is folded.  Other matching promises are folded
 * if they are of one kind, one track and one OS thread. */
struct weft_folding {
	char queries[WEFT_MAX_FOLDS][WEFT_QUERY_BYTES + 1];
	size_t count;
	/* Depth at which the tracks of each OS thread are folded; depth 1 is the first depth at which no single track contains
	 * nearly all of the thread's promises; 0 folds no tracks. */
	int depth;
	/* Ids of the actors of tracks that are not folded by depth, because the user opened them. */
	int64_t opened[WEFT_MAX_OPENED_FOLDS];
	size_t opened_count;
	char hidden[WEFT_MAX_HIDDEN]
		   /* Queries for promises that have no rows; if an actor matches, its track has no rows either. */
		   [WEFT_QUERY_BYTES + 1];
	size_t hidden_count;
	char only[WEFT_QUERY_BYTES +
		  /* Query for the only promises that have rows, together with the tracks of matching actors; "" if all promises
		   * have rows. */
		  1];
	/* Whether the promises that a runtime made for itself (model/roles.h) have rows; otherwise they share one line for each
	 * process. */
	bool shows_internals;
	enum weft_rows_by
	    /* Criterion of row groups; if it is not the thread, there are no tracks, and matching promises are folded if they
	     * are of one kind and group. */
	    rows_by;
};

/* Opens a track that is folded by depth, or closes an opened track again.  Returns false if too many tracks are open. */
bool weft_folding_toggle_opened(struct weft_folding *folding, int64_t id);

/* Finds the depth at which tracks should be folded if rows are too low to be distinguished: the deepest depth that leaves few
 * rows, or 1. *depth is 0 if folding would not help.  The function creates up to three layouts: see
 * weft_layout_create_folded(). */
int weft_folding_find_depth(int *depth, const struct weft_model *model, const struct weft_layout *whole, struct weft_error *err);

/* Numbers of rows that are visible in the middle of intervals of several lengths.  From these numbers, weft_thinness_at()
 * decides whether the rows of a view are too low; the decision depends on the length of the visible interval, and not on its
 * position. */
#define WEFT_THIN_SCALES 24
struct weft_thinness {
	uint32_t rows[WEFT_THIN_SCALES]; /* number of visible rows in intervals of 1, 1/2, 1/4 ... of the trace */
	double promises;                 /* in the whole trace */
};
void weft_thinness_measure(struct weft_thinness *thinness, struct weft_view *whole); /* restores the visible interval */
bool weft_thinness_at(const struct weft_thinness *thinness, const struct weft_view *view, double lanes_px);

/* Adds a query to the folding, or removes the query if it is present.  Returns false if there are too many queries, or if the
 * query is empty, invalid or too long. */
bool weft_folding_toggle(struct weft_folding *folding, const char *query);
bool weft_folding_has(const struct weft_folding *folding, const char *query);

/* Hides the promises that match a query.  Returns false for the same reasons as weft_folding_toggle(). */
bool weft_folding_hide(struct weft_folding *folding, const char *query);

/* Clears the bits of hidden promises in *only, which has bits by promise as for weft_layout_create_folded(); if *only is NULL,
 * all bits are set first.  Does nothing if no promise is hidden.  The caller frees *only.  Fails with WEFT_ENOTFOUND if no
 * promise would be left, or with WEFT_ENOMEM.  WEFT_ENOMEM.  The time is linear in promises, for each query. */
int weft_folding_find_shown(uint64_t **only, const struct weft_folding *folding, const struct weft_model *model,
    const struct weft_layout *whole, struct weft_error *err);

/* Finds leader_of for weft_layout_create_folded().  The caller frees *leader_of, which is NULL if nothing is folded.  `whole` is
 * the layout of all promises, whose folds are kept.  Fails with WEFT_ENOMEM.  The time is linear in promises, for each query. */
int weft_folding_find(uint32_t **leader_of, const struct weft_folding *folding, const struct weft_model *model,
    const struct weft_layout *whole, const uint64_t *only, struct weft_error *err);

/* Averages over an interval of a fold's line: the numbers of living and of running promises; and the number of promises that
 * failed in the interval. */
struct weft_fold_sum {
	double alive, running;
	size_t failed;
};

/* Computes sums over a fold that the user made, given by its number. sums[i] covers times_ns[i] up to times_ns[i + 1]; there are
 * `count` sums, and the count + 1 times must not decrease.  Each interval is searched from the end of the interval before, so
 * the time is linear in intervals, and logarithmic in promises and their runs. */
void weft_view_sum_fold(
    const struct weft_view *view, size_t fold, const int64_t *times_ns, size_t count, struct weft_fold_sum *sums);

#endif
