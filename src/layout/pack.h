/* pack.h: makes blocks of rows for tracks, and places promises in the blocks.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_PACK_H
#define WEFT_LAYOUT_PACK_H

#include "layout/layout.h"

/* Returns the key of a promise's band: the number of its group or, without groups, its stream. */
static inline uint16_t weft__band_key(const struct weft_model *model, const uint16_t *group_of, uint32_t promise)
{
	return group_of ? group_of[promise] : model->promises[promise].stream;
}

/* A line to pack.  The struct holds all fields of a promise that packing needs, because walking through model->promises would
 * touch much more memory. */
struct weft__item {
	int64_t start_ns, end_ns; /* see weft_layout_end() */
	uint32_t promise, parent;
};

/* Sets rows, row_count, by_row, row_begin, bands, and the times and rows of tracks.  `order` has `count` promises sorted by band
 * key, start and number, without followers in folds.  `parents` has one bit for each promise, set if other promises are drawn
 * under it.  Returns false without memory. */
bool weft__rows_pack(struct weft_layout *layout, const struct weft_model *model, const uint16_t *group_of,
    const struct weft__item *order, size_t count, const uint64_t *parents);

#endif
