/* ruler.c: draws the ruler (time axis) and the guides over the frame.  SPDX-License-Identifier: ISC */
#include "draw/ruler.h"

#include <inttypes.h>
#include <stdio.h>

#include "draw/ticks.h"

#define EDGE_PX 8
#define PLATE_PX 5 /* margin in px around a text on a plate */

static struct weft__frame frame_of(
    struct weft_draw_list *list, const struct weft_view *view, const struct weft_ruler_options *options)
{
	struct weft__frame f = {.list = list, .view = view, .model = view->model, .layout = view->layout, .index = view->index};
	if (options) {
		f.options.measure = options->measure;
		f.options.measure_ctx = options->measure_ctx;
		f.options.clock = options->clock;
		f.options.no_metrics = options->no_metrics;
		f.options.no_threads = options->no_threads;
		f.options.hidden_metrics = options->hidden_metrics;
		f.options.no_axis = true; /* the ruler is the axis, so the frame has none */
	}
	return f;
}

/* Draws a text on a plate as near to x as possible; returns false if another text is there. */
static bool draw_plate(struct weft__frame *f, enum weft_paint plate, double x, const char *text, size_t len)
{
	double width = weft__text_width(f, WEFT_FONT_SMALL, text, len), baseline = weft__floor(f->height / 2.0) + 3;
	double least = PLATE_PX, most = f->width - PLATE_PX - width;
	x -= width / 2;
	x = weft__floor(x < least ? least : x > most ? most : x);
	if (weft__text_blocked(f, WEFT_FONT_SMALL, x - PLATE_PX, baseline, width + 2 * PLATE_PX) ||
	    !weft__text_put(f, WEFT_PAINT_BACKGROUND, x, baseline, (struct weft__writing){WEFT_FONT_SMALL, text, len, width}))
		return false;
	weft__rect(
	    f, weft__ink(WEFT_LAYER_PLATE, plate, 255), (int)x - PLATE_PX, 3, (int)(x + width) + PLATE_PX + 1, f->height - 4);
	return true;
}

static void draw_pointer(struct weft__frame *f, const struct weft_ruler_options *o)
{
	char text[64];
	double x = weft_view_x(f->view, o->pointer_ns);
	if (!o->has_pointer || x < 0 || x >= f->width)
		return;
	size_t len =
	    weft_clock_print(text, sizeof text, f->model, &f->options.clock, o->pointer_ns, weft_view_exactness_ns(f->view));
	draw_plate(f, WEFT_PAINT_LABEL, x, text, len);
	weft__rect(
	    f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_LABEL, 255), weft__floor(x), f->height - 4, weft__floor(x) + 1, f->height);
}

static void draw_span(struct weft__frame *f, const struct weft_ruler_options *o)
{
	char text[64];
	if (!o->has_span)
		return;
	int64_t from = o->span_from_ns, to = o->span_to_ns, length;
	if (from > to) {
		from = o->span_to_ns;
		to = o->span_from_ns;
	}
	double x0 = weft_view_x(f->view, from), x1 = weft_view_x(f->view, to);
	if (x1 < 0 || x0 >= f->width)
		return;
	int left = weft__floor(x0), right = weft__floor(x1) + 1;
	weft__rect(f, weft__ink(WEFT_LAYER_SHADE, WEFT_PAINT_ACCENT, 64), left, 0, right, f->height);
	weft__rect(f, weft__ink(WEFT_LAYER_MARK, WEFT_PAINT_ACCENT, 255), left, 0, left + 1, f->height);
	weft__rect(f, weft__ink(WEFT_LAYER_MARK, WEFT_PAINT_ACCENT, 255), right - 1, 0, right, f->height);
	if (__builtin_sub_overflow(to, from, &length))
		length = INT64_MAX;
	size_t len = weft_duration_print(text, sizeof text, length, weft_view_exactness_ns(f->view));
	x0 = x0 > 0 ? x0 : 0;
	x1 = x1 < f->width ? x1 : f->width;
	draw_plate(f, WEFT_PAINT_ACCENT, (x0 + x1) / 2, text, len);
}

/* Draws the day or the base time of the axis, always at the left. */
static void draw_base(struct weft__frame *f, const struct weft__ticks *t)
{
	char text[96];
	size_t len = weft__ticks_print_base(t, text, 64);
	if (len > 0 && t->clock.wall && !t->has_base && t->clock.utc_offset_s == 0)
		len += (size_t)snprintf(text + len, sizeof text - len, " UTC");
	double width = weft__text_width(f, WEFT_FONT_BOLD, text, len), baseline = f->height - 10;
	if (len == 0 || width > f->width / 3.0)
		return;
	if (!weft__text_blocked(f, WEFT_FONT_BOLD, 0, baseline, width + 2 * EDGE_PX))
		weft__text_put(
		    f, WEFT_PAINT_BAND_TEXT, EDGE_PX, baseline, (struct weft__writing){WEFT_FONT_BOLD, text, len, width});
}

