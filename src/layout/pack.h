/* pack.h: makes blocks of tracks, and places promises in them.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_PACK_H
#define WEFT_LAYOUT_PACK_H

#include "layout/layout.h"

/* Returns the key of a promise's band: the number of its group or, without groups, its stream. */
static inline uint16_t weft__band_key(const struct weft_model *model, const uint16_t *group_of, uint32_t promise)
{
	return group_of ? group_of[promise] : model->promises[promise].stream;
}

/* A line to pack.  It holds all fields of a promise that packing needs, because model->promises is much larger to walk
 * through. */
struct weft__item {
	int64_t start_ns, end_ns; /* see weft_layout_end() */
	uint32_t promise, parent;
};

/* Sets rows, row_count, by_row, row_begin, bands, and the times and rows of tracks.  `order` has `count` promises sorted by band
 * key, start and number, without followers in folds.  `parents` has bits by promise: set if others are drawn under it.  Returns
 * false when out of memory. */
bool weft__rows_pack(struct weft_layout *layout, const struct weft_model *model, const uint16_t *group_of,
    const struct weft__item *order, size_t count, const uint64_t *parents);

#endif
