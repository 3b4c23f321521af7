/* background.c: draws what is behind the promises: sleeps, pauses, the grid, and the bands (rows) of OS threads.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/search.h"
#include "draw/lines.h"
#include "draw/ruler.h"
#include "draw/ticks.h"
#include "layout/group.h"
#include "view/sleep.h"

#define PAUSE_MIN_PX 2
#define NAME_PX 24 /* minimum width in px of an interval in which a name is written */
#define LEGEND_GAP_PX 40.0
#define AXIS_PX 18

enum { BAND_NAME = 260, BAND_TEXT_PX = 12 };

/* Top and bottom of a band (the rows of one stream), and the baseline of the text at its top. */
struct extent {
	int y0, y1, text_y;
};

static struct extent extent_of(const struct weft__frame *f, size_t band)
{
	double header = weft_view_header(f->view, band), end = weft_view_header(f->view, band + 1);
	double y = weft_view_y(f->view, header);
	int y0 = weft__floor(y), y1 = weft__floor(weft_view_y(f->view, end));
	double height = weft_view_y(f->view, header + 1) - y0;
	int text_y = weft__floor(y + height / 2 + 4);
	/* Where rows are low, a text in the middle of the band's head would cross the border above it. */
	if (f->options.names_beside && header > 0 && text_y < y0 + BAND_TEXT_PX)
		text_y = y0 + BAND_TEXT_PX;
	return (struct extent){header > 0 ? y0 : 0, end < f->view->slots ? y1 : f->height, text_y};
}

static void write_centred(
    struct weft__frame *f, enum weft_paint paint, double x0, double x1, double y, const char *bytes, size_t bytes_len)
{
	char text[128];
	size_t len = weft__text_clean(text, sizeof text - 4, bytes, bytes_len);
	double width = weft__text_width(f, WEFT_FONT_SMALL, text, len);
	x0 = x0 > 4 ? x0 : 4;
	x1 = x1 < f->width - 4 ? x1 : f->width - 4;
	if (len > 0 && width + 8 <= x1 - x0)
		weft__text_put(f, paint, (x0 + x1 - width) / 2, y, (struct weft__writing){WEFT_FONT_SMALL, text, len, width});
}

/* Returns the width of cells; with many bands, narrow intervals merge into wider cells. */
static int cell_of(const struct weft__frame *f)
{
	return f->index->band_count <= 4 ? WEFT__CELL_PX : f->index->band_count <= 12 ? 2 * WEFT__CELL_PX : 4 * WEFT__CELL_PX;
}

/* Writes a name into each interval that is wide enough: the name of the interval's `source`, or "sleeping".  An interval that is
 * wide enough contains one of the probed positions, which are NAME_PX apart. */
static void name_intervals(
    struct weft__frame *f, enum weft_paint paint, const struct weft_intervals *t, const uint32_t *source, int y)
{
	static const char sleeping[] = "sleeping";
	size_t i = 0;
	for (int x = 4; x <= f->width - 4 && i < t->count; x += NAME_PX) {
		size_t at = weft__intervals_end_after(t, i, weft_view_time(f->view, x));
		double x0 = at < t->count ? weft_view_x(f->view, weft__intervals_start(t, at)) : f->width;
		if (x0 > x + 1) {
			i = at;
			continue;
		}
		i = at + 1;
		double x1 = weft_view_x(f->view, weft__intervals_end(t, at));
		struct weft_str text = source ? weft_model_text(f->model, f->model->pauses[source[at]].text)
					      : (struct weft_str){sleeping, sizeof sleeping - 1};
		if ((x1 < f->width - 4 ? x1 : f->width - 4) - (x0 > 4 ? x0 : 4) >= NAME_PX)
			write_centred(f, paint, x0, x1, y, text.ptr, text.len);
	}
}