static void draw_ticks(struct weft__frame *f, const struct weft__ticks *t)
{
	int64_t right = weft_view_time(f->view, f->width), time = weft__tick_from(t, t->minor_ns, f->view->from_ns);
	for (int n = 0; n < 8000 && time <= right; n++) {
		int x = weft__floor(weft_view_x(f->view, time));
		bool major = weft__tick_from(t, t->step_ns, time) == time;
		weft__rect(f, weft__ink(WEFT_LAYER_GRID, major ? WEFT_PAINT_AXIS_TEXT : WEFT_PAINT_BAND, 255), x,
		    f->height - (major ? 6 : 4), x + 1, f->height - 1);
		char text[64];
		size_t len = major ? weft__tick_print(t, text, sizeof text, time) : 0;
		double width = weft__text_width(f, WEFT_FONT_SMALL, text, len), at = x - width / 2, baseline = f->height - 10;
		if (len > 0 && at >= EDGE_PX && at + width <= f->width - EDGE_PX &&
		    !weft__text_blocked(f, WEFT_FONT_SMALL, at - 6, baseline, width + 12))
			weft__text_put(
			    f, WEFT_PAINT_AXIS_TEXT, at, baseline, (struct weft__writing){WEFT_FONT_SMALL, text, len, width});
		if (__builtin_add_overflow(time, t->minor_ns, &time))
			break;
		time = weft__tick_past_lull(f->view, t, t->minor_ns, time);
	}
}

int weft_ruler_draw(struct weft_draw_list *list, const struct weft_view *view, double height_px,
    const struct weft_ruler_options *options, struct weft_error *err)
{
	struct weft__frame f = frame_of(list, view, options);
	height_px = height_px >= 16 ? height_px < 256 ? height_px : 256 : 16;
	f.failed = !weft__frame_begin(&f, view->width_px, height_px);
	if (!f.failed) {
		struct weft__ticks ticks = weft__ticks_choose(&f);
		weft__rect(&f, weft__ink(WEFT_LAYER_BACK, WEFT_PAINT_BACKGROUND, 255), 0, 0, f.width, f.height);
		weft__rect(&f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), 0, f.height - 1, f.width, f.height);
		if (options) {
			draw_pointer(&f, options);
			draw_span(&f, options);
		}
		draw_base(&f, &ticks);
		draw_ticks(&f, &ticks);
	}
	return weft__frame_end(&f, err);
}

/* Draws the tooltip beside the pointer, where there is space. */
static void draw_tip(struct weft__frame *f, const struct weft_ruler_options *o)
{
	const struct weft__ink ground = weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_BACKGROUND, 244),
			       edge = weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_AXIS_TEXT, 255);
	char text[500];
	double width;
	size_t len = weft__text_clean(text, sizeof text - 4, o->tip, strlen(o->tip));
	len = weft__text_fit(f, WEFT_FONT_LABEL, text, len, sizeof text, f->width - 32.0, &width);
	double x = o->tip_x_px + 16, y = o->tip_y_px - 14;
	x = x + width + 12 > f->width ? f->width - width - 12 : x;
	y = y < 18 ? o->tip_y_px + 30 : y;
	int x0 = weft__floor(x) - 6, x1 = weft__floor(x + width) + 7, y0 = weft__floor(y) - 14, y1 = weft__floor(y) + 6;
	if (len == 0)
		return;
	weft__rect(f, ground, x0, y0, x1, y1);
	weft__rect(f, edge, x0 - 1, y0 - 1, x1 + 1, y0);
	weft__rect(f, edge, x0 - 1, y1, x1 + 1, y1 + 1);
	weft__rect(f, edge, x0 - 1, y0, x0, y1);
	weft__rect(f, edge, x1, y0, x1 + 1, y1);
	weft__list_text(f, WEFT_PAINT_LABEL, x, y, (struct weft__writing){WEFT_FONT_LABEL, text, len, width});
}

int weft_ruler_guides(
    struct weft_draw_list *list, const struct weft_view *view, const struct weft_ruler_options *o, struct weft_error *err)
{
	struct weft__frame f = frame_of(list, view, o);
	f.failed = !weft__frame_begin(&f, view->width_px, view->height_px);
	if (!f.failed && o && o->has_span) {
		int x0 = weft__floor(weft_view_x(view, o->span_from_ns)), x1 = weft__floor(weft_view_x(view, o->span_to_ns));
		int left = x0 < x1 ? x0 : x1, right = (x0 < x1 ? x1 : x0) + 1;
		weft__rect(&f, weft__ink(WEFT_LAYER_SHADE, WEFT_PAINT_ACCENT, 32), left, 0, right, f.height);
		weft__rect(&f, weft__ink(WEFT_LAYER_MARK, WEFT_PAINT_ACCENT, 200), left, 0, left + 1, f.height);
		weft__rect(&f, weft__ink(WEFT_LAYER_MARK, WEFT_PAINT_ACCENT, 200), right - 1, 0, right, f.height);
	}
	if (!f.failed && o && o->has_pointer) {
		int x = weft__floor(weft_view_x(view, o->pointer_ns));
		weft__rect(&f, weft__ink(WEFT_LAYER_MARK, WEFT_PAINT_LABEL, 96), x, 0, x + 1, f.height);
		weft__draw_values(&f, o->pointer_ns);
	}
	if (!f.failed)
		weft__draw_crumb(&f, o && o->crumb ? o->crumb : "");
	if (!f.failed && o && o->legend)
		weft__draw_legend(&f);
	if (!f.failed && o && o->tip)
		draw_tip(&f, o);
	return weft__frame_end(&f, err);
}
