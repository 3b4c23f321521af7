/* strips.c: draws rows that are too low to be distinguished, as densities in strips of a few px.
 *
 * A box of promises is added as a whole if it fits into a cell, or if so many rows overlap that gaps between its promises are
 * not visible.  SPDX-License-Identifier: ISC */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/search.h"
#include "draw/lines.h"

/* Planes hold sums for each cell, stored as differences to the cell on the left until a strip is drawn; marks are one bit for
 * each cell. */
enum plane {
	ALIVE = WEFT_SUM_ALIVE,
	RUN = WEFT_SUM_RUN,
	NEVER = WEFT_SUM_NEVER,
	WRONG_ENDS = WEFT_SUM_WRONG_ENDS,
	PLANES = WEFT_SUMS
};
enum mark { FAILED, HIGHLIGHT, MARKS };

static_assert(WEFT__BOX_FAN == 4, "WEFT__BOX_SIZE()");

#define BLUR_CELLS 32  /* maximum number of cells over which a box may be spread */
#define EVEN 0.85      /* covered part from which on a box counts as fully covered */
#define SPARSE_ROWS 4  /* maximum number of rows in a strip in which runs and relations of each promise are drawn */
#define WIDE_PX 24     /* minimum length in px of a promise whose runs and relations are drawn */
#define MAX_CHANGES 64 /* maximum number of changes of opacity in one plane of a strip */
#define MAX_GRAIN 4    /* maximum number of cells that are merged to reduce changes of opacity */
#define AT_ONCE 8      /* cells examined together */
#define SLICE_PX 4     /* width in px above which slices of time would make sums look blurred */

struct strips {
	uint32_t *planes; /* all planes of all strips, strip after strip; differences wrap around */
	uint32_t unit;    /* value of one row over a whole cell */
	uint64_t *marks;  /* one bit for each cell; all marks of all strips, strip after strip */
	size_t words;     /* number of words of one mark of a strip */
	double *rows;     /* number in each strip */
	uint32_t *begin;  /* first row of each strip; the last element is the end of all rows */
	int at;           /* strip that the last query found */
	/* Number of cells, plus one more and a flag that the plane is in use; without the flag, the plane's contents are
	 * undefined. */
	size_t columns;
	int count;
};

static struct strips strips_of(struct weft__frame *f)
{
	size_t columns = (size_t)(f->width / WEFT__CELL_PX) + 3;
	return (struct strips){.planes = f->s->planes.items,
	    .unit = f->layout->row_count < 4000000 ? 256 : 4,
	    .marks = f->s->strip_marks.items,
	    .words = columns / 64 + 1,
	    .rows = f->s->strip_rows.items,
	    .begin = f->s->strip_begin.items,
	    .columns = columns,
	    .count = f->height / WEFT__STRIP_PX + 1};
}

static int strip_at(int y)
{
	return y < 0 ? 0 : y / WEFT__STRIP_PX;
}

/* Returns the strip that contains a row; `count` if the row is below all strips.  The search starts near the strip of the
 * previous query. */
static int strip_of(struct strips *s, uint32_t row)
{
	while (s->begin[s->at] > row)
		s->at--;
	while (s->at < s->count && s->begin[s->at + 1] <= row)
		s->at++;
	return s->at;
}

/* Returns the first row at or below height y.  The result is at least `above`. */
static uint32_t row_from(const struct weft__frame *f, uint32_t above, int y)
{
	uint32_t in = weft_view_row_at(f->view, y), rank = in == WEFT_NONE ? 0 : weft_view_rank(f->view, in);
	uint32_t from = rank > 0 ? weft_view_row_of_rank(f->view, rank - 1) + 1 : 0;
	from = from > above ? from : above;
	return (uint32_t)WEFT_FIND_FIRST_NEAR(r, from, f->layout->row_count, weft__row_y(f, (uint32_t)r) >= y);
}

/* Returns whether a strip can be drawn from sums: it has enough rows to move its edges to blocks, or contains the first or last
 * row; and it has so few rows that sums do not wrap around. */
static bool is_summable(const struct strips *s, const struct weft_sums *sums, int strip)
{
	const double least = (double)(4u << sums->block_shift), most = (double)INT32_MAX / ((double)sums->slices * sums->unit);
	const uint32_t rows = s->begin[strip + 1] - s->begin[strip];
	const bool is_outmost = s->begin[strip] == 0 || s->begin[strip + 1] == s->begin[s->count];
	return rows <= most && (is_outmost || (rows >= least && s->rows[strip] >= least));
}

/* Moves the first row of a strip, and of the empty strips above it, to the nearest start of a block, by at most an eighth of a
 * strip. */
static void snap_to_block(struct weft__frame *f, struct strips *s, int strip)
{
	const unsigned shift = f->index->sums.block_shift;
	const uint32_t from = s->begin[strip], near = (from + (1u << shift >> 1)) >> shift << shift;
	const uint32_t to = from == s->begin[s->count] || near > s->begin[s->count] ? s->begin[s->count] : near;
	const double more = (double)weft_view_rank(f->view, to) - (double)weft_view_rank(f->view, from);
	s->begin[strip] = to;
	s->rows[strip - 1] += more;
	s->rows[strip] -= more;
}

