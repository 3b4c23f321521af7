/* marks.c: draws marks over a frame, such as the selected promise.  SPDX-License-Identifier: ISC */
#include "draw/marks.h"

#include "draw/threads.h"

#define VEIL 196    /* opacity */
#define NAMED_PX 40 /* length in px from which on a highlighted promise has its name on the veil */
#define NAMED_ROW_PX 12

struct row {
	int y, half; /* half the height of the ring around a promise */
	double pitch;
};

static struct row row_at(const struct weft__frame *f, uint32_t row)
{
	double slot = weft_view_slot(f->view, row);
	double pitch = weft_view_y(f->view, slot + 0.5) - weft_view_y(f->view, slot - 0.5);
	return (struct row){weft__row_y(f, row), pitch >= 12 ? 4 : pitch >= 6 ? 3 : 2, pitch};
}

static enum weft_paint paint_of(const struct weft_promise *p)
{
	return weft_promise_went_wrong(p) ? WEFT_PAINT_FAILED : WEFT_PAINT_PROMISE;
}

static double end_x(const struct weft__frame *f, uint32_t promise)
{
	return weft_view_x(f->view, weft_layout_end(f->layout, f->model, promise));
}

static size_t name_of(const struct weft__frame *f, uint32_t promise, char *text, size_t size)
{
	char raw[160];
	size_t len = weft_model_name(f->model, promise, raw, sizeof raw);
	return weft__text_clean(text, size, raw, len < sizeof raw ? len : sizeof raw - 1);
}

/* A group of promises on one row that are adjacent on the screen. */
struct highlighted_row {
	double x0, x1;
	uint32_t promise; /* the longest */
	double longest;
	bool failed, any;
};

static void draw_lit(struct weft__frame *f, const struct row *row, struct highlighted_row *highlighted_row)
{
	if (!highlighted_row->any)
		return;
	int x0 = weft__floor(highlighted_row->x0), x1 = weft__floor(highlighted_row->x1), line = row->pitch >= 6 ? 2 : 1;
	x1 = x1 > x0 ? x1 : x0 + 1;
	weft__rect(f, weft__ink(WEFT_LAYER_HIGHLIGHT, WEFT_PAINT_HIGHLIGHT, 255), x0 - 3, row->y - row->half, x1 + 3,
	    row->y + row->half + 2);
	weft__rect(f, weft__ink(WEFT_LAYER_PROMISE, highlighted_row->failed ? WEFT_PAINT_FAILED : WEFT_PAINT_PROMISE, 255), x0,
	    row->y, x1, row->y + line);
	if (row->pitch >= NAMED_ROW_PX && highlighted_row->longest >= NAMED_PX) {
		char text[176];
		double width, from = highlighted_row->x0 > 4 ? highlighted_row->x0 + 3 : 4,
			      to = highlighted_row->x1 < f->width ? highlighted_row->x1 : f->width;
		size_t len = weft__fold_name(f, highlighted_row->promise, text, sizeof text - 4);
		len = len > 0 ? len : name_of(f, highlighted_row->promise, text, sizeof text - 4);
		len = weft__text_fit(f, WEFT_FONT_LABEL, text, len, sizeof text, to - from, &width);
		if (len > 0)
			weft__text_put(f, highlighted_row->failed ? WEFT_PAINT_FAILED : WEFT_PAINT_LABEL, from, row->y - 4,
			    (struct weft__writing){WEFT_FONT_LABEL, text, len, width});
	}
	highlighted_row->any = false;
}

static void add_lit(struct weft__frame *f, const struct row *row, struct highlighted_row *highlighted_row, uint32_t promise)
{
	const struct weft_promise *p = &f->model->promises[promise];
	double x0 = weft_view_x(f->view, p->start_ns), x1 = end_x(f, promise);
	x0 = x0 > -8 ? x0 : -8;
	x1 = x1 < f->width + 8 ? x1 : f->width + 8;
	bool failed = paint_of(p) == WEFT_PAINT_FAILED;
	if (highlighted_row->any &&
	    (x0 > highlighted_row->x1 + WEFT__CELL_PX || highlighted_row->longest >= NAMED_PX || x1 - x0 >= NAMED_PX))
		draw_lit(f, row, highlighted_row);
	if (!highlighted_row->any)
		*highlighted_row = (struct highlighted_row){.x0 = x0, .any = true};
	highlighted_row->x1 = x1;
	highlighted_row->failed |= failed;
	if (x1 - x0 >= highlighted_row->longest) {
		highlighted_row->longest = x1 - x0;
		highlighted_row->promise = promise;
	}
}

static void draw_highlighted(struct weft__frame *f)
{
	const struct weft_layout *layout = f->layout;
	for (uint32_t r = weft_view_next_shown(f->view, 0); r < layout->row_count; r = weft_view_next_shown(f->view, r + 1)) {
		size_t begin = layout->row_begin[r], count = layout->row_begin[r + 1] - begin;
		const struct weft_intervals track = weft__row_intervals(f->index, layout, r);
		struct highlighted_row highlighted_row = {0};
		struct row row = {.half = -1};
		size_t i = weft__intervals_end_after(&track, 0, f->from_ns);
		for (i = i > 0 ? i - 1 : 0; i < count && weft__intervals_start(&track, i) <= f->to_ns; i++) {
			uint32_t promise = layout->by_row[begin + i];
			if (!weft_view_is_line_highlighted(f->view, promise) || weft__intervals_end(&track, i) < f->from_ns)
				continue;
			if (row.half < 0)
				row = row_at(f, r);
			add_lit(f, &row, &highlighted_row, promise);
		}
		draw_lit(f, &row, &highlighted_row);
	}
}

