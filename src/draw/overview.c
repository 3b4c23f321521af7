/* overview.c: sums up the whole trace in cells, once, and paints the overview strip from these sums.
 *
 * A cell covers 1/2048 of the time and some rows.  An interval over many cells is added as a difference at both of its ends, so
 * that long and short promises cost the same.  Afterwards each cell gets the sum of all cells before it, so that a pixel costs
 * the same however many cells it covers.
 * SPDX-License-Identifier: ISC */
#include "draw/overview.h"

#include <string.h>

#include "draw/frame.h"

#define COLUMNS 2048
#define MAX_AREAS 14
#define UNIT 1024.0 /* value of one row over a whole cell */
#define CELL_PX 2

#define TOP_PX 4      /* above the areas */
#define PROFILE_PX 12 /* height in px of the profile of running time, below the areas */
#define MIN_FRAME_PX 4
#define GRIP_PX 5
#define FAINT 112       /* opacity of highlights if there are many of them */
#define MAX_LINES 16    /* between bands */
#define LINE_MAX_ROWS 4 /* maximum number of rows of an area in which each row is visible */

enum plane { ALIVE, NEVER, WRONG_ENDS, HIGHLIGHT, PLANES };

struct weft_overview {
	const struct weft_model *model;
	const struct weft_layout *layout;
	double cells_per_ns, slots;
	int areas;
	double rows_per_area;
	int64_t *plane[PLANES];       /* for each plane, an array of areas * (COLUMNS + 1) sums */
	bool used[PLANES][MAX_AREAS]; /* whether the plane of an area has any values */
	bool has_many_found;          /* of the highlights */
	int64_t run[COLUMNS + 1], paused[COLUMNS + 1];
	struct weft_draw_list
	    /* Draw list of the last strip, without the frame around the visible interval; empty if it must be drawn again. */
	    strip;
};

static int area_of(const struct weft_overview *o, uint32_t row)
{
	int area = (int)(weft_view_whole_slot(o->layout, row) / o->rows_per_area);
	return area < o->areas ? area : o->areas - 1;
}

static int cell_of(const struct weft_overview *o, int64_t time_ns)
{
	double at = (double)time_ns * o->cells_per_ns;
	return at > 0 ? at < COLUMNS ? (int)at : COLUMNS - 1 : 0;
}

/* Adds an interval to the cells, as differences. */
static void add_interval(const struct weft_overview *o, int64_t *row, int64_t start_ns, int64_t end_ns)
{
	double from = (double)start_ns * o->cells_per_ns * UNIT, to = (double)end_ns * o->cells_per_ns * UNIT;
	int first = cell_of(o, start_ns), last = cell_of(o, end_ns);
	from = from > 0 ? from : 0;
	to = to > from + 1 ? to : from + 1;
	if (first == last) {
		int64_t all = (int64_t)(to - from);
		row[first] += all;
		row[first + 1] -= all;
		return;
	}
	int64_t begins = (int64_t)((first + 1) * UNIT - from), ends = (int64_t)(to - last * UNIT);
	row[first] += begins;
	row[first + 1] += (int64_t)UNIT - begins;
	row[last] += ends - (int64_t)UNIT;
	row[last + 1] -= ends;
}

/* Converts differences to sums of all cells before each cell. */
static void add_up(int64_t *row)
{
	int64_t cell = 0, sum = 0;
	for (int c = 0; c <= COLUMNS; c++) {
		cell += row[c];
		row[c] = sum;
		sum += cell;
	}
}

static int64_t *row_of(const struct weft_overview *o, enum plane plane, int area)
{
	return o->plane[plane] + (size_t)area * (COLUMNS + 1);
}

static void add_interval_to_area(struct weft_overview *o, enum plane plane, int area, int64_t start_ns, int64_t end_ns)
{
	o->used[plane][area] = true;
	add_interval(o, row_of(o, plane, area), start_ns, end_ns);
}

static void add_up_plane(struct weft_overview *o, enum plane plane)
{
	for (int area = 0; area < o->areas; area++)
		if (o->used[plane][area])
			add_up(row_of(o, plane, area));
}

