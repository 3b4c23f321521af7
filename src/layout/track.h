/* track.h: finds the actor to which each promise belongs.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_TRACK_H
#define WEFT_LAYOUT_TRACK_H

#include "layout/layout.h"

/* The traits and flags that at least one promise has.  Searches for a trait that no promise has are skipped. */
struct weft__census {
	uint32_t traits; /* bits of enum weft_trait, over all kinds */
	uint16_t flags;  /* enum weft_promise_flag */
};

/* Returns whether a promise is an actor: its kind acts during its whole life, or its code is called repeatedly, as that of a
 * repeating timer.  `promise` must point into weft_model.promises. */
bool weft__is_actor(const struct weft_promise *promise);

/* Sets tracks (except times and rows), track_count, track_of and actors of a layout whose folds are known.  Returns false
 * without memory.  The time is linear in promises and links. */
bool weft__tracks_find(struct weft_layout *layout, const struct weft_model *model, const struct weft__census *census);

/* Sets the same fields as weft__tracks_find() for the promises in `only`, from the tracks of all promises.  Linear in
 * promises. */
bool weft__tracks_restrict(
    struct weft_layout *layout, const struct weft_model *model, const struct weft_layout *whole, const uint64_t *only);

#endif
