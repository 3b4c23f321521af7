/* strips.c: rows that are too low to be told apart, as densities in strips of a few px.
 *
 * Boxes of promises that fit into a cell, or that are so many over each other that their gaps cannot be seen, are laid down
 * whole.  SPDX-License-Identifier: ISC */
#include <assert.h>
#include <string.h>

#include "draw/lines.h"

/* What is added up for each cell, as differences to the cell on its left until a strip is drawn. */
enum plane { ALIVE, RUN, FAILED, END_FAILED, HIGHLIGHT, PLANES };

#define UNIT 256.0 /* one row over a whole cell */
static_assert(WEFT__BOX_FAN == 16 && WEFT__BOX_PROMISES == 64, "a box of level l has 64 << 4 * l promises");

#define BLUR_CELLS 32 /* how far a box may be spread */
#define EVEN 0.85     /* so much of a box covered is as good as all of it */
#define SPARSE_ROWS 4 /* in a strip: the runs and relations of each promise show */
#define WIDE_PX 24    /* if it is long enough */

struct strips {
	int64_t *planes;
	double *rows;   /* in each strip */
	size_t columns; /* cells, one behind them, and whether there is anything in the strip; if not, they hold anything */
	int count;
};

static struct strips strips_of(struct weft__frame *f)
{
	return (struct strips){.planes = f->s->planes.items,
	    .rows = f->s->strip_rows.items,
	    .columns = (size_t)(f->width / WEFT__CELL_PX) + 3,
	    .count = f->height / WEFT__STRIP_PX + 1};
}

static int strip_at(int y)
{
	return y < 0 ? 0 : y / WEFT__STRIP_PX;
}

bool weft__strips_begin(struct weft__frame *f)
{
	struct strips s = strips_of(f);
	if (f->end_line_row - f->first_line_row == f->layout->row_count)
		return true;
	size_t cells = PLANES * (size_t)s.count * s.columns;
	f->s->planes.count = f->s->strip_rows.count = 0;
	if (!weft_vec_reserve(&f->s->planes, cells) || !weft_vec_reserve(&f->s->strip_rows, s.count)) {
		f->failed = true;
		return false;
	}
	for (size_t i = 0; i < PLANES * (size_t)s.count; i++)
		f->s->planes.items[(i + 1) * s.columns - 1] = 0;
	for (int i = 0; i < s.count; i++)
		f->s->strip_rows.items[i] =
		    weft_view_slot_at(f->view, (i + 1) * WEFT__STRIP_PX) - weft_view_slot_at(f->view, i * WEFT__STRIP_PX);
	return true;
}

/* Adds `amount`, in rows times cells, evenly to the cells from x0 to x1. */
static void lay(struct strips *s, enum plane plane, int strip, double x0, double x1, double amount)
{
	int last = (int)s->columns - 3;
	int c0 = weft__floor(x0 / WEFT__CELL_PX), c1 = weft__floor(x1 / WEFT__CELL_PX);
	if (c1 < 0 || c0 > last || strip >= s->count)
		return;
	double each = amount * UNIT / (c1 - c0 + 1) + 1;
	int64_t add = (int64_t)each;
	int64_t *row = s->planes + ((size_t)plane * (size_t)s->count + (size_t)strip) * s->columns;
	if (!row[s->columns - 1]) {
		memset(row, 0, s->columns * sizeof *row);
		row[s->columns - 1] = 1;
	}
	row[c0 > 0 ? c0 : 0] += add;
	row[(c1 < last ? c1 : last) + 1] -= add;
}

void weft__strip_highlight(struct weft__frame *f, int y, double x0, double x1)
{
	struct strips s = strips_of(f);
	if (x1 >= 0 && x0 <= f->width)
		lay(&s, HIGHLIGHT, strip_at(y), x0, x1, 0);
}

static bool is_line(const struct weft__frame *f, uint32_t row)
{
	return row >= f->first_line_row && row < f->end_line_row;
}

static void lay_failure(struct strips *s, int strip, double x0, double x1)
{
	lay(s, FAILED, strip, x0, x1, 0);
	lay(s, END_FAILED, strip, x1, x1, 0);
}

/* Those among the promises from place i up to `end`, all in one strip. */
static void lay_failures(struct weft__frame *f, struct strips *s, int strip, size_t i, size_t end)
{
	const struct weft_index *x = f->index;
	for (end = end < x->count ? end : x->count; i < end; i = (i / 64 + 1) * 64) {
		uint64_t bits = x->important[i / 64];
		if (end < (i / 64 + 1) * 64)
			bits &= (1ull << end % 64) - 1;
		for (; bits; bits &= bits - 1) {
			size_t at = i / 64 * 64 + (size_t)__builtin_ctzll(bits);
			if (x->end[at] >= f->from_ns && x->start[at] <= f->to_ns)
				lay_failure(s, strip, weft_view_x(f->view, x->start[at]), weft_view_x(f->view, x->end[at]));
		}
	}
}

