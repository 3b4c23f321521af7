/* marks.h: draws marks over a frame, which change more often than the frame: the selected promise, the promise under the
 * pointer, and a veil over all promises that are not highlighted.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_MARKS_H
#define WEFT_DRAW_MARKS_H

#include "draw/draw.h"

struct weft_marks {
	weft_measure_fn *measure; /* as in weft_draw_options */
	void *measure_ctx;
	uint32_t selected, hovered;            /* WEFT_NONE: none */
	bool dim;                              /* whether everything that is not highlighted is dimmed by a veil */
	const struct weft_draw_options *frame; /* options of the frame, which are needed to draw `spots` */
	struct {
		uint32_t track; /* of model/os_tracks.h, or WEFT_NONE */
		int64_t from_ns, to_ns;
		/* Intervals of OS threads, one under the pointer and one selected, with arrows from the threads that woke them.
		 */
	} spots[2];
	struct {
		const uint32_t *links; /* numbers of links */
		size_t count;
	} arrows[4]; /* arrows of selected promises; all of them are drawn, even arrows that the frame only counts */
};

/* Draws marks into a list as large as the view.  On failure (WEFT_ENOMEM) the draw list is empty.  The function takes a few µs;
 * with `dim`, it takes 5 ns more for each visible promise. */
int weft_marks_draw(
    struct weft_draw_list *list, const struct weft_view *view, const struct weft_marks *marks, struct weft_error *err);

#endif