static void draw_sleeps(struct weft__frame *f, size_t band, struct extent e)
{
	static const int density[] = {255, 90, 130, 185, 240};
	const struct weft_intervals *t = &f->index->sleeps[band];
	const struct weft__interval_style style = {WEFT_LAYER_SHADE, WEFT_PAINT_SLEEP, cell_of(f), 1, density, e.y0, e.y1};
	weft__draw_intervals(f, t, &style);
	name_intervals(f, WEFT_PAINT_SLEEP_TEXT, t, NULL, e.text_y);
}

/* Draws pauses.  An isolated pause is visible at any scale; the opacity of many narrow pauses shows the part of the time that
 * they cover. */
static void draw_pauses(struct weft__frame *f, size_t band, struct extent e)
{
	static const int density[] = {255, 64, 128, 192, 255};
	const struct weft_intervals *t = &f->index->pauses[band];
	const uint32_t *source = f->index->pause_source + (t->busy - f->index->pauses[0].busy) - band;
	const struct weft__interval_style style = {
	    WEFT_LAYER_SHADE, WEFT_PAINT_PAUSE, cell_of(f), PAUSE_MIN_PX, density, e.y0, e.y1};
	weft__draw_intervals(f, t, &style);
	name_intervals(f, WEFT_PAINT_PAUSE_TEXT, t, source, e.text_y);
}

/* Draws folded sleep as a narrow gap between two lines, with the length of the sleep. */
static void draw_lulls(struct weft__frame *f)
{
	const struct weft_lulls *lulls = f->view->lulls;
	const struct weft__ink edge = weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_AXIS_TEXT, 255);
	size_t i = lulls ? WEFT_FIND_FIRST(k, 0, lulls->count, lulls->items[k].end_ns > f->from_ns) : 0;
	for (; lulls && i < lulls->count && lulls->items[i].start_ns < f->to_ns; i++) {
		const struct weft_lull *lull = &lulls->items[i];
		char text[64];
		int64_t length_ns = lull->end_ns - lull->start_ns, step_ns = 1;
		if (!weft_view_is_folded(f->view, lull))
			continue;
		while (length_ns / step_ns >= 1000)
			step_ns *= 10;
		double x0 = weft_view_x(f->view, lull->start_ns), x1 = weft_view_x(f->view, lull->end_ns);
		size_t len = weft_duration_print(text, sizeof text, length_ns, step_ns);
		write_centred(f, WEFT_PAINT_SLEEP_TEXT, x0 - 4, x1 + 4, 15, text, len);
		weft__rect(f, weft__ink(WEFT_LAYER_SHADE, WEFT_PAINT_SLEEP, 255), weft__floor(x0), 0, weft__floor(x1), f->height);
		for (int k = 0; k < 2; k++) {
			int x = k ? weft__floor(x1) - 1 : weft__floor(x0);
			weft__rect(f, edge, x, 0, x + 1, f->height);
			weft__cross_put(f, x, 0, x, f->height);
		}
	}
}

void weft__draw_shades(struct weft__frame *f)
{
	weft__rect(f, weft__ink(WEFT_LAYER_BACK, WEFT_PAINT_BACKGROUND, 255), 0, 0, f->width, f->height);
	draw_lulls(f);
	for (size_t band = 0; band < f->index->band_count; band++) {
		if (f->index->band_count > 1 && !weft_view_has_header(f->view, band))
			continue;
		struct extent e = f->index->band_count < 2 ? (struct extent){0, f->height, 15} : extent_of(f, band);
		draw_pauses(f, band, e);
		draw_sleeps(f, band, e);
	}
}

/* Writes the error bound of a stream's clock, as " ±7.36 us", if the clock offset is known from messages. */
static size_t name_bound(const struct weft_trace_info *info, size_t stream, char *out, size_t size)
{
	const struct weft_stream_info *stream_info = stream < info->stream_count ? &info->streams[stream] : NULL;
	char bound[WEFT_DURATION_BYTES];
	if (!stream_info || stream_info->part >= info->part_count || info->parts[stream_info->part].bound_ns <= 0)
		return 0;
	return (size_t)snprintf(out, size, " \u00b1%s", weft_duration_text(bound, info->parts[stream_info->part].bound_ns));
}

