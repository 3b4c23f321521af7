/* sums.h: sums of the activity of promises on blocks of rows up to a time.  With them, drawing a layout of far more rows than
 * pixels costs time for the visible part only.  Private to view/ and draw/.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_SUMS_H
#define WEFT_VIEW_SUMS_H

#include "view/view.h"

/* The sums: rows on which a promise is alive, rows where it runs, rows where it never resolves, and the number of ends of
 * promises that went wrong. */
enum weft_sum { WEFT_SUM_ALIVE, WEFT_SUM_RUN, WEFT_SUM_NEVER, WEFT_SUM_WRONG_ENDS, WEFT_SUMS };

/* Sums over all rows above a block and all slices before a time.  They wrap around; their differences are exact. */
struct weft_sums {
	unsigned block_shift, slice_shift; /* a block has 2^n rows; a slice has 2^n ns, from time 0 on */
	size_t blocks, slices;
	uint32_t unit; /* the value of one row over one slice; a shorter promise counts 1, and so does an end */
	uint32_t *sums;
};

struct weft_index;

/* Creates sums from an index that has its lives and boxes.  Most layouts have too few rows to need sums; then .sums is NULL.
 * Returns false when out of memory.  Linear, about 20 ns and at most 32 bytes for each promise. */
bool weft__sums_create(struct weft_sums *sums, const struct weft_index *index, const struct weft_layout *layout);

/* Returns the [slices + 1] sums of the blocks above a block. */
static inline const uint32_t *weft__sums_above(const struct weft_sums *sums, enum weft_sum which, size_t block)
{
	return sums->sums + (block * WEFT_SUMS + (size_t)which) * (sums->slices + 1);
}

#endif