static void sum_up(struct weft_overview *o, const struct weft_view *view)
{
	const struct weft_index *x = view->index;
	for (uint32_t r = 0; r < o->layout->row_count; r++) {
		int area = area_of(o, r);
		for (uint32_t i = o->layout->row_begin[r]; i < o->layout->row_begin[r + 1]; i++) {
			add_interval_to_area(o, ALIVE, area, x->lives[i].start_ns, x->lives[i].end_ns);
			if (!(x->important[i / 64] >> i % 64 & 1))
				continue;
			int64_t *end = row_of(o, WRONG_ENDS, area) + cell_of(o, x->lives[i].end_ns);
			end[0]++;
			end[1]--;
			o->used[WRONG_ENDS][area] = true;
			if (x->never[i / 64] >> i % 64 & 1)
				add_interval_to_area(o, NEVER, area, x->lives[i].start_ns, x->lives[i].end_ns);
		}
	}
	add_up_plane(o, ALIVE);
	add_up_plane(o, NEVER);
	add_up_plane(o, WRONG_ENDS);
	/* Runs of the system promise are skipped, because the program sleeps meanwhile. */
	for (size_t i = o->model->promises[WEFT_SYSTEM + 1].runs; i < o->model->run_count; i++)
		add_interval(o, o->run, o->model->runs[i].start_ns, o->model->runs[i].end_ns);
	for (size_t i = 0; i < o->model->pause_count; i++)
		add_interval(o, o->paused, o->model->pauses[i].start_ns, o->model->pauses[i].end_ns);
	add_up(o->run);
	add_up(o->paused);
}

int weft_overview_create(struct weft_overview **out, const struct weft_view *view, struct weft_error *err)
{
	struct weft_overview *o = calloc(1, sizeof *o);
	if (!o)
		return weft_error_set(err, WEFT_ENOMEM, "no memory for an overview");
	double span = view->model->end_ns > 0 ? (double)view->model->end_ns : 1;
	o->model = view->model;
	o->layout = view->layout;
	o->cells_per_ns = COLUMNS / span;
	/* The overview shows all rows, whatever interval the view shows. */
	o->slots = (double)o->layout->row_count + (o->layout->band_count > 1 ? (double)o->layout->band_count : 0);
	o->slots = o->slots > 1 ? o->slots : 1;
	o->areas = o->slots < MAX_AREAS ? (int)o->slots : MAX_AREAS;
	o->rows_per_area = o->slots / o->areas;
	bool done = true;
	for (enum plane p = 0; p < PLANES; p++)
		done = (o->plane[p] = calloc((size_t)o->areas * (COLUMNS + 1), sizeof **o->plane)) && done;
	if (!done) {
		weft_overview_destroy(o);
		return weft_error_set(err, WEFT_ENOMEM, "no memory for an overview");
	}
	sum_up(o, view);
	weft_overview_highlight(o, view);
	*out = o;
	return WEFT_OK;
}

void weft_overview_destroy(struct weft_overview *o)
{
	if (!o)
		return;
	for (enum plane p = 0; p < PLANES; p++)
		free(o->plane[p]);
	weft_draw_finish(&o->strip);
	free(o);
}

void weft_overview_highlight(struct weft_overview *o, const struct weft_view *view)
{
	o->has_many_found = view->found > WEFT__MANY_FOUND;
	o->strip.count = 0;
	for (int area = 0; area < o->areas; area++) {
		if (o->used[HIGHLIGHT][area])
			memset(row_of(o, HIGHLIGHT, area), 0, (COLUMNS + 1) * sizeof **o->plane);
		o->used[HIGHLIGHT][area] = false;
	}
	if (view->found == 0)
		return;
	for (uint32_t p = 0; p < o->model->promise_count; p++) {
		const struct weft_promise *promise = &o->model->promises[p];
		if (p % 64 == 0 && !view->highlight[p / 64])
			p += 63;
		else if (weft_view_is_highlighted(view, p) && o->layout->rows[p] != WEFT_NONE)
			add_interval_to_area(o, HIGHLIGHT, area_of(o, o->layout->rows[p]), promise->start_ns, promise->end_ns);
	}
	add_up_plane(o, HIGHLIGHT);
}

/* Returns the margin in px, which is that of a view of the whole trace, so that both have the same scale. */
static double margin_of(double width_px)
{
	return width_px > 4 * WEFT_VIEW_MARGIN_PX ? WEFT_VIEW_MARGIN_PX : width_px / 4;
}

double weft_overview_x(const struct weft_overview *o, double width_px, int64_t time_ns)
{
	double margin = margin_of(width_px), at = (double)time_ns * o->cells_per_ns / COLUMNS;
	return margin + at * (width_px - 2 * margin);
}