/* Chooses strips at the top and bottom, which have the most rows, to be drawn from sums, unless slices of time are too wide. */
static void choose_summed(struct weft__frame *f, struct strips *s)
{
	const struct weft_sums *sums = &f->index->sums;
	int above = 0, below = s->count;
	if (sums->sums && (double)((uint64_t)1 << sums->slice_shift) * f->view->px_per_ns <= SLICE_PX &&
	    s->begin[s->count] == f->layout->row_count) {
		while (above < s->count && is_summable(s, sums, above))
			above++;
		while (below > above && is_summable(s, sums, below - 1))
			below--;
		for (int i = 1; i < above; i++)
			snap_to_block(f, s, i);
		for (int i = below + 1; i < s->count; i++)
			snap_to_block(f, s, i);
		/* The edge to the first strip that is not summable is not moved to a block, so the strip before this edge is not
		 * drawn from sums. */
		above -= above > 0 && above < s->count;
		below += below < s->count && above < below;
	}
	f->s->summed_above = above;
	f->s->summed_below = below;
}

static bool is_summed(const struct weft__frame *f, int strip)
{
	return strip < f->s->summed_above || strip >= f->s->summed_below;
}

bool weft__strips_begin(struct weft__frame *f)
{
	struct strips s = strips_of(f);
	if (f->end_line_row - f->first_line_row == f->layout->row_count)
		return true;
	size_t cells = PLANES * (size_t)s.count * s.columns;
	size_t words = MARKS * (size_t)s.count * s.words;
	f->s->planes.count = f->s->strip_rows.count = f->s->strip_begin.count = f->s->strip_marks.count = 0;
	if (!weft_vec_reserve(&f->s->planes, cells) || !weft_vec_reserve(&f->s->strip_rows, s.count) ||
	    !weft_vec_reserve(&f->s->strip_begin, s.count + 1) || !weft_vec_reserve(&f->s->strip_marks, words)) {
		f->failed = true;
		return false;
	}
	memset(f->s->strip_marks.items, 0, words * sizeof *f->s->strip_marks.items);
	for (size_t i = 0; i < PLANES * (size_t)s.count; i++)
		f->s->planes.items[(i + 1) * s.columns - 1] = 0;
	double above = weft_view_slot_at(f->view, 0);
	for (int i = 0; i < s.count; i++) {
		double below = weft_view_slot_at(f->view, (i + 1) * WEFT__STRIP_PX);
		f->s->strip_rows.items[i] = below - above;
		above = below;
	}
	uint32_t *begin = f->s->strip_begin.items;
	begin[0] = 0;
	for (int i = 1; i <= s.count; i++)
		begin[i] = row_from(f, begin[i - 1], i * WEFT__STRIP_PX);
	s = strips_of(f);
	choose_summed(f, &s);
	return true;
}

static uint32_t *row_of(const struct strips *s, enum plane plane, int strip)
{
	uint32_t *row = s->planes + ((size_t)strip * PLANES + (size_t)plane) * s->columns;
	if (!row[s->columns - 1]) {
		memset(row, 0, s->columns * sizeof *row);
		row[s->columns - 1] = 1;
	}
	return row;
}

/* Range of cells from c0 to c1; `seen` says whether any of them is visible. */
struct cells {
	int c0, c1;
	bool seen;
};

/* Returns x / 2 rounded down, for x within -1e6 .. 1e6. */
static inline int cell_at(double x)
{
	static_assert(WEFT__CELL_PX == 2, "cell_at() divides by the width of a cell with a shift by one bit");
	int i = (int)x;
	return (i - (x < i)) >> 1;
}

static inline struct cells cells_of(const struct strips *s, double x0, double x1)
{
	int c0 = cell_at(x0), c1 = cell_at(x1);
	return (struct cells){c0, c1, c1 >= 0 && c0 <= (int)s->columns - 3};
}

static inline void add_to(uint32_t *row, int last, struct cells c, uint32_t each)
{
	row[c.c0 > 0 ? c.c0 : 0] += each;
	row[(c.c1 < last ? c.c1 : last) + 1] -= each;
}

/* Adds a value to each cell of the range. */
static void add_cells(const struct strips *s, enum plane plane, int strip, struct cells c, uint32_t each)
{
	add_to(row_of(s, plane, strip), (int)s->columns - 3, c, each);
}

/* Returns the share of `amount`, in rows times cells, for each cell of the range. */
static inline uint32_t cell_share(double unit, struct cells c, double amount)
{
	amount *= unit;
	amount = c.c1 == c.c0 ? amount : amount / (c.c1 - c.c0 + 1);
	return 1 + (uint32_t)(amount < 1e9 ? amount : 1e9);
}

