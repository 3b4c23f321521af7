/* layout.h: which row each promise is drawn on.
 *
 * The rules, which a property test holds on random traces:
 *   - no two promises overlap in time on one row (touching ends do not overlap);
 *   - a child stands below the promise under which it is drawn, or in its row after it;
 *   - the promises of one stream form a band: its rows are contiguous, and bands stand in the order of streams;
 *   - related promises stand close, and rows are few.
 * Near-linear in the number of promises; no recursion on depth.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_LAYOUT_H
#define WEFT_LAYOUT_LAYOUT_H

#include "model/model.h"

struct weft_band {
	uint32_t first_row, row_count;
	uint16_t stream;
};

struct weft_layout {
	uint32_t *rows; /* by promise; the system has WEFT_NONE */
	uint32_t row_count;
	uint32_t *by_row;    /* promises ordered by row, then start */
	uint32_t *row_begin; /* [row_count + 1]: those of row r are by_row[row_begin[r]] up to by_row[row_begin[r + 1]] */
	struct weft_band *bands;
	size_t band_count;
};

/* On failure *out is untouched: WEFT_ENOMEM. */
int weft_layout_create(struct weft_layout **out, const struct weft_model *model, struct weft_error *err);
void weft_layout_destroy(struct weft_layout *layout);

#endif