int64_t weft_overview_time(const struct weft_overview *o, double width_px, double x_px)
{
	double margin = margin_of(width_px), at = (x_px - margin) / (width_px - 2 * margin) * COLUMNS / o->cells_per_ns;
	return at > -9e18 ? at < 9e18 ? (int64_t)at : INT64_MAX : INT64_MIN;
}

/* Computes the frame around the visible interval, which is at least wide enough to be seen and grabbed. */
static void frame_of(const struct weft_overview *o, const struct weft_view *view, double width_px, double *x0, double *x1)
{
	*x0 = weft_overview_x(o, width_px, view->from_ns);
	*x1 = weft_overview_x(o, width_px, weft_view_time(view, view->width_px));
	*x0 = *x0 > 0 ? *x0 < width_px ? *x0 : width_px : 0;
	*x1 = *x1 > *x0 ? *x1 < width_px ? *x1 : width_px : *x0;
	double missing = MIN_FRAME_PX - (*x1 - *x0);
	if (missing > 0) {
		*x0 -= missing / 2;
		*x1 += missing / 2;
	}
}

enum weft_grip weft_overview_grip(const struct weft_overview *o, const struct weft_view *view, double width_px, double x_px)
{
	double x0, x1;
	frame_of(o, view, width_px, &x0, &x1);
	/* Between the two ends there is always space to grab the frame itself. */
	double within = (x1 - x0) / 4 < GRIP_PX ? (x1 - x0) / 4 : GRIP_PX;
	if (!(x_px >= x0 - GRIP_PX && x_px <= x1 + GRIP_PX))
		return WEFT_GRIP_NONE;
	return x_px < x0 + within ? WEFT_GRIP_LEFT : x_px > x1 - within ? WEFT_GRIP_RIGHT : WEFT_GRIP_FRAME;
}

void weft_overview_drag(
    const struct weft_overview *o, struct weft_view *view, double width_px, enum weft_grip grip, double from_x_px, double to_x_px)
{
	int64_t from = view->from_ns, to = weft_view_time(view, view->width_px), at = weft_overview_time(o, width_px, to_x_px);
	double moved_ns = (double)at - (double)weft_overview_time(o, width_px, from_x_px), moved = moved_ns * view->px_per_ns;
	if (view->lulls)
		moved = weft_view_x(view, from + (int64_t)moved_ns);
	switch (grip) {
	case WEFT_GRIP_LEFT: weft_view_show(view, at, to); break;
	case WEFT_GRIP_RIGHT: weft_view_show(view, from, at); break;
	case WEFT_GRIP_FRAME: weft_view_pan(view, -moved); break;
	default: weft_view_pan(view, view->width_px / 2 - weft_view_x(view, at));
	}
}

/* Cells of the sums that are under a pixel cell of the strip, as whole cells and as exact positions. */
struct cells {
	int from, end;
	double first, last;
};

static double clamp_cell(double at)
{
	return at > 0 ? at < COLUMNS ? at : COLUMNS : 0;
}

static struct cells cells_at(int x, double width_px)
{
	double margin = margin_of(width_px), scale = COLUMNS / (width_px - 2 * margin);
	double first = (x - margin) * scale, last = (x + CELL_PX - margin) * scale;
	int from = weft__floor(first), end = weft__floor(last);
	end = end > from ? end : from + 1;
	return (struct cells){from > 0 ? from : 0, end < COLUMNS ? end : COLUMNS, clamp_cell(first), clamp_cell(last)};
}

static double sum_to(const int64_t *row, double at)
{
	int cell = weft__floor(at);
	return (double)row[cell] + (cell < COLUMNS ? (at - cell) * (double)(row[cell + 1] - row[cell]) : 0);
}

/* Returns the average part of a pixel cell that is covered. */
static double covered_fraction(const int64_t *row, struct cells c)
{
	return c.last > c.first ? (sum_to(row, c.last) - sum_to(row, c.first)) / (UNIT * (c.last - c.first)) : 0;
}

/* Returns the opacity for the part of rows with a pending promise; each hundredth has its own shade. */
static int alive_alpha(const struct weft_overview *o, double alive)
{
	int fraction = weft__floor(alive / o->rows_per_area * 100 + 0.5);
	return alive > 0 ? 20 + 2 * (fraction < 100 ? fraction : 100) : 0;
}