static void add_amount(struct strips *s, enum plane plane, int strip, double x0, double x1, double amount)
{
	struct cells c = cells_of(s, x0, x1);
	if (c.seen && strip < s->count)
		add_cells(s, plane, strip, c, cell_share(s->unit, c, amount));
}

static uint64_t *marks_of(const struct strips *s, enum mark mark, int strip)
{
	return s->marks + ((size_t)strip * MARKS + (size_t)mark) * s->words;
}

static void set_marks(const struct strips *s, enum mark mark, int strip, int c0, int c1)
{
	uint64_t *bits = marks_of(s, mark, strip);
	int last = (int)s->columns - 3;
	c0 = c0 > 0 ? c0 : 0;
	c1 = c1 < last ? c1 : last;
	for (int w = c0 / 64; w <= c1 / 64 && c0 <= c1; w++) {
		uint64_t mask = c1 / 64 > w ? UINT64_MAX : UINT64_MAX >> (63 - c1 % 64);
		bits[w] |= w > c0 / 64 ? mask : mask & UINT64_MAX << c0 % 64;
	}
}

static bool is_dense(const struct strips *s, int strip)
{
	return s->rows[strip] > SPARSE_ROWS;
}

static inline void add_end(uint32_t *ends, unsigned cell, uint32_t amount)
{
	ends[cell] += amount;
	ends[cell + 1] -= amount;
}

/* Adds a bar at the end of promises that failed, and the red line before it.  If the promises never resolved, the whole line is
 * red; else the line is drawn only if there is space for lines. */
static void add_failures_of(const struct strips *s, int strip, struct cells c, bool never_came, size_t count)
{
	int c0 = c.c1 - WEFT__FAILED_PX / WEFT__CELL_PX;
	if (c.c1 <= (int)s->columns - 3)
		add_end(row_of(s, WRONG_ENDS, strip), (unsigned)c.c1, (uint32_t)count * s->unit);
	if (never_came)
		add_cells(s, NEVER, strip, c, s->unit);
	else if (!is_dense(s, strip))
		set_marks(s, FAILED, strip, c0 > c.c0 ? c0 : c.c0, c.c1);
}

void weft__strip_highlight(struct weft__frame *f, int y, double x0, double x1)
{
	struct strips s = strips_of(f);
	struct cells c = cells_of(&s, x0, x1);
	if (c.seen && strip_at(y) < s.count)
		set_marks(&s, HIGHLIGHT, strip_at(y), c.c0, c.c1);
}

static bool is_line(const struct weft__frame *f, uint32_t row)
{
	return row >= f->first_line_row && row < f->end_line_row;
}

/* Returns the bits of a word from bit i up to bit `end` or the end of the word. */
static uint64_t bits_within(uint64_t word, size_t i, size_t end)
{
	word &= UINT64_MAX << i % 64;
	return end < (i / 64 + 1) * 64 ? word & ((1ull << end % 64) - 1) : word;
}

/* Adds the failures among the promises at positions i up to `end`, all of which are in one strip. */
static void add_failures(struct weft__frame *f, struct strips *s, int strip, size_t i, size_t end)
{
	const struct weft_index *x = f->index;
	end = end < x->count ? end : x->count;
	const struct weft_lifetime *life = x->went_wrong + weft__went_wrong_before(x, i);
	for (; i < end; i = (i / 64 + 1) * 64) {
		for (uint64_t bits = bits_within(x->important[i / 64], i, end); bits; bits &= bits - 1, life++) {
			size_t at = i / 64 * 64 + (size_t)__builtin_ctzll(bits);
			struct cells c = cells_of(s, weft_view_x(f->view, life->start_ns), weft_view_x(f->view, life->end_ns));
			if (c.seen)
				add_failures_of(s, strip, c, x->never[at / 64] >> at % 64 & 1, 1);
		}
	}
}

/* Adds failures as add_failures() does, for promises that are completely visible while no sleep is folded: then nothing is
 * clipped, and x is linear in time.  The speed of this loop matters if all promises fail. */
static void add_whole_failures(struct weft__frame *f, const struct strips *s, int strip, size_t i, size_t end)
{
	enum { LINE = WEFT__FAILED_PX / WEFT__CELL_PX };
	static_assert(LINE < 64, "the cells of a failure line are bits of at most two 64-bit words");
	const struct weft_index *x = f->index;
	const struct weft_lifetime *life = x->went_wrong + weft__went_wrong_before(x, i);
	const int64_t from_ns = f->view->from_ns;
	const double px_per_ns = f->view->px_per_ns;
	const bool dense = is_dense(s, strip);
	uint32_t *ends = row_of(s, WRONG_ENDS, strip);
	uint64_t *lines = marks_of(s, FAILED, strip);
	for (unsigned last_c0 = 0, last_c1 = UINT_MAX; i < end; i = (i / 64 + 1) * 64) {
		const uint64_t never = x->never[i / 64];
		for (uint64_t bits = bits_within(x->important[i / 64], i, end); bits; bits &= bits - 1, life++) {
			const unsigned c0 = (unsigned)(int)((double)(life->start_ns - from_ns) * px_per_ns) / WEFT__CELL_PX,
				       c1 = (unsigned)(int)((double)(life->end_ns - from_ns) * px_per_ns) / WEFT__CELL_PX;
			if (never >> __builtin_ctzll(bits) & 1) {
				add_failures_of(s, strip, (struct cells){(int)c0, (int)c1, true}, true, 1);
				continue;
			}
			add_end(ends, c1, s->unit);
			if (dense || c0 == c1 || (c1 == last_c1 && c0 >= last_c0))
				continue; /* the bar has no red line, or another line covers that line */
			last_c0 = c0;
			last_c1 = c1;
			const unsigned first = c1 - c0 < LINE ? c0 : c1 - LINE;
			const uint64_t from = UINT64_MAX << first % 64, to = UINT64_MAX >> (63 - c1 % 64);
			if (first / 64 == c1 / 64) {
				lines[c1 / 64] |= from & to;
			} else {
				lines[first / 64] |= from;
				lines[c1 / 64] |= to;
			}
		}
	}
}

