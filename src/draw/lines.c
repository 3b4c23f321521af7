/* lines.c: draws promises on rows that are high enough to be distinguished: their lines, runs, ends and creators.
 * SPDX-License-Identifier: ISC */
#include "draw/lines.h"

#include <assert.h>
#include <string.h>

#include "base/sort.h"
#include "draw/threads.h"

#define LABEL_SPACE_PX 13 /* space in px above a line for the line's label */
#define CROWD 4000        /* number of visible promises, on rows drawn one by one, above which cells are wider */
/* Length in px from which on a line gets a label where the row above is empty, even if that row is close. */
#define TIGHT_PX 48
#define SHORT_PX 80        /* length in px below which a line may have its name beside it */
#define BESIDE_PX 30       /* length in px for which the row must be empty for a name beside a line */
#define BESIDE_PITCH_PX 10 /* and this high */
#define PROFILE_PX 22      /* height in px of a fold's profile */
#define BROAD_RUN_PX 8     /* width in px above which a run would hide letters of a name below */

/* Opacity by the covered part of a cell, in quarters. */
static const int DENSITY[] = {255, 90, 130, 185, 240};

/* Intervals that are drawn together as one span. */
struct span {
	size_t first, end;
	int x0, x1;
	/* 0 if the span is one interval at its exact place; else the number of quarters of the cell that are covered. */
	int level;
};

/* Finds the next visible span of intervals at or after interval *i; returns false if there is none.  A narrow interval that is
 * alone in its cell is drawn exactly, unless `always` asks for the covered part. */
static bool next_span(
    const struct weft__frame *f, const struct weft_intervals *t, int cell_px, bool always, size_t *i, struct span *span)
{
	const struct weft_view *v = f->view;
	if (*i >= t->count || weft__intervals_start(t, *i) > f->to_ns)
		return false;
	double x0 = weft_view_x(v, weft__intervals_start(t, *i)), x1 = weft_view_x(v, weft__intervals_end(t, *i));
	span->first = *i;
	span->x0 = weft__floor(x0);
	span->x1 = weft__floor(x1);
	span->level = 0;
	span->end = *i + 1;
	if (x1 - x0 < cell_px) {
		int cell = weft__floor(x0 / cell_px) * cell_px;
		int64_t from = weft_view_time(v, cell), to = weft_view_time(v, cell + cell_px);
		span->end = weft__intervals_start_from(t, *i + 1, to);
		/* The last interval that starts in the cell may extend far beyond the cell. */
		if (span->end > *i + 1 && weft_view_x(v, weft__intervals_end(t, span->end - 1)) -
						  weft_view_x(v, weft__intervals_start(t, span->end - 1)) >=
					      cell_px)
			span->end--;
		if (to > from && (always || span->end > *i + 1)) {
			double covered = (double)weft__intervals_covered(t, *i, span->end, from, to);
			int quarters = weft__floor(covered * 4 / ((double)to - (double)from)) + 1;
			span->level = quarters > 4 ? 4 : quarters;
		}
		if (span->end > *i + 1) {
			span->x0 = cell;
			span->x1 = cell + cell_px;
		}
	}
	if (span->x1 <= span->x0)
		span->x1 = span->x0 + 1;
	*i = span->end;
	return true;
}

/* Adjacent spans of the same density, merged into one rectangle. */
struct block {
	int x0, x1, level;
};

static bool extend_block(struct block *s, const struct span *span)
{
	if (s->x1 != span->x0 || s->level != span->level || span->level == 0)
		return false;
	s->x1 = span->x1;
	return true;
}

/* Draws a block.  An isolated narrow block is opaque, because with the opacity of its covered part it would be too pale to
 * see. */
static void draw_block(
    struct weft__frame *f, const struct weft__interval_style *interval_style, const struct block *s, int before, int next)
{
	enum { FAR_CELLS = 4 };
	const int far = FAR_CELLS * interval_style->cell;
	const bool alone =
	    interval_style->least > 1 && s->x1 - s->x0 <= interval_style->cell && s->x0 - before >= far && next - s->x1 >= far;
	const int alpha = interval_style->density[alone ? 0 : s->level];
	weft__rect(f, weft__ink(interval_style->layer, interval_style->paint, alpha), s->x0, interval_style->y0, s->x1,
	    interval_style->y1);
}

