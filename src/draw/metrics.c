/* metrics.c: draws counters in lanes below the promises: as step curves, as envelopes where a counter changes too often, or as
 * rates if a counter only grows, since a curve that only rises hides when it rises faster.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "draw/threads.h"
#include "draw/ticks.h"

#define COLOURS 6u
#define MARKS 6000              /* approximate maximum of the number of shapes for all counters */
#define ROWS_PX 200.0           /* minimum height in px that is left for rows */
#define MAX_HEIGHT_FRACTION 3.0 /* the lanes of counters get at most 1 / 3 of the height */
#define LANE_PX 44.0            /* height in px of a lane, if there is space */
#define MIN_LANE_PX 20.0        /* minimum height in px of a lane, into which a name fits */
#define ABOVE_PX 5              /* space above the maximum */
#define BELOW_PX WEFT__BELOW_PX /* space below the minimum */
#define AXIS_MIN_PX 32          /* height in px below which only the maximum is written in a lane */
#define MIN_RATE_SAMPLES 16     /* a counter with fewer samples is drawn as a curve */
#define BUCKET_PX 8.0           /* minimum width in px of an interval for which a rate is computed */
#define BUCKET_SAMPLES 4        /* average number of samples in such an interval, at least */
#define SECOND_NS 1e9
#define MAX_RATE 1e18
#define RATE_BYTES (WEFT_NUMBER_BYTES + 4) /* enough for any rate */

struct lanes {
	size_t count; /* lanes that fit */
	int each_px;
};

static bool is_shown(const struct weft_model *model, const struct weft_draw_options *o, size_t counter)
{
	return model->counters[counter].count > 0 && !(o->hidden_metrics && o->hidden_metrics[counter]);
}

static size_t count_shown(const struct weft_model *model, const struct weft_draw_options *o)
{
	size_t shown = 0;
	for (size_t c = 0; !o->no_metrics && c < model->counter_count; c++)
		shown += is_shown(model, o, c);
	return shown;
}

static struct lanes lanes_in(double available_px, size_t shown)
{
	double each = shown > 0 ? available_px / (double)shown : 0;
	each = each > LANE_PX ? LANE_PX : each < MIN_LANE_PX ? MIN_LANE_PX : each;
	size_t fit = available_px > 0 ? (size_t)(available_px / each) : 0;
	return (struct lanes){shown < fit ? shown : fit, weft__floor(each)};
}

static double max_lanes_px(double height_px)
{
	double fraction = height_px / MAX_HEIGHT_FRACTION, left = height_px - ROWS_PX;
	return fraction < left ? fraction : left;
}

/* Returns the maximum height in px for the lanes of OS threads; counters get at least half of all lanes. */
double weft__lanes_max_px(const struct weft_model *model, const struct weft_draw_options *options, double height_px)
{
	return max_lanes_px(height_px) / (count_shown(model, options) > 0 ? 2 : 1);
}

static double threads_px(const struct weft__threads *threads)
{
	return (double)threads->count * threads->each_px;
}

double weft_draw_lanes_px(const struct weft_model *model, const struct weft_draw_options *options, double height_px)
{
	static const struct weft_draw_options usual;
	options = options ? options : &usual;
	struct weft__threads threads = weft__threads_of(model, options, weft__lanes_max_px(model, options, height_px));
	double above = threads_px(&threads);
	struct lanes lanes = lanes_in(max_lanes_px(height_px) - above, count_shown(model, options));
	return above + (double)lanes.count * lanes.each_px;
}

struct lane {
	const struct weft_counter *counter;
	const struct weft_counter_index *index;
	enum weft_paint paint;
	int y0, y1, zero;  /* top and bottom of the lane, and y of the value 0 or of the value nearest to 0 */
	int64_t bucket_ns; /* length of the intervals whose rates are drawn; 0: the lane shows values */
	double min, max;   /* range of the lane, in values or in changes per second */
};

