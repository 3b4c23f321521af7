/* marks.h: what is drawn over a frame and changes more often than it: which promise is selected, which is under the pointer; and
 * a veil over all that is not highlighted.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_MARKS_H
#define WEFT_DRAW_MARKS_H

#include "draw/draw.h"

struct weft_marks {
	weft_measure_fn *measure; /* as in weft_draw_options */
	void *measure_ctx;
	uint32_t selected, hovered;            /* WEFT_NONE: none */
	bool dim;                              /* what is not highlighted */
	const struct weft_draw_options *frame; /* those of the frame, for: */
	struct {
		uint32_t track; /* of model/os_tracks.h, or WEFT_NONE */
		int64_t from_ns, to_ns;
	} spots[2]; /* of an OS thread: stretches under the pointer, and picked; with the arrow from who woke it */
	struct {
		const uint32_t *links; /* numbers of them */
		size_t count;
	} arrows[4]; /* drawn in full, however many there are in the frame: those of these promises */
};

/* Fills a list, as large as the view, to be drawn over a frame.  On failure (WEFT_ENOMEM) the list is empty.  Some µs; with `dim`
 * linear in the promises that are seen, 5 ns each. */
int weft_marks_draw(
    struct weft_draw_list *list, const struct weft_view *view, const struct weft_marks *marks, struct weft_error *err);

#endif
