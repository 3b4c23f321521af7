/* sums.h: how much promises do on blocks of rows up to some time, so that a picture of far more rows than pixels costs what is
 * seen, not what there is.  Private to view/ and draw/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_SUMS_H
#define WEFT_VIEW_SUMS_H

#include "view/view.h"

/* What is summed up: rows on which a promise is alive, of these where it runs, or never resolves, and ends of what went wrong. */
enum weft_sum { WEFT_SUM_ALIVE, WEFT_SUM_RUN, WEFT_SUM_NEVER, WEFT_SUM_WRONG_ENDS, WEFT_SUMS };

/* Sums over all rows above a block, and all slices of time before one.  They wrap around: differences are right. */
struct weft_sums {
	unsigned block_shift, slice_shift; /* a block has 2^n rows, a slice 2^n ns, of time from 0 on */
	size_t blocks, slices;
	uint32_t unit; /* a row over a slice; what is shorter than 1 counts 1, and so does an end */
	uint32_t *sums;
};

struct weft_index;

/* Of an index that has its lives and boxes.  Most layouts have too few rows to need them: .sums is NULL then.  False when out of
 * memory.  Linear, about 20 ns for each promise, and at most 32 bytes. */
bool weft__sums_create(struct weft_sums *sums, const struct weft_index *index, const struct weft_layout *layout);

/* [slices + 1] of the blocks above. */
static inline const uint32_t *weft__sums_above(const struct weft_sums *sums, enum weft_sum which, size_t block)
{
	return sums->sums + (block * WEFT_SUMS + (size_t)which) * (sums->slices + 1);
}

#endif