static int y_of_value(const struct lane *l, double value)
{
	double range = l->max - l->min;
	double fraction = (value - l->min) / (range > 0 ? range : 1);
	double top = l->y0 + ABOVE_PX, bottom = l->y1 - BELOW_PX;
	fraction = fraction > 0 ? fraction < 1 ? fraction : 1 : 0;
	return weft__floor(bottom - fraction * (bottom - top));
}

/* Tints the lane from a line, or from the area between two heights, down to the value 0. */
static void draw_tint(struct weft__frame *f, const struct lane *l, int x0, int x1, int top, int bottom)
{
	if (bottom < l->zero)
		weft__rect(f, weft__ink(WEFT_LAYER_METRIC, l->paint, 56), x0, bottom, x1, l->zero);
	else if (top > l->zero)
		weft__rect(f, weft__ink(WEFT_LAYER_METRIC, l->paint, 56), x0, l->zero, x1, top);
}

/* Draws a constant value as a line, with a tint down to the value 0. */
static void draw_level(struct weft__frame *f, const struct lane *l, int x0, int x1, int y)
{
	if (x1 <= x0)
		return;
	weft__rect(f, weft__ink(WEFT_LAYER_METRIC, l->paint, 255), x0, y, x1, y + 2);
	draw_tint(f, l, x0, x1, y, y + 2);
}

/* Returns whether the counter's value before its first sample was overwritten in the ring. */
static bool is_forgotten(const struct weft__frame *f, const struct weft_counter *c)
{
	return f->model->trace->wrapped && c->is_absolute;
}

static int64_t known_from(const struct weft__frame *f, const struct weft_counter *c)
{
	return is_forgotten(f, c) ? c->samples[0].time_ns : 0;
}

static int64_t value_before(const struct weft__frame *f, const struct weft_counter *c, size_t sample)
{
	if (sample > 0)
		return c->samples[sample - 1].value;
	return c->samples[0].value - (is_forgotten(f, c) ? 0 : c->samples[0].delta);
}

/* ---- Rates ---- */

static int64_t value_at(const struct weft__frame *f, const struct lane *l, int64_t time_ns)
{
	return value_before(f, l->counter, weft__counter_from(l->counter, l->index, time_ns));
}

/* Returns the number of changes per second between two times; the times before and after the trace do not count. */
static double compute_rate(const struct weft__frame *f, const struct lane *l, int64_t from_ns, int64_t to_ns)
{
	const int64_t known_ns = known_from(f, l->counter);
	from_ns = from_ns > known_ns ? from_ns : known_ns;
	to_ns = to_ns < f->model->end_ns ? to_ns : f->model->end_ns;
	/* At an edge of the trace only a part of an interval is known; a single change in a short part is no high rate. */
	const int64_t least_ns = l->bucket_ns / 2, known = to_ns - from_ns > least_ns ? to_ns - from_ns : least_ns;
	if (to_ns <= from_ns)
		return 0;
	return ((double)value_at(f, l, to_ns) - (double)value_at(f, l, from_ns)) * SECOND_NS / (double)known;
}

/* Returns the end of the interval that begins at a time. */
static int64_t bucket_end(const struct lane *l, int64_t from_ns)
{
	int64_t end_ns;
	return __builtin_add_overflow(from_ns, l->bucket_ns, &end_ns) ? INT64_MAX : end_ns;
}

/* Calls `see` for each visible interval.  Intervals begin at multiples of their length, so that a moved view shows the same
 * rates. */
static void each_bucket(
    struct weft__frame *f, struct lane *l, void (*see)(struct weft__frame *f, struct lane *l, int64_t from_ns, int64_t to_ns))
{
	const int64_t length = l->bucket_ns, begin_ns = known_from(f, l->counter), left_ns = weft_view_time(f->view, 0);
	const int64_t right_ns = weft_view_time(f->view, f->width);
	int64_t at = left_ns > begin_ns ? left_ns : begin_ns;
	at -= at % length;
	while (at < f->model->end_ns && at < right_ns) {
		/* Folded sleep can have many intervals in one px. */
		int64_t next = weft_view_time(f->view, weft_view_x(f->view, at) + BUCKET_PX);
		next -= next % length;
		next = next > bucket_end(l, at) ? next : bucket_end(l, at);
		see(f, l, at, next);
		at = next;
	}
}