/* Lays a box down whole, if that is as good as looking into it; of what failed, each always shows. */
static bool lay_box(struct weft__frame *f, struct strips *s, int level, size_t at)
{
	const struct weft_box *box = &f->index->boxes[level][at];
	if (!(box->last_row < f->first_line_row || box->first_row >= f->end_line_row))
		return false;
	int y = weft__row_y(f, box->first_row), strip = strip_at(y);
	if (strip_at(weft__row_y(f, box->last_row)) != strip)
		return false;
	double x0 = weft_view_x(f->view, box->start_ns), x1 = weft_view_x(f->view, box->end_ns);
	double wide = WEFT__CELL_PX, rows = s->rows[strip];
	/* Gaps do not show where many rows share a strip, nor where there are hardly any. */
	if (rows > 2) {
		wide *= rows < BLUR_CELLS ? rows : BLUR_CELLS;
		if ((double)box->alive_ns >
		    EVEN * (box->last_row - box->first_row + 1) * ((double)box->end_ns - (double)box->start_ns))
			wide = 1e9;
	}
	if (x1 - x0 > wide)
		return false;
	double cells_per_ns = f->view->px_per_ns / WEFT__CELL_PX;
	lay(s, ALIVE, strip, x0, x1, (double)box->alive_ns * cells_per_ns);
	if (box->run_ns)
		lay(s, RUN, strip, x0, x1, (double)box->run_ns * cells_per_ns);
	if (box->important && x1 - x0 <= WEFT__CELL_PX) {
		lay_failure(s, strip, x0, x1);
	} else if (box->important) {
		size_t size = (size_t)WEFT__BOX_PROMISES << 4 * level;
		lay_failures(f, s, strip, at * size, (at + 1) * size);
	}
	return true;
}

static void lay_promise(struct weft__frame *f, struct strips *s, size_t i, int y, double run_part)
{
	const struct weft_index *x = f->index;
	double x0 = weft_view_x(f->view, x->start[i]), x1 = weft_view_x(f->view, x->end[i]);
	int strip = strip_at(y);
	lay(s, ALIVE, strip, x0, x1, (x1 - x0) / WEFT__CELL_PX);
	if (x->important[i / 64] >> i % 64 & 1)
		lay_failure(s, strip, x0, x1);
	if (s->rows[strip] > SPARSE_ROWS || x1 - x0 < WIDE_PX) {
		if (run_part > 0)
			lay(s, RUN, strip, x0, x1, (x1 - x0) / WEFT__CELL_PX * run_part);
		return;
	}
	uint32_t promise = f->layout->by_row[i];
	weft__draw_relations(f, promise, y);
	const struct weft_promise *p = &f->model->promises[promise];
	struct weft_track runs = weft__runs_of(f, p);
	for (size_t r = weft__track_end_after(&runs, 0, f->from_ns); r < runs.count && weft__track_start(&runs, r) <= f->to_ns;) {
		double from = weft_view_x(f->view, weft__track_start(&runs, r));
		int64_t cell_end = weft_view_time(f->view, (weft__floor(from / WEFT__CELL_PX) + 1) * WEFT__CELL_PX);
		size_t end = weft__track_start_from(&runs, r + 1, cell_end);
		double to = weft_view_x(f->view, weft__track_end(&runs, end - 1));
		lay(s, RUN, strip, from, to, (double)(runs.busy[end] - runs.busy[r]) * f->view->px_per_ns / WEFT__CELL_PX);
		r = end;
	}
}

static void lay_promises(struct weft__frame *f, struct strips *s, size_t box)
{
	size_t i = box * WEFT__BOX_PROMISES, end = i + WEFT__BOX_PROMISES;
	uint32_t row = f->index->boxes[0][box].first_row;
	double alive = (double)f->index->boxes[0][box].alive_ns, run = (double)f->index->boxes[0][box].run_ns;
	double run_part = alive > 0 ? run / alive : 0;
	end = end < f->index->count ? end : f->index->count;
	for (int y = weft__row_y(f, row); i < end; i++) {
		if (i >= f->layout->row_begin[row + 1]) {
			while (i >= f->layout->row_begin[row + 1])
				row++;
			y = weft__row_y(f, row);
		}
		if (!is_line(f, row) && f->index->end[i] >= f->from_ns && f->index->start[i] <= f->to_ns)
			lay_promise(f, s, i, y, run_part);
	}
}