/* Adds a box of promises as a whole if that looks the same as adding its promises one by one; each failure is still added by
 * itself. */
static bool add_box(struct weft__frame *f, struct strips *s, int level, size_t at)
{
	const struct weft_box *box = &f->index->boxes[level][at];
	if (!(box->last_row < f->first_line_row || box->first_row >= f->end_line_row))
		return false;
	int strip = strip_of(s, box->first_row);
	if (strip >= s->count)
		return true;
	if (box->last_row >= s->begin[strip + 1])
		return false;
	double x0 = weft_view_x(f->view, box->start_ns), x1 = weft_view_x(f->view, box->end_ns);
	double wide = WEFT__CELL_PX, rows = s->rows[strip];
	/* Gaps between promises are invisible if many rows share a strip, or if there are hardly any gaps. */
	if (rows > 2) {
		wide *= rows < BLUR_CELLS ? rows : BLUR_CELLS;
		if ((double)box->alive_ns >
		    EVEN * (box->last_row - box->first_row + 1) * ((double)box->end_ns - (double)box->start_ns))
			wide = 1e9;
	}
	if (x1 - x0 > wide)
		return false;
	/* If sleep is folded, the scale is an average over the box. */
	double px_per_ns = f->view->lulls ? (x1 - x0) / ((double)box->end_ns - (double)box->start_ns) : f->view->px_per_ns;
	double cells_per_ns = px_per_ns / WEFT__CELL_PX;
	add_amount(s, ALIVE, strip, x0, x1, (double)box->alive_ns * cells_per_ns);
	if (box->run_ns)
		add_amount(s, RUN, strip, x0, x1, (double)box->run_ns * cells_per_ns);
	struct cells c = cells_of(s, x0, x1);
	if (!c.seen)
		return true;
	size_t size = WEFT__BOX_SIZE(level), first = at * size;
	size_t end = first + size < f->index->count ? first + size : f->index->count;
	if (box->important && c.c1 - c.c0 <= 1) {
		add_failures_of(s, strip, c, f->index->never[first / 64] >> first % 64 & 1,
		    weft__went_wrong_before(f->index, end) - weft__went_wrong_before(f->index, first));
	} else if (box->important) {
		if (x0 >= 0 && x1 < f->width && !f->view->lulls)
			add_whole_failures(f, s, strip, first, end);
		else
			add_failures(f, s, strip, first, end);
	}
	return true;
}

/* Adds the creator and the runs of one promise in a strip with few rows. */
static void add_details(struct weft__frame *f, struct strips *s, uint32_t promise, int strip, int y)
{
	const struct weft_promise *p = &f->model->promises[promise];
	struct weft_intervals runs = weft__runs_of(f, p);
	weft__draw_relations(f, promise, y);
	for (size_t r = weft__intervals_end_after(&runs, 0, f->from_ns);
	     r < runs.count && weft__intervals_start(&runs, r) <= f->to_ns;) {
		double from = weft_view_x(f->view, weft__intervals_start(&runs, r));
		int64_t cell_end = weft_view_time(f->view, (weft__floor(from / WEFT__CELL_PX) + 1) * WEFT__CELL_PX);
		size_t end = weft__intervals_start_from(&runs, r + 1, cell_end);
		double to = weft_view_x(f->view, weft__intervals_end(&runs, end - 1));
		add_amount(s, RUN, strip, from, to, (double)(runs.busy[end] - runs.busy[r]) * f->view->px_per_ns / WEFT__CELL_PX);
		r = end;
	}
}

/* Adds promises of one row, at positions i up to `end`, to the sums of a strip with many rows.  All these promises are
 * completely visible and no sleep is folded, so nothing is clipped, and x is linear in time.  The speed of this loop matters if
 * there are many short promises.  `run_fraction` is the running part of the promises' time. */
