/* metrics.c: counters as step curves over the whole height; where they change too often, the envelope in which they do.
 * SPDX-License-Identifier: ISC */
#include "draw/frame.h"

#define EDGE_PX 6.0
#define COLOURS 6u
#define MARKS 6000 /* of all counters together, about */
#define FEW 10u    /* more that change all the time are drawn coarser, and as outlines: filled they would hide each other */

static bool is_shown(const struct weft__frame *f, size_t counter)
{
	return f->model->counters[counter].count > 0 && !(f->options.hidden_metrics && f->options.hidden_metrics[counter]);
}

static int y_of_value(const struct weft__frame *f, const struct weft_counter *c, int64_t value)
{
	double range = (double)c->scale_max - (double)c->scale_min;
	double part = ((double)value - (double)c->scale_min) / (range > 0 ? range : 1);
	double top = WEFT_VIEW_TOP_PX - EDGE_PX, bottom = f->height - WEFT_VIEW_BOTTOM_PX + EDGE_PX;
	part = part > 0 ? part < 1 ? part : 1 : 0;
	return weft__floor(bottom - part * (bottom - top));
}

static void draw_counter(struct weft__frame *f, size_t counter, size_t shown, enum weft_paint paint, int *last_y)
{
	const struct weft_counter *c = &f->model->counters[counter];
	int64_t left = weft_view_time(f->view, 0);
	size_t i = weft__counter_from(c, 0, left);
	int y = y_of_value(f, c, i > 0 ? c->samples[i - 1].value : 0), since = 0;
	/* Where they change all the time, columns are as wide as there are many. */
	size_t seen = weft__counter_from(c, i, weft_view_time(f->view, f->width)) - i;
	bool outline = shown > FEW;
	int marks = (int)(MARKS / shown) + 1, column = 1;
	if (seen > 2 * (size_t)f->width || seen > (size_t)marks) {
		column = f->width * (outline ? 2 : 1) / marks + 1;
		column = column > 2 ? column : 2;
	}
	while (i < c->count) {
		double exact = weft_view_x(f->view, c->samples[i].time_ns);
		if (exact >= f->width)
			break;
		int x = weft__floor(exact / column) * column;
		size_t end = weft__counter_from(c, i, weft_view_time(f->view, x + column));
		end = end > i ? end : i + 1;
		struct weft_envelope e = weft__counter_envelope(c, &f->index->counters[counter], i, end);
		int next = y_of_value(f, c, c->samples[end - 1].value);
		int top = y_of_value(f, c, e.max), bottom = y_of_value(f, c, e.min);
		top = top < y ? top : y;
		bottom = bottom > y ? bottom : y;
		if (x > since)
			weft__rect(f, weft__ink(WEFT_LAYER_METRIC, paint, 255), since, y, x, y + 2);
		/* A column in which it goes up and down many times is a tint, not a line. */
		int moved = next > y ? next - y : y - next;
		bool busy = end - i > 3 && bottom - top > moved + 4;
		if (busy && outline) {
			weft__rect(f, weft__ink(WEFT_LAYER_METRIC, paint, 160), x, top, x + column, top + 2);
			weft__rect(f, weft__ink(WEFT_LAYER_METRIC, paint, 160), x, bottom, x + column, bottom + 2);
		} else {
			weft__rect(f, weft__ink(WEFT_LAYER_METRIC, paint, busy ? 160 : 255), x, top, x + (busy ? column : 2),
			    bottom + 2);
		}
		since = x + (busy || column < 2 ? column : 2);
		y = next;
		i = end;
	}
	weft__rect(f, weft__ink(WEFT_LAYER_METRIC, paint, 255), since, y, f->width, y + 2);
	*last_y = y;
}

/* The name at the right, as near to its curve as the others leave room. */
static void draw_name(struct weft__frame *f, const struct weft_counter *c, enum weft_paint paint, int y)
{
	char text[128];
	size_t len = weft__text_clean(text, sizeof text, c->name.ptr, c->name.len);
	double width;
	len = weft__text_fit(f, WEFT_FONT_BOLD, text, len, sizeof text, f->width / 4.0, &width);
	if (len == 0)
		return;
	double x = f->width - 8 - width;
	int low = (int)WEFT_VIEW_TOP_PX, high = f->height - (int)WEFT_VIEW_BOTTOM_PX + 10;
	y = y - 4 < low ? low : y - 4 > high ? high : y - 4;
	for (int away = 0; away < f->height; away++) {
		int at = y + (away % 2 ? -(away + 1) / 2 : away / 2);
		if (at < low || at > high || weft__text_blocked(f, WEFT_FONT_BOLD, x - 4, at + 2, width + 8) ||
		    weft__text_blocked(f, WEFT_FONT_BOLD, x - 4, at - 2, width + 8))
			continue;
		weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_BACKGROUND, 224), weft__floor(x) - 4, at - 10, f->width - 4,
		    at + 4);
		weft__text_put(f, paint, x, at, (struct weft__writing){WEFT_FONT_BOLD, text, len, width});
		return;
	}
}

void weft__draw_metrics(struct weft__frame *f)
{
	enum { NAMES = 64 };
	struct {
		size_t counter;
		enum weft_paint paint;
		int y;
	} names[NAMES];
	int count = 0;
	uint32_t colour = 0;
	size_t shown = 0;
	if (f->options.no_metrics)
		return;
	for (size_t c = 0; c < f->model->counter_count; c++)
		shown += is_shown(f, c);
	for (size_t c = 0; c < f->model->counter_count; c++, colour++) {
		enum weft_paint paint = WEFT_PAINT_COUNTER_0 + colour % COLOURS;
		int y;
		if (!is_shown(f, c))
			continue;
		draw_counter(f, c, shown, paint, &y);
		if (count < NAMES) {
			names[count].counter = c;
			names[count].paint = paint;
			names[count++].y = y;
		}
	}
	for (int n = 0; n < count; n++)
		draw_name(f, &f->model->counters[names[n].counter], names[n].paint, names[n].y);
}