/* Returns the opacity for the part of rows in which a promise failed or never resolved; a single such promise is visible. */
static int wrong_alpha(const struct weft_overview *o, enum plane plane, const int64_t *row, struct cells c)
{
	const bool few = o->rows_per_area <= LINE_MAX_ROWS;
	if (plane == NEVER)
		return few ? 144 : weft__wrong_alpha(covered_fraction(row, c) / o->rows_per_area) / 2;
	return few ? 255 : weft__wrong_alpha((double)(row[c.end] - row[c.from]) / o->rows_per_area);
}

struct area_bounds {
	int y0, y1;
};

static struct area_bounds area_bounds_of(const struct weft_overview *o, const struct weft__frame *f, int area)
{
	int height = f->height - TOP_PX - PROFILE_PX - 4, y0 = TOP_PX + height * area / o->areas;
	int y1 = TOP_PX + height * (area + 1) / o->areas;
	/* If an area has few rows, they are drawn as lines with space between them. */
	if (y1 - y0 > 2)
		y1 = y0 + (y1 - y0 > 8 ? 4 : (y1 - y0 + 1) / 2);
	return (struct area_bounds){y0, y1 > y0 + 1 ? y1 : y0 + 1};
}

/* Draws one plane of an area; equal cells form one rectangle. */
static void draw_area(struct weft__frame *f, const struct weft_overview *o, enum plane plane, int area, enum weft_layer layer,
    enum weft_paint paint)
{
	const int64_t *row = row_of(o, plane, area);
	struct area_bounds at = area_bounds_of(o, f, area);
	int since = 0, last = 0;
	if (!o->used[plane][area])
		return;
	for (int x = 0; x <= f->width; x += CELL_PX) {
		struct cells c = cells_at(x, (double)f->list->width_px);
		bool in = x + CELL_PX <= f->width && c.from < c.end;
		int alpha = 0;
		if (in && plane == ALIVE)
			alpha = alive_alpha(o, covered_fraction(row, c));
		else if (in && row[c.end] > row[c.from])
			alpha = plane == HIGHLIGHT ? (o->has_many_found ? FAINT : 255) : wrong_alpha(o, plane, row, c);
		if (alpha == last)
			continue;
		if (last > 0)
			weft__rect(f, weft__ink(layer, paint, last), since, at.y0 - (plane >= WRONG_ENDS), x,
			    at.y1 + (plane >= WRONG_ENDS));
		since = x;
		last = alpha;
	}
}

/* Returns the total length of pauses within `far` pixel cells of x. */
static int64_t paused_around(const struct weft_overview *o, const struct weft__frame *f, int x, int far)
{
	const int from = cells_at(x - far * CELL_PX, (double)f->list->width_px).from,
		  end = cells_at(x + far * CELL_PX, (double)f->list->width_px).end;
	return o->paused[end] - o->paused[from < end ? from : end];
}

/* Draws pauses, with an opacity that shows the covered part; an isolated pause is always visible. */
static void draw_pauses(struct weft__frame *f, const struct weft_overview *o, int x, struct cells c)
{
	const bool alone = paused_around(o, f, x, 4) == paused_around(o, f, x, 1);
	const int quarters = weft__floor(covered_fraction(o->paused, c) * 4) + 1;
	if (o->paused[c.end] > o->paused[c.from])
		weft__rect(f, weft__ink(WEFT_LAYER_SHADE, WEFT_PAINT_PAUSE, alone || quarters > 3 ? 255 : 64 * quarters), x, 0,
		    x + CELL_PX, f->height);
}

/* Draws pauses, and the part of the time in which any thread ran as a filled curve; the opacity of the curve's topmost pixel is
 * the part of it that is covered. */
static void draw_profile(struct weft__frame *f, const struct weft_overview *o)
{
	enum { SHADES = 16 };
	int bottom = f->height - 2, since = 0, last = 0;
	double bands = o->layout->band_count > 1 ? (double)o->layout->band_count : 1;
	for (int x = 0; x <= f->width; x += CELL_PX) {
		struct cells c = cells_at(x, (double)f->list->width_px);
		bool in = x + CELL_PX <= f->width && c.from < c.end;
		double fraction = in ? covered_fraction(o->run, c) / bands : 0;
		int high = weft__floor((fraction < 1 ? fraction : 1) * (PROFILE_PX - 1) * SHADES + 0.5);
		high = fraction > 0 && high == 0 ? 1 : high;
		if (in)
			draw_pauses(f, o, x, c);
		if (high == last)
			continue;
		int full = last / SHADES, rest = last % SHADES;
		weft__rect(f, weft__ink(WEFT_LAYER_PROMISE, WEFT_PAINT_PROMISE, 176), since, bottom - full, x, bottom);
		weft__rect(f, weft__ink(WEFT_LAYER_PROMISE, WEFT_PAINT_PROMISE, 176 * rest / SHADES), since, bottom - full - 1, x,
		    bottom - full);
		since = x;
		last = high;
	}
}