static void add_whole_row(struct weft__frame *f, const struct strips *s, int strip, size_t i, size_t end, double run_fraction)
{
	const struct weft_lifetime *lives = f->index->lives;
	const int64_t from_ns = f->view->from_ns;
	const double px_per_ns = f->view->px_per_ns, unit = s->unit;
	uint32_t *alive_row = row_of(s, ALIVE, strip), *run_row = run_fraction > 0 ? row_of(s, RUN, strip) : NULL;
	for (; i < end; i++) {
		double x0 = (double)(lives[i].start_ns - from_ns) * px_per_ns,
		       x1 = (double)(lives[i].end_ns - from_ns) * px_per_ns;
		int c0 = (int)x0 >> 1, c1 = (int)x1 >> 1;
		uint32_t alive = cell_share(unit, (struct cells){c0, c1, true}, (x1 - x0) / WEFT__CELL_PX);
		alive_row[c0] += alive;
		alive_row[c1 + 1] -= alive;
		if (run_row) {
			uint32_t ran = (uint32_t)(alive * run_fraction);
			run_row[c0] += ran;
			run_row[c1 + 1] -= ran;
		}
	}
}

/* Adds promises of one row, at positions i up to `end`, which may be partly visible or in a strip of few rows. */
static void add_some_promises(
    struct weft__frame *f, struct strips *s, uint32_t row, int strip, size_t i, size_t end, double run_fraction)
{
	const struct weft_index *x = f->index;
	const int last = (int)s->columns - 3;
	const bool dense = is_dense(s, strip);
	uint32_t *alive_row = row_of(s, ALIVE, strip), *run_row = run_fraction > 0 ? row_of(s, RUN, strip) : NULL;
	for (; i < end; i++) {
		double x0 = weft_view_x(f->view, x->lives[i].start_ns), x1 = weft_view_x(f->view, x->lives[i].end_ns);
		struct cells c = cells_of(s, x0, x1);
		if (!c.seen)
			continue;
		uint32_t alive = cell_share(s->unit, c, (x1 - x0) / WEFT__CELL_PX);
		add_to(alive_row, last, c, alive);
		if (!dense && x1 - x0 >= WIDE_PX)
			add_details(f, s, f->layout->by_row[i], strip, weft__row_y(f, row));
		else if (run_row)
			add_to(run_row, last, c, (uint32_t)(alive * run_fraction));
	}
}

/* Properties of adjacent promises. */
struct lot {
	double run_fraction; /* running part of the promises' time */
	bool important;      /* whether one of the promises went wrong */
	bool is_whole;       /* whether each of the promises is completely visible and no sleep is folded */
};

static void add_row_part(
    struct weft__frame *f, struct strips *s, uint32_t row, int strip, size_t i, size_t end, const struct lot *lot)
{
	if (lot->important)
		add_failures(f, s, strip, i, end);
	add_some_promises(f, s, row, strip, i, end, lot->run_fraction);
}

/* Adds promises of one row, at positions i up to `end`, to the sums of their strip.  Promises of one row do not overlap, so the
 * visible promises are contiguous, and so are the completely visible ones among them. */
static void add_row(struct weft__frame *f, struct strips *s, uint32_t row, size_t i, size_t end, const struct lot *lot)
{
	const struct weft_index *x = f->index;
	const int strip = strip_of(s, row);
	if (strip >= s->count)
		return;
	size_t whole = i, whole_end = end;
	if (!lot->is_whole) {
		i = WEFT_FIND_FIRST(k, i, end, x->lives[k].end_ns >= f->from_ns);
		end = WEFT_FIND_FIRST(k, i, end, x->lives[k].start_ns > f->to_ns);
	}
	if (s->rows[strip] <= SPARSE_ROWS || f->view->lulls) {
		add_row_part(f, s, row, strip, i, end, lot);
		return;
	}
	if (!lot->is_whole) {
		whole = WEFT_FIND_FIRST(k, i, end, x->lives[k].start_ns >= f->view->from_ns);
		whole_end = WEFT_FIND_FIRST(k, whole, end, weft_view_x(f->view, x->lives[k].end_ns) >= f->width);
	}
	if (i < whole)
		add_row_part(f, s, row, strip, i, whole, lot);
	if (whole < whole_end && lot->important)
		add_whole_failures(f, s, strip, whole, whole_end);
	if (whole < whole_end)
		add_whole_row(f, s, strip, whole, whole_end, lot->run_fraction);
	if (whole_end < end)
		add_row_part(f, s, row, strip, whole_end, end, lot);
}

static void add_promises(struct weft__frame *f, struct strips *s, size_t box)
{
	const struct weft_box *b = &f->index->boxes[0][box];
	size_t i = box * WEFT__BOX_PROMISES, end = i + WEFT__BOX_PROMISES;
	double run_fraction = b->alive_ns > 0 ? (double)b->run_ns / (double)b->alive_ns : 0;
	const struct lot lot = {
	    .run_fraction = run_fraction < 1 ? run_fraction : 1,
	    .important = b->important,
	    .is_whole = !f->view->lulls && b->start_ns >= f->view->from_ns && weft_view_x(f->view, b->end_ns) < f->width,
	};
	end = end < f->index->count ? end : f->index->count;
	for (uint32_t row = b->first_row; i < end; row++) {
		size_t row_end = f->layout->row_begin[row + 1] < end ? f->layout->row_begin[row + 1] : end;
		if (row_end > i && !is_line(f, row) && weft_view_is_shown(f->view, row) && !is_summed(f, strip_of(s, row)))
			add_row(f, s, row, i, row_end, &lot);
		i = row_end > i ? row_end : i;
	}
}

