/* pack.h: tracks become blocks of rows, and promises stand in them.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_PACK_H
#define WEFT_LAYOUT_PACK_H

#include "layout/layout.h"

/* What a promise's band is made by: the number of its group, or of its stream, if there are no groups. */
static inline uint16_t weft__band_key(const struct weft_model *model, const uint16_t *group_of, uint32_t promise)
{
	return group_of ? group_of[promise] : model->promises[promise].stream;
}

/* What is packed: a line.  It has all that packing asks of a promise, since model->promises are many more bytes to walk through.
 */
struct weft__item {
	int64_t start_ns, end_ns; /* as weft_layout_end() */
	uint32_t promise, parent;
};

/* Sets rows, row_count, by_row, row_begin, bands, and the times and rows of tracks.  `order` has `count` promises by what
 * their band is made by, start and number, without those that follow in a fold.  `parents` has bits by promise: others are drawn
 * under it.  False when out of memory. */
bool weft__rows_pack(struct weft_layout *layout, const struct weft_model *model, const uint16_t *group_of,
    const struct weft__item *order, size_t count, const uint64_t *parents);

#endif
