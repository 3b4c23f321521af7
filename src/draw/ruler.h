/* ruler.h: draws a strip with the time axis of a view, the time under the pointer, and a measured span.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_RULER_H
#define WEFT_DRAW_RULER_H

#include "draw/draw.h"

#define WEFT_RULER_PX 24.0 /* recommended height */

struct weft_ruler_options {
	weft_measure_fn *measure; /* as in weft_draw_options */
	void *measure_ctx;
	struct weft_clock clock;
	bool no_metrics; /* options with the same meanings as in weft_draw_options */
	const uint8_t *hidden_metrics;
	bool no_threads;
	bool has_pointer, has_span;
	int64_t pointer_ns;
	int64_t span_from_ns, span_to_ns; /* in either order */
	/* Breadcrumb: name of the shown subset, which the user leaves by pressing the name; NULL: none. */
	const char *crumb;
	bool legend; /* draw the legend */
	/* Tooltip: sentence about the item under the pointer, drawn beside the pointer; NULL: none. */
	const char *tip;
	double tip_x_px, tip_y_px;
};

/* Draws a ruler as wide as the view, for use above or below a frame without an axis (no_axis).  The ruler has ticks as dense as
 * their times fit, at the same times as the grid of a frame with the same clock; the pointer's time; and the length of the
 * measured span.  `options` may be NULL.  On failure (WEFT_ENOMEM) the draw list is empty.  Takes a few µs. */
int weft_ruler_draw(struct weft_draw_list *list, const struct weft_view *view, double height_px,
    const struct weft_ruler_options *options, struct weft_error *err);

/* Draws the guides, which continue the ruler over the frame and are as large as the view: the pointer's line, the values of
 * counters at the pointer, and the ends of the measured span. */
int weft_ruler_guides(
    struct weft_draw_list *list, const struct weft_view *view, const struct weft_ruler_options *options, struct weft_error *err);

/* Returns whether a point of the frame is on the breadcrumb that the guides show. */
bool weft_draw_is_crumb_at(const struct weft_draw_list *guides, double x_px, double y_px);

/* Returns whether the trace has the time of day, so that weft_clock.wall has an effect. */
bool weft_clock_is_known(const struct weft_model *model);

/* Writes a time in ns since the model's start as a terminated text, as "12.34 ms" or "14:03:22.123", with the precision of steps
 * of step_ns.  Returns the text's length, which is less than `size`; `size` must be at least 64. */
size_t weft_clock_print(
    char *buf, size_t size, const struct weft_model *model, const struct weft_clock *clock, int64_t time_ns, int64_t step_ns);

/* Writes a duration as "1.25 ms" or "2 min 5 s", with the precision of steps of step_ns. */
size_t weft_duration_print(char *buf, size_t size, int64_t duration_ns, int64_t step_ns);

/* Returns the precision of a pixel of the view in ns, a power of ten, for use as step_ns. */
int64_t weft_view_exactness_ns(const struct weft_view *view);

/* Adds the legend below the frame in the draw list.  On failure (WEFT_ENOMEM) the draw list is empty. */
int weft_legend_draw(
    struct weft_draw_list *list, const struct weft_model *model, const struct weft_draw_options *options, struct weft_error *err);

#endif
