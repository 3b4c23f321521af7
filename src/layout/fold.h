/* fold.h: which promises share a line: struct weft_fold.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_FOLD_H
#define WEFT_LAYOUT_FOLD_H

#include "layout/layout.h"

/* Sets folds, fold_count and folded of a layout that has none; false when out of memory.  Linear in promises and links, and
 * n log n in those that do nothing. */
bool weft__folds_find(struct weft_layout *layout, const struct weft_model *model);

/* Sets them to what stands in leader_of (weft_layout_create_folded()).  Linear. */
bool weft__folds_gather(
    struct weft_layout *layout, const struct weft_model *model, const uint64_t *only, const uint32_t *leader_of);

#endif