static void note_rate(struct weft__frame *f, struct lane *l, int64_t from_ns, int64_t to_ns)
{
	const double rate = compute_rate(f, l, from_ns, to_ns);
	l->max = rate > l->max ? rate : l->max;
}

/* Chooses the intervals, and the range of the visible rates. */
static void choose_rates(struct weft__frame *f, struct lane *l)
{
	const struct weft_counter *c = l->counter;
	const double by_px = BUCKET_PX / f->view->px_per_ns;
	const double by_samples = BUCKET_SAMPLES * ((double)f->model->end_ns - (double)known_from(f, c)) / (double)c->count;
	const double ns = by_px > by_samples ? by_px : by_samples;
	l->bucket_ns = weft__round_up_ns(ns < (double)INT64_MAX / 4 ? (int64_t)ns : INT64_MAX / 4);
	l->min = l->max = 0;
	each_bucket(f, l, note_rate);
}

static void draw_rate(struct weft__frame *f, struct lane *l, int64_t from_ns, int64_t to_ns)
{
	const int64_t end_ns = to_ns < f->model->end_ns ? to_ns : f->model->end_ns;
	const int x0 = weft__floor(weft_view_x(f->view, from_ns)), x1 = weft__floor(weft_view_x(f->view, end_ns));
	const int y = y_of_value(l, compute_rate(f, l, from_ns, to_ns));
	draw_level(f, l, x0 > 0 ? x0 : 0, x1 < f->width ? x1 : f->width, y);
}

/* Formats a rate with its unit; a rate below 10 has one decimal. */
static const char *format_rate(char buf[RATE_BYTES], double per_second)
{
	char number[WEFT_NUMBER_BYTES];
	const unsigned tenths = per_second < 10 ? (unsigned)(per_second * 10 + 0.5) : 0;
	if (tenths > 0 && tenths < 100)
		snprintf(buf, RATE_BYTES, "%u.%u/s", tenths / 10, tenths % 10);
	else
		snprintf(buf, RATE_BYTES, "%s/s",
		    weft_number_text(number, per_second < MAX_RATE ? (uint64_t)(per_second + 0.5) : (uint64_t)MAX_RATE));
	return buf;
}

/* ---- Lanes ---- */

static void draw_curve(struct weft__frame *f, const struct lane *l, size_t lanes)
{
	const struct weft_counter *c = l->counter;
	int64_t left = weft_view_time(f->view, 0);
	size_t i = weft__counter_from(c, l->index, left);
	int y = y_of_value(l, (double)value_before(f, c, i));
	/* The counter's values before and after the trace are unknown. */
	int first = weft__floor(weft_view_x(f->view, known_from(f, c)));
	int last = weft__floor(weft_view_x(f->view, f->model->end_ns)) + 1;
	int since = first > 0 ? first : 0;
	/* If a counter changes often, its columns are wider. */
	size_t seen_samples = weft__counter_from(c, l->index, weft_view_time(f->view, f->width)) - i;
	int marks = (int)(MARKS / lanes) + 1, column = 1;
	if (seen_samples > 2 * (size_t)f->width || seen_samples > (size_t)marks) {
		column = 2 * f->width / marks + 1;
		column = column > 2 ? column : 2;
	}
	while (i < c->count) {
		double exact = weft_view_x(f->view, c->samples[i].time_ns);
		if (exact >= f->width)
			break;
		int x = weft__floor(exact / column) * column;
		size_t end = weft__counter_from(c, l->index, weft_view_time(f->view, x + column));
		end = end > i ? end : i + 1;
		struct weft_envelope e = weft__counter_envelope(c, l->index, i, end);
		int next = y_of_value(l, (double)c->samples[end - 1].value);
		int top = y_of_value(l, (double)e.max), bottom = y_of_value(l, (double)e.min);
		top = top < y ? top : y;
		bottom = bottom > y ? bottom : y;
		draw_level(f, l, since, x, y);
		/* A column in which the counter rises and falls many times is drawn as a tint, and not as a line. */
		int moved = next > y ? next - y : y - next;
		bool busy = end - i > 3 && bottom - top > moved + 4;
		int wide = busy ? column : 2;
		weft__rect(f, weft__ink(WEFT_LAYER_METRIC, l->paint, busy ? 160 : 255), x, top, x + wide, bottom + 2);
		since = x + (busy || column < 2 ? column : 2);
		draw_tint(f, l, x, since, top, bottom + 2);
		y = next;
		i = end;
	}
	draw_level(f, l, since, last < f->width ? last : f->width, y);
}

