/* focus.h: what belongs to one promise.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_FOCUS_H
#define WEFT_LAYOUT_FOCUS_H

#include "layout/layout.h"

/* Bits by promise, for weft_layout_create_folded(): the promise; what it made, which for an actor is its track, for another what
 * it and what it made created until it ended; what these waited for or read, and so on to the end of each chain, as far as that
 * was before the promise ended; and who waited for the promise or read it.  `layout` is that of the whole model.  *out is the
 * caller's, to be freed; *count, if not NULL, is how many there are.  WEFT_ENOMEM.  Linear in promises and links. */
int weft_focus_find(uint64_t **out, size_t *count, const struct weft_model *model, const struct weft_layout *layout,
    uint32_t promise, struct weft_error *err);

#endif