static void lay_boxes(struct weft__frame *f, struct strips *s)
{
	struct {
		int level;
		size_t box;
	} stack[WEFT__BOX_LEVELS * WEFT__BOX_FAN + 1];
	int height = 0;
	stack[height].level = f->index->box_levels - 1;
	stack[height++].box = 0;
	while (height > 0) {
		int level = stack[--height].level;
		size_t at = stack[height].box;
		const struct weft_box *box = &f->index->boxes[level][at];
		if (box->end_ns < f->from_ns || box->start_ns > f->to_ns ||
		    (is_line(f, box->first_row) && is_line(f, box->last_row)) || lay_box(f, s, level, at))
			continue;
		if (level == 0) {
			lay_promises(f, s, at);
			continue;
		}
		size_t end = (at + 1) * WEFT__BOX_FAN;
		end = end < f->index->box_count[level - 1] ? end : f->index->box_count[level - 1];
		for (size_t child = at * WEFT__BOX_FAN; child < end; child++) {
			stack[height].level = level - 1;
			stack[height++].box = child;
		}
	}
}

static int alive_alpha(double rows_alive, double rows)
{
	double part = rows_alive / (rows > 1 ? rows : 1);
	return rows_alive == 0 ? 0 : part < 1 / 8.0 ? 104 : part < 2 / 3.0 ? 140 : 176;
}

/* How a cell is painted in which `sum` units of a plane are. */
static int alpha_of(enum plane plane, int64_t sum, double rows)
{
	double all = (double)sum / UNIT;
	switch (plane) {
	case ALIVE: return alive_alpha(all, rows);
	case RUN: return all > rows / 2 ? 220 : all > rows / 8 ? 120 : 0;
	case FAILED: return sum == 0 ? 0 : rows > SPARSE_ROWS ? 144 : 255;
	default: return sum > 0 ? 255 : 0;
	}
}

/* Cells from c0 up to c1 that look alike. */
static void draw_cells(struct weft__frame *f, enum plane plane, int strip, size_t c0, size_t c1, int alpha)
{
	int y = strip * WEFT__STRIP_PX, x0 = (int)c0 * WEFT__CELL_PX, x1 = (int)c1 * WEFT__CELL_PX;
	if (alpha == 0)
		return;
	switch (plane) {
	case ALIVE: weft__line_put(f, alpha, x0, y, x1, y + 2); break;
	case RUN: weft__rect(f, WEFT_LAYER_RUN, WEFT_PAINT_RUN, alpha, x0, y, x1, y + 1); break;
	case FAILED: weft__rect(f, WEFT_LAYER_FAILED, WEFT_PAINT_FAILED, alpha, x0, y, x1, y + 2); break;
	case END_FAILED: weft__rect(f, WEFT_LAYER_FAILED, WEFT_PAINT_FAILED, alpha, x0, y, x1, y + 3); break;
	default:
		if (x1 - x0 < 8)
			weft__rect(f, WEFT_LAYER_MARK, WEFT_PAINT_HIGHLIGHT, alpha, x0 - 1, y - 1, x1 + 1, y + 3);
		else
			weft__rect(f, WEFT_LAYER_HIGHLIGHT, WEFT_PAINT_HIGHLIGHT, alpha, x0, y - 1, x1, y + 3);
	}
}

static void draw_plane(struct weft__frame *f, struct strips *s, int strip, enum plane plane)
{
	const int64_t *row = s->planes + ((size_t)plane * (size_t)s->count + (size_t)strip) * s->columns;
	const size_t end = s->columns - 2;
	size_t start = 0, grain = s->rows[strip] > SPARSE_ROWS ? 2 : 1;
	int last_alpha = 0;
	int64_t sum = 0;
	if (!row[s->columns - 1])
		return;
	/* Where many rows share a strip, two cells look like the fuller one. */
	for (size_t c = 0; c < end; c += grain) {
		int64_t most = 0;
		for (size_t i = c; i < c + grain && i < end; i++) {
			sum += row[i];
			most = sum > most ? sum : most;
		}
		int alpha = alpha_of(plane, most, s->rows[strip]);
		if (alpha == last_alpha)
			continue;
		draw_cells(f, plane, strip, start, c, last_alpha);
		start = c;
		last_alpha = alpha;
	}
	draw_cells(f, plane, strip, start, end, last_alpha);
}

void weft__strips_draw(struct weft__frame *f)
{
	struct strips s = strips_of(f);
	if (f->end_line_row - f->first_line_row == f->layout->row_count || f->index->count == 0)
		return;
	lay_boxes(f, &s);
	for (int strip = 0; strip < s.count; strip++)
		for (enum plane plane = ALIVE; plane < PLANES; plane++)
			draw_plane(f, &s, strip, plane);
}