static double write_at(struct weft__frame *f, enum weft_font font, enum weft_paint paint, double x, bool is_right, double y,
    const char *bytes, size_t bytes_len, double max_width)
{
	char text[128];
	size_t len = weft__text_clean(text, sizeof text - 4, bytes, bytes_len);
	double width;
	len = weft__text_fit(f, font, text, len, sizeof text, max_width, &width);
	x -= is_right ? width : 0;
	if (len == 0 || weft__text_blocked(f, font, x, y, width))
		return 0;
	weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_BACKGROUND, 208), weft__floor(x) - 3, (int)y - 9,
	    weft__floor(x + width) + 3, (int)y + 3);
	weft__text_put(f, paint, x, y, (struct weft__writing){font, text, len, width});
	return width;
}

/* Writes the values at the top and bottom of a lane, starting at x, or ending at x if is_right.  Returns the width in px of the
 * upper value. */
static double draw_axis(struct weft__frame *f, const struct lane *l, double x, bool is_right)
{
	char buf[RATE_BYTES];
	const struct weft_counter *c = l->counter;
	const char *text = l->bucket_ns > 0 ? format_rate(buf, l->max) : weft_number_text_signed(buf, c->scale_max);
	const double width =
	    write_at(f, WEFT_FONT_SMALL, WEFT_PAINT_AXIS_TEXT, x, is_right, l->y0 + 12, text, strlen(text), f->width / 3.0);
	if (l->y1 - l->y0 < AXIS_MIN_PX || l->min >= l->max)
		return width;
	text = l->bucket_ns > 0 ? format_rate(buf, 0) : weft_number_text_signed(buf, c->scale_min);
	write_at(f, WEFT_FONT_SMALL, WEFT_PAINT_AXIS_TEXT, x, is_right, l->y1 - BELOW_PX, text, strlen(text), f->width / 3.0);
	return width;
}

/* Calls `see` for each lane in order; `hidden` is the number of counters without a lane, because they do not fit after this
 * one. */
static void each_lane(
    struct weft__frame *f, void (*see)(struct weft__frame *f, struct lane *lane, struct lanes lanes, size_t hidden))
{
	size_t shown = count_shown(f->model, &f->options), at = 0;
	const struct weft__threads threads = weft__threads_in(f);
	struct lanes lanes = lanes_in(f->view->lanes_px - threads_px(&threads), shown);
	int bottom = f->height - (f->options.no_axis ? WEFT__BELOW_PX : WEFT__AXIS_PX),
	    y0 = bottom - (int)lanes.count * lanes.each_px;
	for (size_t c = 0; c < f->model->counter_count && at < lanes.count; c++) {
		if (!is_shown(f->model, &f->options, c))
			continue;
		struct lane l = {.counter = &f->model->counters[c],
		    .index = &f->index->counters[c],
		    .paint = WEFT_PAINT_COUNTER_0 + (uint32_t)(c % COLOURS),
		    .y0 = y0 + (int)at * lanes.each_px,
		    .y1 = y0 + (int)(at + 1) * lanes.each_px,
		    .min = (double)f->model->counters[c].scale_min,
		    .max = (double)f->model->counters[c].scale_max};
		if (l.counter->only_grows && l.counter->count >= MIN_RATE_SAMPLES)
			choose_rates(f, &l);
		l.zero = y_of_value(&l, 0);
		see(f, &l, lanes, ++at == lanes.count ? shown - at : 0);
	}
}