/* Loads memory that will be needed soon, because waiting for memory takes longer than all other work.  The function uses a
 * volatile load, because WebAssembly has no prefetch instruction. */
static inline void prefetch_sum(const int64_t *where)
{
	(void)*(const volatile int64_t *)where;
}

/* Queue of boxes that must be examined.  The boxes are scattered in memory, so many of them are loaded at once. */
struct queue {
	size_t boxes[32], count;
};

static void add_queue(struct weft__frame *f, struct strips *s, struct queue *q)
{
	enum { STEP = 4 }; /* number of sums in a cache line */
	const struct weft_index *x = f->index;
	for (size_t k = 0; k < q->count; k++)
		for (size_t i = 0; i < WEFT__BOX_PROMISES; i += STEP) {
			const size_t at = q->boxes[k] * WEFT__BOX_PROMISES + i;
			prefetch_sum(&x->lives[at < x->count ? at : 0].end_ns);
		}
	for (size_t k = 0; k < q->count; k++)
		add_promises(f, s, q->boxes[k]);
	q->count = 0;
}

static void add_boxes(struct weft__frame *f, struct strips *s)
{
	struct queue queue = {.count = 0};
	const uint32_t first_row = s->begin[f->s->summed_above], end_row = s->begin[f->s->summed_below];
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
		if (box->end_ns < f->from_ns || box->start_ns > f->to_ns || box->last_row < first_row ||
		    box->first_row >= end_row || (is_line(f, box->first_row) && is_line(f, box->last_row)) ||
		    add_box(f, s, level, at))
			continue;
		if (level == 0) {
			queue.boxes[queue.count++] = at;
			if (queue.count == sizeof queue.boxes / sizeof *queue.boxes)
				add_queue(f, s, &queue);
			continue;
		}
		size_t end = (at + 1) * WEFT__BOX_FAN;
		end = end < f->index->box_count[level - 1] ? end : f->index->box_count[level - 1];
		for (size_t child = at * WEFT__BOX_FAN; child < end; child++) {
			stack[height].level = level - 1;
			stack[height++].box = child;
		}
	}
	add_queue(f, s, &queue);
}

/* Computes the slices of time in which cells start.  Returns false without memory. */
static bool find_edges(struct weft__frame *f, const struct strips *s)
{
	const struct weft_sums *sums = &f->index->sums;
	const double slice_ns = (double)((uint64_t)1 << sums->slice_shift);
	f->s->edges.count = f->s->strip_sums.count = 0;
	if (!weft_vec_reserve(&f->s->edges, s->columns) || !weft_vec_reserve(&f->s->strip_sums, sums->slices + 1)) {
		f->failed = true;
		return false;
	}
	for (size_t c = 0; c + 1 < s->columns; c++) {
		/* A cell may be shorter than a ns. */
		const double x = (double)c * WEFT__CELL_PX, ns = f->view->lulls
								     ? (double)weft_view_time(f->view, x)
								     : (double)f->view->from_ns + x / f->view->px_per_ns;
		const double at = ns > 0 ? ns / slice_ns : 0;
		const uint32_t last = (uint32_t)sums->slices - 1, slice = at < last ? (uint32_t)at : last;
		struct weft__edge *edge = &f->s->edges.items[c];
		*edge = (struct weft__edge){
		    .ns = ns, .slice = slice, .part = at < last + 1.0 ? (uint32_t)((at - slice) * 65536) : 65536};
		if (c > 0)
			edge[-1].scale = ns > edge[-1].ns ? s->unit * slice_ns / (sums->unit * (ns - edge[-1].ns)) : 0;
	}
	return true;
}

/* Returns the sum of all cells before an edge.  The sum of a slice of time is divided evenly among its cells, in whole units. */
static inline uint32_t sum_before(const uint32_t *sums, const struct weft__edge *e)
{
	const uint32_t before = sums[e->slice], within = sums[e->slice + 1] - before;
	return before + (uint32_t)(((uint64_t)within * e->part + 32768) >> 16);
}