/* Returns the name that an OS thread got after its recording started, which is more specific than a name that it shares with
 * others. */
static struct weft_str own_name(const struct weft_model *m, uint32_t thread, struct weft_str shared)
{
	const uint32_t text = thread == WEFT_NONE || thread == WEFT_SYSTEM ? WEFT_NONE : weft_model_name_text(m, thread);
	const struct weft_str own = text == WEFT_NONE ? shared : weft_model_text(m, text);
	/* In a picture of several processes, the main thread is named "gio: main". */
	const bool is_main =
	    own.len >= 4 && memcmp(own.ptr + own.len - 4, "main", 4) == 0 && (own.len == 4 || own.ptr[own.len - 5] == ' ');
	return is_main ? shared : own;
}

/* In a picture of several processes, writes "node-12: " before the name of a thread whose name does not contain its process's
 * name. */
static size_t name_process(const struct weft_trace_info *info, size_t stream, struct weft_str name, char text[BAND_NAME])
{
	const uint32_t number = stream < info->stream_count ? info->streams[stream].part : UINT32_MAX;
	const char *process = number < info->part_count ? info->parts[number].name : "";
	const size_t length = strlen(process);
	if (!length || (name.len >= length && memcmp(name.ptr, process, length) == 0))
		return 0;
	const size_t len = weft__text_clean(text, BAND_NAME / 2, process, length);
	memcpy(text + len, ": ", 3);
	return len + 2;
}

/* Writes the name of a band: its OS thread's name, or a property that its promises share. */
static size_t name_band(const struct weft__frame *f, size_t b, char text[BAND_NAME])
{
	const struct weft_layout *layout = f->layout;
	const struct weft_trace_info *info = f->model->trace;
	char raw[160];
	const uint32_t stream = layout->bands[b].stream;
	struct weft_str name = {NULL, 0};
	uint64_t tid = stream;
	if (layout->rows_by != WEFT_ROWS_BY_THREAD) {
		uint32_t first = layout->by_row[layout->row_begin[layout->bands[b].first_row]];
		size_t len = layout->has_rest && b + 1 == layout->band_count
				 ? (size_t)snprintf(raw, sizeof raw, "all others")
				 : weft_group_name(f->model, first, layout->rows_by, raw, sizeof raw);
		return weft__text_clean(text, 156, raw, len);
	}
	if (info && tid < info->stream_count) {
		name = info->streams[stream].name;
		tid = info->streams[stream].tid;
	}
	const uint16_t pool = info && stream < info->stream_count ? weft__pool_number(f, (uint16_t)stream) : 0;
	if (pool > 0 && f->model->namesakes && f->model->namesakes[stream]) {
		size_t before = name_process(info, stream, (struct weft_str){NULL, 0}, text);
		return before + (size_t)snprintf(text + before, 28, "pool %u", pool);
	}
	if (f->model->threads && f->model->namesakes && f->model->namesakes[stream])
		name = own_name(f->model, f->model->threads[stream], name);
	int n = snprintf(raw, sizeof raw, "OS thread %" PRIu64, tid);
	size_t len = info ? name_process(info, stream, name, text) : 0;
	len += name.len > 0 ? weft__text_clean(text + len, 100, name.ptr, name.len)
			    : weft__text_clean(text + len, 100, raw, (size_t)n);
	const size_t digits = (size_t)snprintf(raw, sizeof raw, "%" PRIu64, tid);
	const bool has_number =
	    /* A name that already ends with the id of its thread, such as "gdbus-2909", gets no second id. */
	    len >= digits && memcmp(text + len - digits, raw, digits) == 0;
	if (name.len > 0 && f->model->namesakes && f->model->namesakes[stream] && !has_number)
		len += (size_t)snprintf(text + len, 28, " %" PRIu64, tid);
	return len + (info ? name_bound(info, stream, text + len, 28) : 0);
}

