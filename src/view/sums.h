/* sums.h: sums up the activity of promises on blocks of rows up to a time.  With these sums, drawing a layout of far more rows
 * than pixels costs time only for the visible part.  The header is private to src/view and src/draw.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_SUMS_H
#define WEFT_VIEW_SUMS_H

#include "view/view.h"

/* Types of sums: rows on which a promise is alive, rows on which it runs, rows on which it never resolves, and the number of
 * ends of promises that went wrong. */
enum weft_sum { WEFT_SUM_ALIVE, WEFT_SUM_RUN, WEFT_SUM_NEVER, WEFT_SUM_WRONG_ENDS, WEFT_SUMS };

/* Sums over all rows above a block and all slices of time before a time.  The sums wrap around; their differences are exact. */
struct weft_sums {
	/* Binary logarithms of the number of rows in a block, and of the number of ns in a slice, counted from time 0. */
	unsigned block_shift, slice_shift;
	size_t blocks, slices;
	uint32_t unit; /* value of one row over one slice; a shorter promise counts 1, and so does an end */
	uint32_t *sums;
};

struct weft_index;

/* Creates sums from an index whose lives and boxes are filled.  Most layouts have too few rows to need sums; .sums is then NULL.
 * Returns false without memory.  The cost is linear: about 20 ns and at most 32 bytes for each promise. */
bool weft__sums_create(struct weft_sums *sums, const struct weft_index *index, const struct weft_layout *layout);

/* Returns the slices + 1 sums over the blocks above a block. */
static inline const uint32_t *weft__sums_above(const struct weft_sums *sums, enum weft_sum which, size_t block)
{
	return sums->sums + (block * WEFT_SUMS + (size_t)which) * (sums->slices + 1);
}

#endif