void weft__draw_intervals(
    struct weft__frame *f, const struct weft_intervals *t, const struct weft__interval_style *interval_style)
{
	struct span span;
	struct block s = {0};
	int before = -interval_style->cell * 99;
	size_t i = weft__intervals_end_after(t, 0, f->from_ns);
	while (next_span(f, t, interval_style->cell, interval_style->least > 1, &i, &span)) {
		if (extend_block(&s, &span))
			continue;
		draw_block(f, interval_style, &s, before, span.x0);
		before = s.x1;
		s = (struct block){span.x0, span.x1, span.level};
		s.x1 = s.x1 - s.x0 < interval_style->least ? s.x0 + interval_style->least : s.x1;
	}
	draw_block(f, interval_style, &s, before, f->width + interval_style->cell * 99);
}

/* Sizes of the shapes on a row of a given height. */
struct style {
	int line, run_above, run_below, bar, head;
};

static struct style style_of(double pitch)
{
	if (pitch >= 12)
		return (struct style){.line = 2, .run_above = 3, .run_below = 5, .bar = 6, .head = 4};
	if (pitch >= 6)
		return (struct style){.line = 2, .run_above = 2, .run_below = 3, .bar = 4, .head = 3};
	return (struct style){.line = 1, .run_above = 1, .run_below = 2, .bar = 2, .head = 2};
}

struct weft_intervals weft__runs_of(const struct weft__frame *f, const struct weft_promise *p)
{
	return (struct weft_intervals){
	    .start = &f->model->runs[p->runs].start_ns,
	    .end = &f->model->runs[p->runs].end_ns,
	    .stride = sizeof(struct weft_run) / sizeof(int64_t),
	    .busy = f->index->run_busy + p->runs,
	    .count = p[1].runs - p->runs,
	};
}

/* Draws one run of a promise, split by whether its thread was on CPU. */
static bool draw_run(struct weft__frame *f, const struct weft_promise *p, size_t run, int x0, int x1, int y0, int y1)
{
	const struct weft_model *m = f->model;
	return f->tracks && weft__draw_run(f, m->run_streams ? m->run_streams[p->runs + run] : p->stream, x0, x1, y0, y1);
}

/* Draws the runs of a promise as solid, thick parts of its line. */
static void draw_runs(struct weft__frame *f, const struct weft_promise *p, int y, const struct style *style)
{
	struct weft_intervals runs = weft__runs_of(f, p);
	if (runs.count == 0)
		return;
	struct span span = {0};
	struct block s = {0};
	size_t i = weft__intervals_end_after(&runs, 0, f->from_ns), first = 0;
	bool more;
	do {
		more = next_span(f, &runs, f->cell, false, &i, &span);
		if (more && extend_block(&s, &span))
			continue;
		if (s.level > 0 || !draw_run(f, p, first, s.x0, s.x1, y - style->run_above, y + style->run_below))
			weft__rect(f, weft__ink(WEFT_LAYER_RUN, WEFT_PAINT_RUN, DENSITY[s.level]), s.x0, y - style->run_above,
			    s.x1, y + style->run_below);
		if (s.x1 - s.x0 >= BROAD_RUN_PX)
			weft__line_block(f, s.x0, y + style->line, s.x1, y + style->run_below);
		s = (struct block){span.x0, span.x1, span.level};
		first = span.first;
	} while (more);
}

static void add_vertical(struct weft__frame *f, double x, int y0, int y1)
{
	if (x < 0 || x >= f->width || y0 == y1)
		return;
	struct weft__vertical *v = weft_vec_push(&f->s->verticals);
	if (v)
		*v = (struct weft__vertical){weft__floor(x), y0 < y1 ? y0 : y1, y0 < y1 ? y1 : y0};
	else
		f->failed = true;
}

