/* fold.h: finds the promises that share a line (struct weft_fold).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_FOLD_H
#define WEFT_LAYOUT_FOLD_H

#include "layout/layout.h"

/* Sets folds, fold_count and folded of a layout that has no folds.  Returns false without memory.  The time is linear in
 * promises and links, and n log n in idle promises. */
bool weft__folds_find(struct weft_layout *layout, const struct weft_model *model);

/* Sets folds, fold_count and folded from leader_of (see weft_layout_create_folded()).  Linear. */
bool weft__folds_from_leaders(
    struct weft_layout *layout, const struct weft_model *model, const uint64_t *only, const uint32_t *leader_of);

#endif