static void draw_bands(struct weft__frame *f, const struct weft_overview *o)
{
	if (o->layout->band_count > MAX_LINES)
		return;
	for (size_t b = 1; b < o->layout->band_count; b++) {
		int area = (int)(((double)o->layout->bands[b].first_row + (double)b) / o->rows_per_area);
		int y = area_bounds_of(o, f, area).y0 - 1;
		weft__rect(f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), 0, y, f->width, y + 1);
	}
}

/* Draws the frame around the visible interval; everything outside of the frame is dimmed, except marks. */
static void draw_frame(struct weft__frame *f, const struct weft_overview *o)
{
	double left, right;
	frame_of(o, f->view, (double)f->list->width_px, &left, &right);
	int x0 = weft__floor(left), x1 = weft__floor(right), middle = f->height / 2;
	weft__rect(f, weft__ink(WEFT_LAYER_ARROW, WEFT_PAINT_BACKGROUND, 144), 0, 0, x0, f->height);
	weft__rect(f, weft__ink(WEFT_LAYER_ARROW, WEFT_PAINT_BACKGROUND, 144), x1, 0, f->width, f->height);
	weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_ACCENT, 255), x0, 0, x1, 1);
	weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_ACCENT, 255), x0, f->height - 1, x1, f->height);
	weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_ACCENT, 255), x0, 0, x0 + 1, f->height);
	weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_ACCENT, 255), x1 - 1, 0, x1, f->height);
	if (x1 - x0 < 12)
		return;
	weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_ACCENT, 255), x0, middle - 9, x0 + 4, middle + 9);
	weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_ACCENT, 255), x1 - 4, middle - 9, x1, middle + 9);
}

static int draw_strip(
    struct weft_overview *o, const struct weft_view *view, double width_px, double height_px, struct weft_error *err)
{
	struct weft__frame f = {
	    .list = &o->strip, .view = view, .model = view->model, .layout = view->layout, .index = view->index};
	f.failed = !weft__frame_begin(&f, width_px, height_px);
	if (!f.failed) {
		weft__rect(&f, weft__ink(WEFT_LAYER_BACK, WEFT_PAINT_BACKGROUND, 255), 0, 0, f.width, f.height);
		draw_bands(&f, o);
		draw_profile(&f, o);
		for (int area = 0; area < o->areas; area++) {
			draw_area(&f, o, ALIVE, area, WEFT_LAYER_PROMISE, WEFT_PAINT_PROMISE);
			draw_area(&f, o, NEVER, area, WEFT_LAYER_FAILED, WEFT_PAINT_FAILED);
			draw_area(&f, o, WRONG_ENDS, area, WEFT_LAYER_FAILED, WEFT_PAINT_FAILED);
			if (view->found > 0)
				draw_area(&f, o, HIGHLIGHT, area, WEFT_LAYER_FAILED,
				    /* This paint is drawn behind failures, because paints are sorted within a layer. */
				    WEFT_PAINT_HIGHLIGHT);
		}
	}
	return weft__frame_end(&f, err);
}

int weft_overview_draw(struct weft_draw_list *list, struct weft_overview *o, const struct weft_view *view, double width_px,
    double height_px, struct weft_error *err)
{
	struct weft__frame f = {.list = list, .view = view, .model = view->model, .layout = view->layout, .index = view->index};
	width_px = width_px >= 16 ? width_px < 32767 ? width_px : 32767 : 16;
	height_px = height_px >= 24 ? height_px < 1024 ? height_px : 1024 : 24;
	f.failed = !weft__frame_begin(&f, width_px, height_px);
	bool is_cached = o->strip.count > 0 && o->strip.width_px == list->width_px && o->strip.height_px == list->height_px;
	if (!is_cached && draw_strip(o, view, width_px, height_px, err) < 0)
		f.failed = true;
	weft__list_add(&f, &o->strip);
	if (!f.failed)
		draw_frame(&f, o);
	return weft__frame_end(&f, err);
}