static void draw_ring(struct weft__frame *f, int alpha, int x0, int y0, int x1, int y1, int width)
{
	const struct weft__ink ink = weft__ink(WEFT_LAYER_MARK, WEFT_PAINT_ACCENT, alpha);
	weft__rect(f, ink, x0, y0, x1, y0 + width);
	weft__rect(f, ink, x0, y1 - width, x1, y1);
	weft__rect(f, ink, x0, y0 + width, x0 + width, y1 - width);
	weft__rect(f, ink, x1 - width, y0 + width, x1, y1 - width);
}

/* Draws the name of the selected promise on a plate, like a tab on the promise's line, exactly where the frame has the name; the
 * name is below the line if there is no space above. */
static void draw_name(struct weft__frame *f, uint32_t promise, double x0, const struct row *row)
{
	char text[176];
	double width;
	size_t len = weft__fold_name(f, promise, text, sizeof text - 4);
	len = len > 0 ? len : name_of(f, promise, text, sizeof text - 4);
	len = weft__text_fit(f, WEFT_FONT_LABEL, text, len, sizeof text, f->width - 24.0, &width);
	if (len == 0)
		return;
	double x = x0 + 3 > 4 ? x0 + 3 : 4;
	x = x + width + 12 > f->width ? f->width - width - 12 : x;
	int left = weft__floor(x), baseline = row->y > 20 ? row->y - 4 : row->y + row->half + 16;
	weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_ACCENT, 255), left - 5, baseline - 13, left + weft__floor(width) + 5,
	    baseline + 4);
	weft__text_put(f, WEFT_PAINT_BACKGROUND, left, baseline, (struct weft__writing){WEFT_FONT_LABEL, text, len, width});
}

static void draw_one(struct weft__frame *f, uint32_t promise, bool selected)
{
	if (promise >= f->model->promise_count || f->layout->rows[promise] == WEFT_NONE)
		return;
	const struct weft_promise *p = &f->model->promises[promise];
	struct row row = row_at(f, f->layout->rows[promise]);
	double from = weft_view_x(f->view, p->start_ns), to = end_x(f, promise);
	if (to < 0 || from > f->width)
		return;
	int x0 = weft__floor(from > -16 ? from : -16) - 4, x1 = weft__floor(to < f->width + 16 ? to : f->width + 16) + 4;
	int y0 = row.y - row.half - 2, y1 = row.y + row.half + 4;
	if (selected) {
		draw_ring(f, 255, x0, y0, x1, y1, 2);
		draw_name(f, promise, from < f->width ? weft__floor(from) : f->width, &row);
	} else {
		draw_ring(f, 144, x0, y0, x1, y1, 1);
	}
}

/* Draws a ring around an interval of an OS thread, and the arrow from the thread that woke it. */
static void draw_spot(
    struct weft__frame *f, const struct weft__threads *threads, uint32_t track, int64_t from_ns, int64_t to_ns, bool picked)
{
	int64_t start_ns, end_ns;
	double from = weft_view_x(f->view, from_ns), to = weft_view_x(f->view, to_ns);
	int x0 = weft__floor(from > -8 ? from : -8), x1 = weft__floor(to < f->width + 8 ? to : f->width + 8) + 1;
	int y1 = threads->y0 + (int)(track + 1) * threads->each_px - 1, y0 = y1 - threads->each_px + 2;
	draw_ring(f, picked ? 255 : 144, x0 - 1, y0, x1 + 1, y1, picked ? 2 : 1);
	const struct weft_off_cpu *off = weft_os_off_at(threads->tracks, track, from_ns / 2 + to_ns / 2, &start_ns, &end_ns);
	if (off)
		weft__draw_wake(f, threads, track, off);
}

int weft_marks_draw(
    struct weft_draw_list *list, const struct weft_view *view, const struct weft_marks *marks, struct weft_error *err)
{
	struct weft__frame f = {.list = list,
	    .view = view,
	    .model = view->model,
	    .layout = view->layout,
	    .index = view->index,
	    .options = {.measure = marks->measure, .measure_ctx = marks->measure_ctx},
	    .from_ns = weft_view_time(view, -8),
	    .to_ns = weft_view_time(view, view->width_px + 8)};
	if (marks->frame)
		f.options = *marks->frame;
	f.failed = !weft__frame_begin(&f, view->width_px, view->height_px);
	if (!f.failed) {
		f.s->bundles.count = 0;
		if (marks->dim) {
			weft__rect(&f, weft__ink(WEFT_LAYER_BACK, WEFT_PAINT_BACKGROUND, VEIL), 0, 0, f.width, f.height);
			draw_highlighted(&f);
		}
		for (size_t i = 0; i < sizeof marks->arrows / sizeof *marks->arrows; i++)
			weft__draw_arrows_of(&f, marks->arrows[i].links, marks->arrows[i].count);
		const struct weft__threads threads = marks->frame ? weft__threads_in(&f) : (struct weft__threads){.count = 0};
		for (size_t i = 0; threads.count > 0 && i < 2; i++)
			if ((i ? marks->selected : marks->hovered) != WEFT_NONE)
				weft__draw_wakes(&f, &threads, i ? marks->selected : marks->hovered);
		for (size_t i = 0; i < 2; i++)
			if (marks->spots[i].track < threads.count)
				draw_spot(
				    &f, &threads, marks->spots[i].track, marks->spots[i].from_ns, marks->spots[i].to_ns, i == 1);
		if (marks->hovered != marks->selected)
			draw_one(&f, marks->hovered, false);
		draw_one(&f, marks->selected, true);
	}
	return weft__frame_end(&f, err);
}