static void draw_lane(struct weft__frame *f, struct lane *l, struct lanes lanes, size_t hidden)
{
	weft__rect(f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), 0, l->y0, f->width, l->y0 + 1);
	double width = 0;
	if (!f->options.names_beside) {
		draw_axis(f, l, 6, false);
		width = write_at(f, WEFT_FONT_BOLD, l->paint, f->width - 8, true, l->y0 + 13, l->counter->name.ptr,
			    l->counter->name.len, f->width / 3.0) +
			12;
	}
	static const char changes[] = "changes only";
	if (f->model->trace->wrapped && !l->counter->is_absolute)
		width += 12 + write_at(f, WEFT_FONT_SMALL, WEFT_PAINT_AXIS_TEXT, f->width - 8 - width, true, l->y0 + 13, changes,
				  sizeof changes - 1, f->width / 3.0);
	if (hidden > 0) {
		char more[48];
		int len = snprintf(more, sizeof more, "and %zu more lanes that do not fit", hidden);
		write_at(f, WEFT_FONT_SMALL, WEFT_PAINT_AXIS_TEXT, f->width - 8 - width, true, l->y0 + 13, more, (size_t)len,
		    f->width / 3.0);
	}
	if (l->bucket_ns > 0)
		each_bucket(f, l, draw_rate);
	else
		draw_curve(f, l, lanes.count);
}

static void name_lane(struct weft__frame *f, struct lane *l, struct lanes lanes, size_t hidden)
{
	const double right = f->width - WEFT__GUTTER_EDGE_PX;
	weft__rect(f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), 0, l->y0, f->width, l->y0 + 1);
	const double values = draw_axis(f, l, right, true);
	write_at(
	    f, WEFT_FONT_BOLD, l->paint, 8, false, l->y0 + 13, l->counter->name.ptr, l->counter->name.len, right - values - 16);
}

void weft__name_metrics(struct weft__frame *f)
{
	each_lane(f, name_lane);
}

void weft__draw_metrics(struct weft__frame *f)
{
	each_lane(f, draw_lane);
}

static void draw_value(struct weft__frame *f, struct lane *l, struct lanes lanes, size_t hidden)
{
	const struct weft_counter *c = l->counter;
	size_t i = weft__counter_from(c, l->index, f->from_ns < INT64_MAX ? f->from_ns + 1 : f->from_ns);
	if (f->from_ns < known_from(f, c))
		return;
	char value[WEFT_NUMBER_BYTES], rate[RATE_BYTES], text[sizeof value + sizeof rate + 2];
	int len = snprintf(text, sizeof text, "%s", weft_number_text_signed(value, value_before(f, c, i)));
	if (l->bucket_ns > 0) {
		const int64_t from_ns = f->from_ns - f->from_ns % l->bucket_ns;
		const double per_second = compute_rate(f, l, from_ns, bucket_end(l, from_ns));
		len += snprintf(text + len, sizeof text - (size_t)len, ", %s", format_rate(rate, per_second));
	}
	int x = weft__floor(weft_view_x(f->view, f->from_ns));
	bool is_right = x > f->width * 3 / 4;
	write_at(f, WEFT_FONT_BOLD, l->paint, is_right ? x - 7 : x + 7, is_right, weft__floor((l->y0 + l->y1) / 2.0) + 4, text,
	    (size_t)len, f->width / 3.0);
}

void weft__draw_values(struct weft__frame *f, int64_t time_ns)
{
	f->from_ns = time_ns;
	each_lane(f, draw_value);
}
