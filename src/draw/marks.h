/* marks.h: marks over a frame, which change more often than the frame: the selected promise, the promise under the pointer, and
 * a veil over all promises that are not highlighted.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_MARKS_H
#define WEFT_DRAW_MARKS_H

#include "draw/draw.h"

struct weft_marks {
	weft_measure_fn *measure; /* as in weft_draw_options */
	void *measure_ctx;
	uint32_t selected, hovered;            /* WEFT_NONE: none */
	bool dim;                              /* dims all that is not highlighted */
	const struct weft_draw_options *frame; /* options of the frame, needed for the spots */
	struct {
		uint32_t track; /* of model/os_tracks.h, or WEFT_NONE */
		int64_t from_ns, to_ns;
	} spots[2]; /* intervals of OS threads under the pointer and selected, with arrows from their wakers */
	struct {
		const uint32_t *links; /* numbers of links */
		size_t count;
	} arrows[4]; /* arrows of selected promises: all are drawn, even those that the frame only counts */
};

/* Draws marks into a list as large as the view.  On failure (WEFT_ENOMEM) the list is empty.  Takes a few µs; with `dim`, 5 ns
 * for each visible promise. */
int weft_marks_draw(
    struct weft_draw_list *list, const struct weft_view *view, const struct weft_marks *marks, struct weft_error *err);

#endif
