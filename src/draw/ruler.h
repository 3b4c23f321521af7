/* ruler.h: the times of a view in a strip of their own, the time under the pointer, and a measured span.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_RULER_H
#define WEFT_DRAW_RULER_H

#include "draw/draw.h"

#define WEFT_RULER_PX 24.0 /* a good height */

struct weft_ruler_options {
	weft_measure_fn *measure; /* as in weft_draw_options */
	void *measure_ctx;
	struct weft_clock clock;
	bool no_metrics; /* this and the next as in weft_draw_options */
	const uint8_t *hidden_metrics;
	bool no_threads;
	bool has_pointer, has_span;
	int64_t pointer_ns;
	int64_t span_from_ns, span_to_ns; /* in either order */
	const char *crumb;                /* where one is, to be pressed to leave it; NULL: nothing */
	bool legend;                      /* what the signs mean */
	const char *tip;                  /* what is under the pointer, in a sentence that is written beside it; NULL: nothing */
	double tip_x_px, tip_y_px;
};

/* Fills a list with a strip as wide as the view, to be shown above or below a frame that leaves its own out (no_axis): ticks as
 * fine as there is room for their times, the same as the grid of a frame with the same clock; the pointer's time; the length of
 * the span.  `options` may be NULL.  On failure (WEFT_ENOMEM) the list is empty.  Some µs. */
int weft_ruler_draw(struct weft_draw_list *list, const struct weft_view *view, double height_px,
    const struct weft_ruler_options *options, struct weft_error *err);

/* Fills a list with what continues the ruler over the frame, to be drawn on top of it: the pointer's line, the values that
 * counters have there, and the span's ends.  As large as the view. */
int weft_ruler_guides(
    struct weft_draw_list *list, const struct weft_view *view, const struct weft_ruler_options *options, struct weft_error *err);

/* Whether that point of the frame is where guides say where one is. */
bool weft_draw_is_crumb_at(const struct weft_draw_list *guides, double x_px, double y_px);

/* Whether the trace knows the time of day, so that weft_clock.wall makes a difference. */
bool weft_clock_is_known(const struct weft_model *model);

/* Writes a time in ns since the model's start, as "12.34 ms" or "14:03:22.123", as exactly as steps of step_ns need; terminated.
 * Returns its length, less than `size`, which is 64 at least. */
size_t weft_clock_print(
    char *buf, size_t size, const struct weft_model *model, const struct weft_clock *clock, int64_t time_ns, int64_t step_ns);

/* The same of a duration: "1.25 ms", "2 min 5 s". */
size_t weft_duration_print(char *buf, size_t size, int64_t duration_ns, int64_t step_ns);

/* What a pixel of the view is exact to: a power of ten, for step_ns above. */
int64_t weft_view_exactness_ns(const struct weft_view *view);

#endif
