/* blame.h: where time went, as what stands below what (analysis/folded.h), in a pane below the picture and as rows (table.h).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_BLAME_H
#define WEFT_VIEWER_BLAME_H

#include "analysis/folded.h"
#include "draw/icicle.h"
#include "viewer/viewer.h"

/* Shows that pane, with a stack over all its width, or hides it.  What is not known yet is found: 0.3 us a promise.  Without
 * memory nothing changes; a stack that is none is the first. */
void weft_viewer_show_blame(struct weft_viewer *viewer, bool shown, enum weft_folded_by by, uint32_t root);

/* What is drawn of stacks, all of them; lives as long as these and `blamed`. */
struct weft_blamed {
	const struct weft_stacks *stacks;
	char title[200];
};
struct weft_icicle weft_blame_icicle(struct weft_blamed *blamed, const struct weft_stacks *stacks, enum weft_folded_by by);

#endif