void weft__draw_relations(struct weft__frame *f, uint32_t promise, int y)
{
	const struct weft_promise *p = &f->model->promises[promise];
	const uint32_t *rows = f->layout->rows;
	if ((p->flags & WEFT_PROMISE_CREATION_DRAWN) && p->parent != WEFT_NONE && rows[p->parent] != WEFT_NONE)
		add_vertical(f, weft_view_x(f->view, p->start_ns), weft__row_y(f, rows[p->parent]), y);
	if (p->became != WEFT_NONE && rows[p->became] != WEFT_NONE && rows[p->became] != rows[promise])
		add_vertical(f, weft_view_x(f->view, p->end_ns), y, weft__row_y(f, rows[p->became]));
}

static void draw_bar(struct weft__frame *f, int x0, int x1, int y, const struct style *style)
{
	weft__rect(f, weft__ink(WEFT_LAYER_FAILED, WEFT_PAINT_FAILED, 255), x0, y - style->bar, x1, y + style->line + style->bar);
}

/* Draws the failure of a promise: a bar at the promise's end, and red before the bar.  If the promise never resolved, its whole
 * line is red.  If the failure was expected, the bar is not red. */
static void draw_failure(struct weft__frame *f, const struct weft_promise *p, int x0, int x1, int y, const struct style *style)
{
	if (!weft_promise_went_wrong(p)) {
		weft__rect(f, weft__ink(WEFT_LAYER_PROMISE, WEFT_PAINT_PROMISE, 255), x1 - 1, y - style->bar, x1 + 1,
		    y + style->line + style->bar);
		return;
	}
	if (!(p->flags & WEFT_PROMISE_NEVER_RESOLVED))
		x0 = x0 > x1 - WEFT__FAILED_PX ? x0 : x1 - WEFT__FAILED_PX;
	weft__rect(f, weft__ink(WEFT_LAYER_FAILED, WEFT_PAINT_FAILED, 255), x0, y, x1, y + style->line);
	draw_bar(f, x1 - 1, x1 + 1, y, style);
}

/* Returns the user-made fold that the promise leads (as its first promise), or NULL. */
static const struct weft_fold *fold_by_hand(const struct weft__frame *f, uint32_t promise)
{
	if (!f->index->folds || !(f->layout->leaders[promise / 64] >> promise % 64 & 1))
		return NULL;
	return weft_layout_fold(f->layout, promise);
}

/* A column of a fold's profile: its height, and the opacity of the lower part, which shows the running share. */
struct column {
	int height, run;
	bool failed;
};

static struct column column_of(const struct weft_fold_sum *sum, double peak, int high)
{
	int height = sum->alive > 0 ? weft__floor(sum->alive / peak * high + 0.5) : 0;
	int run = sum->running > 0 ? 64 + weft__floor((sum->running < 1 ? sum->running : 1) * 191) : 0;
	return (struct column){sum->alive > 0 && height < 1 ? 1 : height, run, sum->failed > 0};
}

/* Computes the sums on a fold's line for each column of pixels.  Returns NULL without memory. */
static const struct weft_fold_sum *sum_columns(struct weft__frame *f, size_t fold, int x0, int x1)
{
	struct weft_draw_scratch *s = f->s;
	size_t count = (size_t)(x1 - x0);
	s->fold_sums.count = s->fold_times.count = 0;
	if (!weft_vec_reserve(&s->fold_sums, count) || !weft_vec_reserve(&s->fold_times, count + 1)) {
		f->failed = true;
		return NULL;
	}
	for (int x = x0; x <= x1; x++)
		s->fold_times.items[x - x0] = weft_view_time(f->view, x);
	weft_view_sum_fold(f->view, fold, s->fold_times.items, count, s->fold_sums.items);
	return s->fold_sums.items;
}

/* Draws a fold's line pixel by pixel: above the line the number of promises in flight, relative to the visible maximum; on the
 * line the running share; and red where a promise failed. */
