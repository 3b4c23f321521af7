/* lane.c: draws a lane, a strip of named intervals.  SPDX-License-Identifier: ISC */
#include "draw/lane.h"

#include "base/search.h"
#include "draw/frame.h"

#define EDGE_PX 3  /* above and below intervals */
#define NAME_PX 28 /* minimum width in px of an interval in which a name is written */
#define HIT_PX 4.0

static void draw_name(struct weft__frame *f, const struct weft_lane *lane, size_t interval, int x0, int x1)
{
	char raw[200], text[208];
	double width;
	int left = x0 > 0 ? x0 : 0, right = x1 < f->width ? x1 : f->width;
	if (right - left < NAME_PX)
		return;
	size_t len = lane->name(lane->ctx, interval, raw, sizeof raw);
	len = weft__text_clean(text, sizeof text - 4, raw, len < sizeof raw ? len : sizeof raw - 1);
	len = weft__text_fit(f, WEFT_FONT_SMALL, text, len, sizeof text, right - left - 8, &width);
	if (len > 0)
		weft__text_put(f, WEFT_PAINT_BACKGROUND, left + 4, weft__floor(f->height / 2.0) + 3,
		    (struct weft__writing){WEFT_FONT_SMALL, text, len, width});
}

/* Draws intervals; of the intervals that start in one pixel, only the longest is drawn. */
static void draw_lane_intervals(struct weft__frame *f, const struct weft_lane *lane)
{
	size_t i = WEFT_FIND_FIRST(k, 0, lane->count, lane->end(lane->ctx, k) > f->from_ns);
	while (i < lane->count && lane->start(lane->ctx, i) < f->to_ns) {
		size_t longest = i, next = i + 1;
		int x0 = weft__floor(weft_view_x(f->view, lane->start(lane->ctx, i)));
		for (; next < lane->count && weft__floor(weft_view_x(f->view, lane->start(lane->ctx, next))) <= x0; next++)
			if (lane->end(lane->ctx, next) - lane->start(lane->ctx, next) >
			    lane->end(lane->ctx, longest) - lane->start(lane->ctx, longest))
				longest = next;
		int x1 = weft__floor(weft_view_x(f->view, lane->end(lane->ctx, next - 1)));
		x1 = x1 > x0 ? x1 : x0 + 1;
		/* Between intervals that are wide enough, a line in the background colour is left. */
		int gap = x1 - x0 > 4;
		weft__rect(f, weft__ink(WEFT_LAYER_SHADE, lane->paint(lane->ctx, longest), 255), x0, EDGE_PX, x1 - gap,
		    f->height - EDGE_PX);
		if (lane->marked >= i && lane->marked < next)
			weft__outline(f, x0 - 1, 0, x1 + 1, f->height);
		draw_name(f, lane, longest, x0, x1 - gap);
		i = next;
	}
}

int weft_lane_draw(struct weft_draw_list *list, const struct weft_view *view, double height_px, const struct weft_lane *lane,
    struct weft_error *err)
{
	struct weft__frame f = {.list = list,
	    .view = view,
	    .model = view->model,
	    .layout = view->layout,
	    .index = view->index,
	    .options = {.measure = lane->measure, .measure_ctx = lane->measure_ctx},
	    .from_ns = weft_view_time(view, -8),
	    .to_ns = weft_view_time(view, view->width_px + 8)};
	height_px = height_px >= 16 ? height_px < 256 ? height_px : 256 : 16;
	f.failed = !weft__frame_begin(&f, view->width_px, height_px);
	if (!f.failed) {
		weft__rect(&f, weft__ink(WEFT_LAYER_BACK, WEFT_PAINT_BACKGROUND, 255), 0, 0, f.width, f.height);
		draw_lane_intervals(&f, lane);
		weft__rect(&f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), 0, f.height - 1, f.width, f.height);
	}
	return weft__frame_end(&f, err);
}

size_t weft_lane_hit(const struct weft_view *view, const struct weft_lane *lane, double x_px)
{
	int64_t time_ns = weft_view_time(view, x_px);
	size_t i = WEFT_FIND_FIRST(k, 0, lane->count, lane->end(lane->ctx, k) > time_ns);
	double best = HIT_PX;
	size_t found = SIZE_MAX;
	for (size_t k = i > 0 ? i - 1 : 0; k < lane->count && k <= i + 1; k++) {
		double x0 = weft_view_x(view, lane->start(lane->ctx, k)), x1 = weft_view_x(view, lane->end(lane->ctx, k));
		double off = x_px < x0 ? x0 - x_px : x_px > x1 ? x_px - x1 : 0;
		if (off < best) {
			best = off;
			found = k;
		}
	}
	return found;
}
