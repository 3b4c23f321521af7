/* fold.h: what is folded by hand: tracks to the lines of their actors, and what is of one kind in one track to the line of the
 * first.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_FOLD_H
#define WEFT_VIEW_FOLD_H

#include "view/query.h"
#include "view/view.h"

#define WEFT_FOLDS_MOST 64
#define WEFT_OPENED_MOST 32
#define WEFT_THIN_PX 3.0     /* rows that are lower cannot be told apart, */
#define WEFT_CROWDED_PX 8.0  /* nor those that are lower than that, on which */
#define WEFT_PROMISE_PX 48.0 /* promises are shorter than a name */

/* Queries (query.h), of which each says what is folded: of an actor that matches its track; of other promises that match, those
 * of one kind, one track and one OS thread. */
struct weft_folding {
	char queries[WEFT_FOLDS_MOST][WEFT_QUERY_BYTES + 1];
	size_t count;
	int depth; /* tracks of an OS thread are folded so deep, 1 being where they first branch: where no one of them has nearly
		    * all that tracks of that depth have; 0: none */
	int64_t opened[WEFT_OPENED_MOST]; /* but not those of these actors, by id */
	size_t opened_count;
	enum weft_rows_by
	    rows_by; /* with groups there are no tracks: of any promises that match, those of one kind and group fold */
};

/* Opens what is folded for its depth, or closes it again; false if too many are open. */
bool weft_folding_toggle_opened(struct weft_folding *folding, int64_t id);

/* At which depth tracks are to be folded where rows are too low to be told apart: the deepest that leaves few rows, or 1.  0:
 * that would not help.  Makes a layout or two: see weft_layout_create_folded(). */
int weft_folding_find_depth(int *depth, const struct weft_model *model, const struct weft_layout *whole, struct weft_error *err);

/* Whether rows of that view, at its size, would be too low: by how many rows stretches of time as long have in the middle,
 * so that it is the same wherever one looks. */
#define WEFT_THIN_SCALES 24
struct weft_thinness {
	uint32_t rows[WEFT_THIN_SCALES]; /* in 1, 1/2, 1/4 ... of the trace */
	double promises;                 /* in all of it */
};
void weft_thinness_measure(struct weft_thinness *thinness, struct weft_view *whole); /* keeps what the view shows */
bool weft_thinness_at(const struct weft_thinness *thinness, const struct weft_view *view, double lanes_px);

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

/* Of a fold that was made by hand, by its number: sums[i] is of times_ns[i] up to times_ns[i + 1]; `count` sums, of times that
 * never fall.  What begins and ends in a stretch is found near what does in the one before: linear in stretches, logarithmic in
 * promises and their runs. */
void weft_view_sum_fold(
    const struct weft_view *view, size_t fold, const int64_t *times_ns, size_t count, struct weft_fold_sum *sums);

#endif