static void add_sums(struct weft__frame *f, const struct strips *s, int strip, enum plane plane)
{
	const struct weft_sums *all = &f->index->sums;
	const unsigned shift = all->block_shift;
	const uint32_t up = (1u << shift) - 1;
	const uint32_t *from = weft__sums_above(all, (enum weft_sum)plane, (s->begin[strip] + up) >> shift),
		       *to = weft__sums_above(all, (enum weft_sum)plane, (s->begin[strip + 1] + up) >> shift);
	const size_t cells = s->columns - 2;
	const struct weft__edge *edges = f->s->edges.items;
	const size_t first = edges[0].slice, last = edges[cells].slice + 1;
	uint32_t *sums = f->s->strip_sums.items, any = 0;
	for (size_t k = first; k <= last; k++) {
		sums[k] = to[k] - from[k];
		any |= sums[k] ^ sums[first];
	}
	if (!any)
		return;
	uint32_t *row = row_of(s, plane, strip), before = sum_before(sums, &edges[0]), left = 0;
	for (size_t c = 0; c < cells; c++) {
		const uint32_t next = sum_before(sums, &edges[c + 1]), sum = next - before;
		const double scaled = sum * edges[c].scale;
		const uint32_t amount = plane == WRONG_ENDS ? sum * s->unit : (sum > 0) + (uint32_t)(scaled < 1e9 ? scaled : 1e9);
		row[c] += amount - left;
		left = amount;
		before = next;
	}
	row[cells] -= left;
}

static int alive_alpha(double rows_alive, double rows)
{
	double part = rows_alive / (rows > 1 ? rows : 1);
	return rows_alive == 0 ? 0 : part < 1 / 8.0 ? 104 : part < 2 / 3.0 ? 140 : 176;
}

/* Returns the opacity of a cell in which a plane has the sum `sum`. */
static uint8_t alpha_of(enum plane plane, uint32_t sum, double rows, double unit)
{
	double all = sum / unit;
	if (plane == ALIVE)
		return (uint8_t)alive_alpha(all, rows);
	if (plane >= NEVER)
		return (uint8_t)weft__wrong_alpha(all / (rows > 1 ? rows : 1));
	return all > rows / 2 ? 220 : all > rows / 8 ? 120 : 0;
}

/* Merges the opacities of two neighbouring cells: the result is the maximum, but for failures the mean, so that one failure in a
 * hundred does not look like one in ten. */
static uint8_t merge_alphas(enum plane plane, uint8_t a, uint8_t b)
{
	enum { STEP = 8 };
	const unsigned mean = (unsigned)(a + b + 2 * STEP - 1) / (2 * STEP) * STEP;
	return plane < NEVER ? a > b ? a : b : (uint8_t)(mean < 255 ? mean : 255);
}

/* Merges neighbouring cells repeatedly, until a strip has few enough changes of opacity for the eye.  Returns the number of
 * cells that are merged into one. */
static size_t calm_alphas(enum plane plane, uint8_t *alphas, size_t count, size_t changes)
{
	size_t grain = 1;
	for (; grain < MAX_GRAIN && changes > MAX_CHANGES; grain *= 2) {
		changes = 0;
		for (size_t c = 0; c < count; c += 2) {
			uint8_t other = c + 1 < count ? alphas[c + 1] : 0;
			alphas[c / 2] = merge_alphas(plane, alphas[c], other);
			changes += c > 0 && alphas[c / 2 - 1] != alphas[c / 2];
		}
		count = (count + 1) / 2;
	}
	return grain;
}

/* Returns whether no promise starts or ends in these cells. */
static bool is_empty(const uint32_t *row, size_t count)
{
	uint64_t any = 0, two;
	for (size_t i = 0; i + 1 < count; i += 2) {
		memcpy(&two, row + i, sizeof two);
		any |= two;
	}
	return !any;
}

/* Returns the end of the sequence of cells that look like the first cell. */
static size_t end_of_run(const uint8_t *alphas, size_t first, size_t count)
{
	const uint64_t like_first = alphas[first] * 0x0101010101010101u;
	uint64_t some;
	size_t c = first + 1;
	for (; c + sizeof some <= count; c += sizeof some) {
		memcpy(&some, alphas + c, sizeof some);
		if (some != like_first)
			break;
	}
	while (c < count && alphas[c] == alphas[first])
		c++;
	return c;
}

static void draw_cells(struct weft__frame *f, enum plane plane, uint8_t alpha, int x0, int x1, int y)
{
	switch (plane) {
	case ALIVE: weft__line_put(f, alpha, x0, y, x1, y + 2); break;
	case RUN: weft__rect(f, weft__ink(WEFT_LAYER_RUN, WEFT_PAINT_RUN, alpha), x0, y, x1, y + 1); break;
	case NEVER: weft__rect(f, weft__ink(WEFT_LAYER_FAILED, WEFT_PAINT_FAILED, alpha), x0, y, x1, y + 2); break;
	default: weft__rect(f, weft__ink(WEFT_LAYER_FAILED, WEFT_PAINT_FAILED, alpha), x0, y, x1, y + WEFT__STRIP_PX);
	}
}

