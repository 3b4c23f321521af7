/* fold.h: folds that the user makes: a track onto the line of its actor, or promises of one kind in one track onto the line of
 * the first.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_FOLD_H
#define WEFT_VIEW_FOLD_H

#include "view/query.h"
#include "view/view.h"

#define WEFT_MAX_FOLDS 64
#define WEFT_MAX_OPENED_FOLDS 32
#define WEFT_MAX_HIDDEN 16
#define WEFT_THIN_ROW_PX 3.0       /* lower rows cannot be distinguished */
#define WEFT_CROWDED_ROW_PX 8.0    /* nor can lower rows on which */
#define WEFT_NAMED_PROMISE_PX 48.0 /* promises are shorter than a name */

/* Queries (query.h) for promises to fold.  An actor that matches folds its track.  Other promises that match fold if they are of
 * one kind, one track and one OS thread. */
struct weft_folding {
	char queries[WEFT_MAX_FOLDS][WEFT_QUERY_BYTES + 1];
	size_t count;
	int depth; /* depth at which the tracks of each OS thread are folded, counted from the first depth at which no single
		      track holds nearly all of its promises, which is 1; 0: none are folded */
	int64_t opened[WEFT_MAX_OPENED_FOLDS]; /* ids of actors of tracks that are not folded by depth */
	size_t opened_count;
	char hidden[WEFT_MAX_HIDDEN]
		   [WEFT_QUERY_BYTES + 1]; /* queries for promises that have no rows, with the tracks of actors */
	size_t hidden_count;
	char only[WEFT_QUERY_BYTES +
		  1];         /* a query for the promises that alone have rows, with the tracks of actors; "": all have */
	bool shows_internals; /* what a runtime made for itself (model/roles.h) has rows; else it shares one line for each process
			       */
	enum weft_rows_by
	    rows_by; /* if not by thread: there are no tracks, and matching promises fold if they are of one kind and group */
};

/* Opens a track that is folded by depth, or closes it again.  Returns false if too many are open. */
bool weft_folding_toggle_opened(struct weft_folding *folding, int64_t id);

/* Finds the depth at which tracks should be folded if rows are too low to be distinguished: the deepest that leaves few rows, or
 * 1.  *depth is 0 if folding would not help.  Creates up to three layouts: see weft_layout_create_folded(). */
int weft_folding_find_depth(int *depth, const struct weft_model *model, const struct weft_layout *whole, struct weft_error *err);

/* Number of rows in the middle of intervals of several lengths.  From these, weft_thinness_at() decides whether the rows of a
 * view are too low; the decision depends on the length of the visible interval, not on its position. */
#define WEFT_THIN_SCALES 24
struct weft_thinness {
	uint32_t rows[WEFT_THIN_SCALES]; /* visible rows in intervals of 1, 1/2, 1/4 ... of the trace */
	double promises;                 /* in the whole trace */
};
void weft_thinness_measure(struct weft_thinness *thinness, struct weft_view *whole); /* restores the visible interval */
bool weft_thinness_at(const struct weft_thinness *thinness, const struct weft_view *view, double lanes_px);

/* Adds a query, or removes it if it is present.  Returns false if there are too many queries, or if it is empty, invalid or too
 * long. */
bool weft_folding_toggle(struct weft_folding *folding, const char *query);
bool weft_folding_has(const struct weft_folding *folding, const char *query);

/* Hides what matches a query.  Returns false as weft_folding_toggle() does. */
bool weft_folding_hide(struct weft_folding *folding, const char *query);

/* Clears the bits of hidden promises in *only, which has bits by promise as for weft_layout_create_folded(); if it is NULL, all
 * are set first.  Does nothing if nothing is hidden.  The caller frees *only.  WEFT_ENOTFOUND: no promise would be left.
 * WEFT_ENOMEM.  Linear in promises, for each query. */
int weft_folding_find_shown(uint64_t **only, const struct weft_folding *folding, const struct weft_model *model,
    const struct weft_layout *whole, struct weft_error *err);

/* Finds leader_of for weft_layout_create_folded().  The caller frees *leader_of, which is NULL if nothing is folded.  `whole` is
 * the layout of all promises; its folds are kept.  Fails with WEFT_ENOMEM.  Linear in promises, for each query. */
int weft_folding_find(uint32_t **leader_of, const struct weft_folding *folding, const struct weft_model *model,
    const struct weft_layout *whole, const uint64_t *only, struct weft_error *err);

/* Averages over an interval of a fold's line: promises alive and promises running; and the number of promises that failed in
 * it. */
struct weft_fold_sum {
	double alive, running;
	size_t failed;
};

/* Sums over a fold that the user made, given by its number.  sums[i] covers times_ns[i] up to times_ns[i + 1]; there are `count`
 * sums, and the count + 1 times must not decrease.  Each interval is searched from the end of the one before: linear in
 * intervals, logarithmic in promises and their runs. */
void weft_view_sum_fold(
    const struct weft_view *view, size_t fold, const int64_t *times_ns, size_t count, struct weft_fold_sum *sums);

#endif