static void draw_profile(
    struct weft__frame *f, const struct weft__line *line, const struct style *style, const struct span *span, size_t fold)
{
	int x0 = span->x0 > 0 ? span->x0 : 0, x1 = span->x1 < f->width ? span->x1 : f->width;
	int high = line->above - 3 < PROFILE_PX ? line->above - 3 : PROFILE_PX;
	const struct weft_fold_sum *sums = x0 < x1 ? sum_columns(f, fold, x0, x1) : NULL;
	double peak = 1;
	high = high > 1 ? high : 1;
	for (int x = x0; sums && x < x1; x++)
		peak = sums[x - x0].alive > peak ? sums[x - x0].alive : peak;
	struct column now = {0};
	int since = x0;
	for (int x = x0; sums && x <= x1; x++) {
		struct column here = x < x1 ? column_of(&sums[x - x0], peak, high) : (struct column){-1, -1, false};
		if (here.failed)
			draw_bar(f, x, x + 2, line->y, style);
		if (here.height == now.height && here.run == now.run)
			continue;
		if (now.height > 0)
			weft__rect(
			    f, weft__ink(WEFT_LAYER_CREATION, WEFT_PAINT_PROMISE, 88), since, line->y - now.height, x, line->y);
		if (now.run > 0)
			weft__rect(f, weft__ink(WEFT_LAYER_RUN, WEFT_PAINT_RUN, now.run), since, line->y - 1, x, line->y + 3);
		now = here;
		since = x;
	}
}

static void draw_promise(struct weft__frame *f, const struct weft__line *line, const struct style *style, uint32_t promise,
    const struct span *span, double until, bool alone)
{
	const struct weft_promise *p = &f->model->promises[promise];
	const struct weft_fold *fold = fold_by_hand(f, promise);
	weft__line_put(f, 255, span->x0, line->y, span->x1, line->y + style->line);
	if (fold)
		draw_profile(f, line, style, span, (size_t)(fold - f->layout->folds));
	else
		draw_runs(f, p, line->y, style);
	weft__draw_relations(f, promise, line->y);
	if (p->end == WEFT_END_FAILED && !fold)
		draw_failure(f, p, span->x0, span->x1, line->y, style);
	else if (p->end == WEFT_END_PENDING && span->x1 - span->x0 > 8)
		weft__triangle(f, weft__ink(WEFT_LAYER_PROMISE, WEFT_PAINT_PROMISE, 255), span->x1, line->y + style->line / 2.0,
		    span->x1 - 7, line->y + style->line / 2.0, style->head);
	int x0 = span->x0 > 0 ? span->x0 : 0, x1 = span->x1 < f->width ? span->x1 : f->width;
	bool highlighted = weft_view_is_line_highlighted(f->view, promise);
	bool tight = line->above < LABEL_SPACE_PX;
	bool beside = x1 - x0 < SHORT_PX && span->x1 >= 0 && p[1].labels > p->labels && line->pitch >= BESIDE_PITCH_PX &&
		      until - span->x1 >= BESIDE_PX;
	if (x1 - x0 < (tight ? TIGHT_PX : 14) && !beside)
		return;
	struct weft__caption *c = weft_vec_push(&f->s->captions);
	if (!c) {
		f->failed = true;
		return;
	}
	*c = (struct weft__caption){.promise = promise,
	    .x0 = x0,
	    .x1 = x1,
	    .y = line->y,
	    .until = beside ? (int)until : x1,
	    .space = (int)line->pitch,
	    .important = weft_promise_went_wrong(p) && !fold,
	    .highlighted = highlighted,
	    .alone = alone,
	    .tight = tight};
}

/* Draws a bar at the end of each failed promise among merged promises; bars that touch are merged. */
static void draw_merged_failures(
    struct weft__frame *f, const struct weft__line *line, const struct style *style, size_t from, size_t to, struct block *bar)
{
	for (size_t i = from; i < to;) {
		uint64_t bits = f->index->important[i / 64] >> i % 64;
		if (!bits) {
			i = (i / 64 + 1) * 64;
			continue;
		}
		i += (size_t)__builtin_ctzll(bits);
		if (i >= to)
			break;
		int x = weft__floor(weft_view_x(f->view, f->index->lives[i++].end_ns));
		if (x > bar->x1 || x < bar->x0) {
			draw_bar(f, bar->x0, bar->x1, line->y, style);
			bar->x0 = x;
			bar->x1 = x;
		}
		bar->x1 = x + 2;
	}
}

