/* track.h: which promises belong to which actor.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_TRACK_H
#define WEFT_LAYOUT_TRACK_H

#include "layout/layout.h"

/* What any promise has: what none has need not be looked for. */
struct weft__census {
	uint32_t traits; /* of their kinds */
	uint8_t flags;   /* enum weft_promise_flag */
};

/* It does things as long as it lives, or its code is called again and again: a timer that repeats.  Of weft_model.promises. */
bool weft__is_actor(const struct weft_promise *promise);

/* Sets tracks (all but their times and rows), track_count, track_of and actors of a layout whose folds are known; false when out
 * of memory.  Linear in promises and links. */
bool weft__tracks_find(struct weft_layout *layout, const struct weft_model *model, const struct weft__census *census);

/* The same of promises whose bits are set in `only`, from the tracks of all promises.  Linear in promises. */
bool weft__tracks_take(
    struct weft_layout *layout, const struct weft_model *model, const struct weft_layout *whole, const uint64_t *only);

#endif
