/* track.h: which promises belong to which actor.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_TRACK_H
#define WEFT_LAYOUT_TRACK_H

#include "layout/layout.h"

/* Of promises whose bits are set in `only`, or of all if that is NULL.  Sets tracks (all but their rows), track_count and
 * track_of of a layout whose folds are known; false when out of memory.  Linear in promises and links. */
bool weft__tracks_find(struct weft_layout *layout, const struct weft_model *model, const uint64_t *only);

#endif