static void draw_plane(struct weft__frame *f, const struct strips *s, int strip, enum plane plane, uint8_t *alphas)
{
	const uint32_t *row = s->planes + ((size_t)strip * PLANES + (size_t)plane) * s->columns;
	const double rows = s->rows[strip];
	/* If many rows share a strip, two cells are drawn like the fuller one of them. */
	size_t grain = rows > SPARSE_ROWS ? 2 : 1, end = s->columns - 2, count = (end + grain - 1) / grain, changes = 0;
	if (!row[s->columns - 1])
		return;
	uint32_t sum = 0, seen = 0;
	uint8_t alpha = 0;
	for (size_t c = 0; c < count; c++) {
		if (seen == sum && c % AT_ONCE == 0 && (c + AT_ONCE) * grain <= end &&
		    is_empty(row + c * grain, AT_ONCE * grain)) {
			memset(alphas + c, alpha, AT_ONCE);
			c += AT_ONCE - 1;
			continue;
		}
		uint32_t most = sum += row[c * grain];
		if (grain == 2 && c * 2 + 1 < end) {
			sum += row[c * 2 + 1];
			most = sum > most ? sum : most;
		}
		if (most != seen) {
			uint8_t next = alpha_of(plane, most, rows, s->unit);
			seen = most;
			changes += next != alpha;
			alpha = next;
		}
		alphas[c] = alpha;
	}
	size_t calmed = calm_alphas(plane, alphas, count, changes), start = 0;
	/* Merged cells must not extend beyond the trace. */
	const int first = weft__floor(weft_view_x(f->view, 0)) - 1,
		  last = weft__floor(weft_view_x(f->view, f->model->end_ns)) + 1;
	count = (count + calmed - 1) / calmed;
	grain *= calmed * WEFT__CELL_PX;
	for (size_t c = 0; c < count; start = c) {
		c = end_of_run(alphas, start, count);
		int x0 = (int)(start * grain), x1 = (int)(c * grain);
		x0 = x0 > first ? x0 : first;
		x1 = x1 < last ? x1 : last;
		if (alphas[start] > 0 && x0 < x1)
			draw_cells(f, plane, alphas[start], x0, x1, strip * WEFT__STRIP_PX);
	}
}

static void draw_mark(struct weft__frame *f, enum mark mark, int x0, int x1, int y)
{
	if (mark == FAILED)
		weft__rect(f, weft__ink(WEFT_LAYER_FAILED, WEFT_PAINT_FAILED, 255), x0, y, x1, y + 2);
	else if (f->view->found > WEFT__MANY_FOUND)
		weft__rect(f, weft__ink(WEFT_LAYER_MARK, WEFT_PAINT_HIGHLIGHT, 255), x0, y + 1, x1, y + 2);
	else if (x1 - x0 < 8)
		weft__rect(f, weft__ink(WEFT_LAYER_MARK, WEFT_PAINT_HIGHLIGHT, 255), x0 - 1, y - 1, x1 + 1, y + 3);
	else
		weft__rect(f, weft__ink(WEFT_LAYER_HIGHLIGHT, WEFT_PAINT_HIGHLIGHT, 255), x0, y - 1, x1, y + 3);
}

/* Draws the marked cells; adjacent cells are merged, and in a dense strip also cells with small gaps between them. */
static void draw_marks(struct weft__frame *f, const struct strips *s, int strip, enum mark mark)
{
	const uint64_t *bits = marks_of(s, mark, strip);
	int from = -1, to = -1, gap = is_dense(s, strip) ? 2 : 0;
	for (size_t w = 0; w < s->words; w++) {
		for (uint64_t left = bits[w]; left;) {
			int first = __builtin_ctzll(left);
			uint64_t behind = ~(left >> first);
			int length = behind ? __builtin_ctzll(behind) : 64 - first, c = (int)(w * 64) + first;
			left = first + length < 64 ? left & UINT64_MAX << (first + length) : 0;
			if (from >= 0 && c > to + gap) {
				draw_mark(f, mark, from * WEFT__CELL_PX, to * WEFT__CELL_PX, strip * WEFT__STRIP_PX);
				from = -1;
			}
			from = from < 0 ? c : from;
			to = c + length;
		}
	}
	if (from >= 0)
		draw_mark(f, mark, from * WEFT__CELL_PX, to * WEFT__CELL_PX, strip * WEFT__STRIP_PX);
}

void weft__strips_draw(struct weft__frame *f)
{
	struct strips s = strips_of(f);
	if (f->end_line_row - f->first_line_row == f->layout->row_count || f->index->count == 0)
		return;
	f->s->alphas.count = 0;
	if (!weft_vec_reserve(&f->s->alphas, s.columns)) {
		f->failed = true;
		return;
	}
	add_boxes(f, &s);
	if (s.begin[f->s->summed_above] + (f->layout->row_count - s.begin[f->s->summed_below]) > 0 && !find_edges(f, &s))
		return;
	for (int strip = 0; strip < s.count; strip++)
		for (enum plane plane = ALIVE; plane < PLANES && is_summed(f, strip) && s.begin[strip] < s.begin[strip + 1];
		     plane++)
			add_sums(f, &s, strip, plane);
	for (int strip = 0; strip < s.count; strip++) {
		for (enum plane plane = ALIVE; plane < PLANES; plane++)
			draw_plane(f, &s, strip, plane, f->s->alphas.items);
		for (enum mark mark = FAILED; mark < MARKS; mark++)
			draw_marks(f, &s, strip, mark);
	}
}