static void draw_band_name(struct weft__frame *f, size_t b, struct extent e, double max_width)
{
	char text[BAND_NAME];
	double width;
	size_t len = e.text_y > 11 && e.y0 < f->height ? name_band(f, b, text) : 0;
	len = weft__text_fit(f, WEFT_FONT_BOLD, text, len, sizeof text, max_width, &width);
	if (len > 0 && !weft__text_blocked(f, WEFT_FONT_BOLD, 8, e.text_y, width))
		weft__text_put(f, WEFT_PAINT_BAND_TEXT, 8, e.text_y, (struct weft__writing){WEFT_FONT_BOLD, text, len, width});
}

void weft__name_bands(struct weft__frame *f, bool are_low, double max_width)
{
	enum { LOW_PX = 24 };
	const size_t headers = weft_layout_headers(f->layout);
	for (size_t b = 0; b < headers; b++) {
		const struct extent e = extent_of(f, b);
		if (weft_view_has_header(f->view, b) && (e.y1 - e.y0 < LOW_PX) == are_low)
			draw_band_name(f, b, e, max_width);
	}
}

void weft__draw_bands(struct weft__frame *f)
{
	const size_t headers = weft_layout_headers(f->layout);
	for (size_t b = 0; b < headers; b++) {
		const struct extent e = extent_of(f, b);
		if (weft_view_has_header(f->view, b) && e.y0 > 0)
			weft__rect(f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), 0, e.y0, f->width, e.y0 + 1);
	}
}

static void draw_axis(struct weft__frame *f, const struct weft__ticks *t, double *legend_width)
{
	static const char division[] = "1 division = ";
	char text[160];
	int axis = f->height - AXIS_PX;
	memcpy(text, division, sizeof division);
	size_t len = sizeof division - 1;
	len += weft_duration_print(text + len, sizeof text - len, t->step_ns, t->step_ns);
	if (t->has_base) {
		memcpy(text + len, " from ", 6);
		len += 6;
		len += weft__ticks_print_base(t, text + len, sizeof text - len);
	}
	*legend_width = weft__text_width(f, WEFT_FONT_SMALL, text, len);
	weft__text_put(
	    f, WEFT_PAINT_AXIS_TEXT, 6, f->height - 6, (struct weft__writing){WEFT_FONT_SMALL, text, len, *legend_width});
	weft__rect(f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_GRID, 255), 0, axis, f->width, axis + 1);
}

void weft__draw_grid(struct weft__frame *f)
{
	const struct weft__ticks t = weft__ticks_choose(f);
	int bottom = f->options.no_axis ? f->height : f->height - AXIS_PX + 4;
	int64_t right = weft_view_time(f->view, f->width), time = weft__tick_from(&t, t.step_ns, f->view->from_ns);
	double legend_width = 0;
	if (!f->options.no_axis)
		draw_axis(f, &t, &legend_width);
	for (int n = 0; n < 1000 && time <= right; n++) {
		char text[64];
		int x = weft__floor(weft_view_x(f->view, time));
		weft__rect(f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_GRID, 255), x, 0, x + 1, bottom);
		size_t len = weft__tick_print(&t, text, sizeof text, time);
		double width = weft__text_width(f, WEFT_FONT_SMALL, text, len);
		double at = x - width / 2;
		if (!f->options.no_axis && at > legend_width + LEGEND_GAP_PX && at + width < f->width - 4 &&
		    !weft__text_blocked(f, WEFT_FONT_SMALL, at - 6, f->height - 6, width + 12))
			weft__text_put(f, WEFT_PAINT_AXIS_TEXT, at, f->height - 6,
			    (struct weft__writing){WEFT_FONT_SMALL, text, len, width});
		if (__builtin_add_overflow(time, t.step_ns, &time))
			break;
		time = weft__tick_past_lull(f->view, &t, t.step_ns, time);
	}
}