static void draw_line(struct weft__frame *f, const struct weft__line *line)
{
	const struct style style = style_of(line->pitch);
	uint32_t begin = f->layout->row_begin[line->row];
	struct weft_intervals row = weft__row_intervals(f->index, f->layout, line->row);
	struct span span;
	struct block s = {0}, bar = {0};
	size_t i = weft__intervals_end_after(&row, 0, f->from_ns);
	if (i > 0 && weft__intervals_end(&row, i - 1) == f->from_ns)
		i--;
	const bool alone = weft__intervals_start_from(&row, i, f->to_ns) - i < 2;
	while (next_span(f, &row, f->cell, false, &i, &span)) {
		if (span.level == 0) {
			double until = i < row.count ? weft_view_x(f->view, weft__intervals_start(&row, i)) : f->width;
			draw_promise(f, line, &style, f->layout->by_row[begin + span.first], &span,
			    until < f->width ? until : f->width, alone);
			continue;
		}
		draw_merged_failures(f, line, &style, begin + span.first, begin + span.end, &bar);
		if (extend_block(&s, &span))
			continue;
		weft__line_put(f, DENSITY[s.level], s.x0, line->y, s.x1, line->y + style.line);
		s = (struct block){span.x0, span.x1, span.level};
	}
	weft__line_put(f, DENSITY[s.level], s.x0, line->y, s.x1, line->y + style.line);
	draw_bar(f, bar.x0, bar.x1, line->y, &style);
}

/* Orders vertical lines by column, so that overlapping lines can be merged and the frame is the same on every platform. */
static int compare_verticals(const void *a, const void *b)
{
	const struct weft__vertical *v = a, *w = b;
	return WEFT_ORDER(v->x, w->x) ?: WEFT_ORDER(v->y0, w->y0) ?: WEFT_ORDER(v->y1, w->y1);
}

static void draw_verticals(struct weft__frame *f)
{
	struct weft__vertical *v = f->s->verticals.items;
	size_t count = f->s->verticals.count, merged = 0;
	if (count == 0)
		return;
	weft_sort(v, count, sizeof *v, compare_verticals);
	int columns = 0;
	for (size_t i = 0, j; i < count; i = j) {
		struct weft__vertical one = v[i];
		for (j = i + 1; j < count && v[j].x == one.x && v[j].y0 <= one.y1; j++)
			one.y1 = v[j].y1 > one.y1 ? v[j].y1 : one.y1;
		columns += merged == 0 || v[merged - 1].x != one.x;
		v[merged++] = one;
	}
	/* Vertical lines that are close together would hide everything, so they are drawn transparent. */
	int close = f->width / 8 + 1;
	assert(close > 0);
	int alpha = columns <= close ? 255 : 255 * close / columns;
	for (size_t i = 0; i < merged; i++) {
		weft__rect(f, weft__ink(WEFT_LAYER_CREATION, WEFT_PAINT_CREATION, alpha > 40 ? alpha : 40), v[i].x, v[i].y0,
		    v[i].x + 1, v[i].y1 + 1);
		weft__cross_put(f, v[i].x, v[i].y0, v[i].x, v[i].y1);
	}
}

int weft__row_y(const struct weft__frame *f, uint32_t row)
{
	return weft__floor(weft_view_y(f->view, weft_view_slot(f->view, row)));
}

static double pitch_of(const struct weft__frame *f, uint32_t row)
{
	double slot = weft_view_slot(f->view, row);
	return weft_view_y(f->view, slot + 0.5) - weft_view_y(f->view, slot - 0.5);
}

static bool is_high(const struct weft__frame *f, uint32_t rank)
{
	return pitch_of(f, weft_view_row_of_rank(f->view, rank)) >= WEFT__ROW_PX;
}

/* Finds the rows that are high enough to be drawn one by one.  These rows are contiguous, around the focus; rows without height
 * may be on either side of the border. */
