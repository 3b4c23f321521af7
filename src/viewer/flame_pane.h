/* flame_pane.h: shows the time of all promises as stacks (analysis/queries/flame_stacks.h), in a pane below the picture and as
 * rows (table.h).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_FLAME_PANE_H
#define WEFT_VIEWER_FLAME_PANE_H

#include "analysis/queries/flame_stacks.h"
#include "draw/icicle.h"
#include "viewer/viewer.h"

/* Shows or hides the pane of stacks; `root` is the stack that takes the full width, or 0 if there is none.  If needed, the
 * function computes the stacks, which takes 0.3 us for each promise.  Without memory nothing changes. */
void weft_viewer_show_blame(struct weft_viewer *viewer, bool shown, enum weft_folded_by by, uint32_t root);

/* Returns an icicle graph of all stacks, which is valid as long as `stacks` and `blamed` are. */
struct weft_blame_source {
	const struct weft_stacks *stacks;
	const int64_t *other_ns; /* by stack: its time in another trace (weft_stacks_match()); NULL if there is none */
	int64_t other_all_ns;    /* all time of that trace */
	char title[300];
};
struct weft_icicle weft_blame_icicle(struct weft_blame_source *blamed, const struct weft_stacks *stacks, enum weft_folded_by by);

/* Makes an icicle graph show how the share of each stack differs from another trace, whose name the title then has. */
void weft_blame_compare(struct weft_icicle *icicle, struct weft_blame_source *blamed, const int64_t *other_ns,
    int64_t other_all_ns, const char *other_name);

#endif