static void find_lines(struct weft__frame *f)
{
	uint32_t rows = f->layout->row_count, shown = weft_view_rank(f->view, rows), first, end;
	uint32_t middle = weft_view_row_at(f->view, weft_view_y(f->view, f->view->focus));
	size_t seen_count = 0;
	f->cell = WEFT__CELL_PX;
	f->s->lines.count = 0;
	if (middle == WEFT_NONE) /* a header is in focus, and no row */
		middle = weft_view_row_at(f->view, weft_view_y(f->view, f->view->focus + 1));
	first = end = middle == WEFT_NONE ? 0 : weft_view_rank(f->view, middle);
	while (first > 0 && is_high(f, first - 1))
		first--;
	while (end < shown && is_high(f, end))
		end++;
	f->first_line_row = first > 0 ? weft_view_row_of_rank(f->view, first) : 0;
	f->end_line_row = end < shown ? weft_view_row_of_rank(f->view, end) : rows;
	for (uint32_t r = weft_view_next_shown(f->view, f->first_line_row); r < f->end_line_row;
	     r = weft_view_next_shown(f->view, r + 1)) {
		struct weft__line *line = weft_vec_push(&f->s->lines);
		if (!line) {
			f->failed = true;
			return;
		}
		int y = weft__row_y(f, r);
		int above = f->s->lines.count > 1 ? y - line[-1].y : first > 0 ? (int)pitch_of(f, r) : y;
		*line = (struct weft__line){.row = r, .y = y, .above = above, .pitch = pitch_of(f, r)};
		struct weft_intervals row = weft__row_intervals(f->index, f->layout, r);
		size_t from = weft__intervals_end_after(&row, 0, f->from_ns);
		seen_count += weft__intervals_start_from(&row, from, f->to_ns) - from;
	}
	f->cell = seen_count > CROWD ? 2 * WEFT__CELL_PX : WEFT__CELL_PX;
}

/* Draws a highlight on a row that is drawn by itself.  A highlight that is too short to be visible behind its line is drawn in
 * front of the line. */
static void highlight_line(struct weft__frame *f, const struct weft__line *line, uint32_t promise, int64_t start_ns,
    int64_t end_ns, uint64_t *seen_count)
{
	int x0 = weft__floor(weft_view_x(f->view, start_ns)), x1 = weft__floor(weft_view_x(f->view, end_ns));
	int half = line->pitch >= 12 ? 4 : line->pitch >= 6 ? 3 : 2;
	if (x1 < -4 || x0 > f->width + 4)
		return;
	if (x1 - x0 < 8) {
		int cell = (x0 + 16) / 4;
		if (seen_count[cell / 64] >> cell % 64 & 1)
			return;
		seen_count[cell / 64] |= 1ull << cell % 64;
	}
	const enum weft_layer layer = x1 - x0 < 8 ? WEFT_LAYER_MARK : WEFT_LAYER_HIGHLIGHT;
	if (f->view->found > WEFT__MANY_FOUND) {
		const int below = line->y + style_of(line->pitch).line;
		weft__rect(f, weft__ink(layer, WEFT_PAINT_HIGHLIGHT, 255), x0, below, x1 > x0 + 2 ? x1 : x0 + 2,
		    below + (line->pitch >= 6 ? 2 : 1));
		return;
	}
	weft__rect(f, weft__ink(layer, WEFT_PAINT_HIGHLIGHT, 255), x0 - 3, line->y - half, x1 + 3, line->y + half + 2);
	uint32_t became = f->model->promises[promise].became;
	if (became == WEFT_NONE || !weft_view_is_highlighted(f->view, became) || f->layout->rows[became] == WEFT_NONE)
		return;
	int y = weft__row_y(f, f->layout->rows[became]);
	if (y != line->y)
		weft__rect(f, weft__ink(WEFT_LAYER_HIGHLIGHT, WEFT_PAINT_HIGHLIGHT, 255), x1 - 3,
		    (y < line->y ? y : line->y) - half, x1 + 4, (y < line->y ? line->y : y) + half + 2);
}

static void highlight_on(
    struct weft__frame *f, uint32_t row, uint32_t promise, int64_t start_ns, int64_t end_ns, uint64_t *seen_count, size_t cells)
{
	uint32_t line = weft_view_rank(f->view, row) - weft_view_rank(f->view, f->first_line_row);
	if (!weft_view_is_shown(f->view, row))
		return;
	if (row >= f->first_line_row && row < f->end_line_row)
		highlight_line(f, &f->s->lines.items[line], promise, start_ns, end_ns, seen_count + line * cells);
	else
		weft__strip_highlight(f, weft__row_y(f, row), weft_view_x(f->view, start_ns), weft_view_x(f->view, end_ns));
}

/* Draws the highlights of a low row from index i on; adjacent highlights are merged. */
static void highlight_low_row(struct weft__frame *f, uint32_t row, const struct weft_intervals *t, size_t i)
{
	const uint32_t *promises = f->layout->by_row + f->layout->row_begin[row];
	double x0 = 0, x1 = 0;
	bool any = false;
	int y = weft__row_y(f, row);
	for (; i < t->count && weft__intervals_start(t, i) <= f->to_ns; i++) {
		if (!weft_view_is_line_highlighted(f->view, promises[i]))
			continue;
		double from = weft_view_x(f->view, weft__intervals_start(t, i));
		if (any && from > x1 + WEFT__CELL_PX) {
			weft__strip_highlight(f, y, x0, x1);
			any = false;
		}
		x0 = any ? x0 : from;
		x1 = weft_view_x(f->view, weft__intervals_end(t, i));
		any = true;
	}
	if (any)
		weft__strip_highlight(f, y, x0, x1);
}

static void draw_highlights(struct weft__frame *f)
{
	size_t words = f->model->promise_count / 64 + 1, cells = (size_t)f->width / 256 + 2;
	if (f->view->found == 0)
		return;
	f->s->highlighted.count = 0;
	if (!weft_vec_reserve(&f->s->highlighted, f->s->lines.count * cells + 1)) {
		f->failed = true;
		return;
	}
	uint64_t *seen_count = f->s->highlighted.items;
	memset(seen_count, 0, f->s->lines.count * cells * sizeof *seen_count);
	/* A few highlighted promises are looked up one by one; if there are many, each row is searched for visible
	 * highlights. */
	if (f->view->found < f->index->count / 16) {
		for (size_t w = 0; w < words; w++) {
			for (uint64_t bits = f->view->highlight[w]; bits; bits &= bits - 1) {
				uint32_t promise = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(bits));
				const struct weft_promise *p = &f->model->promises[promise];
				if (f->layout->rows[promise] != WEFT_NONE)
					highlight_on(
					    f, f->layout->rows[promise], promise, p->start_ns, p->end_ns, seen_count, cells);
			}
		}
		return;
	}
	for (uint32_t r = weft_view_next_shown(f->view, 0); r < f->layout->row_count; r = weft_view_next_shown(f->view, r + 1)) {
		struct weft_intervals row = weft__row_intervals(f->index, f->layout, r);
		size_t begin = f->layout->row_begin[r], i = weft__intervals_end_after(&row, 0, f->from_ns);
		if (r < f->first_line_row || r >= f->end_line_row) {
			highlight_low_row(f, r, &row, i > 0 ? i - 1 : 0);
			continue;
		}
		for (i = i > 0 ? i - 1 : 0; i < row.count && weft__intervals_start(&row, i) <= f->to_ns; i++) {
			uint32_t promise = f->layout->by_row[begin + i];
			if (weft_view_is_line_highlighted(f->view, promise))
				highlight_on(f, r, promise, weft__intervals_start(&row, i), weft__intervals_end(&row, i),
				    seen_count, cells);
		}
	}
}

void weft__draw_promises(struct weft__frame *f)
{
	f->s->verticals.count = 0;
	f->s->captions.count = 0;
	find_lines(f);
	if (!weft__strips_begin(f))
		return;
	draw_highlights(f);
	for (size_t i = 0; i < f->s->lines.count; i++)
		draw_line(f, &f->s->lines.items[i]);
	weft__strips_draw(f);
	draw_verticals(f);
}
