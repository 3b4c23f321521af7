/* layout.c: sweeps over the promises in order of their start, with the time from which each row is free.
 *
 * A child that overlaps its parent must stand below it, so a long line of descent, each made by the one before, takes a stair of
 * rows; whatever lives on one of its steps pushes the rest of it down.  Hence three sweeps: first the promises under which many
 * generations need rows, then those under which a few do, then those under which none does; the later ones fill the gaps
 * that the earlier ones leave.  In a sweep, a promise takes the first row from its parent's on where it fits.
 * Of a fold only the leader is placed, as long as all of the fold; the others get its row at the end.
 * SPDX-License-Identifier: ISC */
#include "layout/layout.h"

#include <string.h>

#include "base/search.h"
#include "layout/fold.h"
#include "layout/rows.h"

enum { NO_GENERATION, FEW_GENERATIONS = 1, MANY_GENERATIONS = 9 };

#define TRIES 64 /* rows that are free now but promised to an earlier sweep, before one is sought that is free for good */

struct sweep {
	const struct weft_model *model;
	struct weft_layout *layout;
	uint32_t *order; /* promises by stream, start and number; neither the system nor who follows in a fold is among them */
	size_t count;
	uint64_t *leaders;          /* bits by promise: those that lead a fold; NULL if there is none */
	uint8_t *generations;       /* below a promise that overlap it or one another, up to MANY_GENERATIONS */
	uint32_t *next;             /* by promise: who stands next on its row, of those that an earlier sweep placed */
	struct weft__rows now;      /* until when each row is taken by those that have begun */
	struct weft__rows last;     /* until when by anyone */
	WEFT_VEC(uint32_t) coming;  /* by row: who begins next, of those that an earlier sweep placed */
	WEFT_VEC(uint32_t) waiting; /* promises whose parents are to be placed first */
};

const struct weft_fold *weft_layout_fold(const struct weft_layout *layout, uint32_t promise)
{
	size_t at = WEFT_FIRST(i, 0, layout->fold_count, layout->folds[i].leader >= promise);
	return at < layout->fold_count && layout->folds[at].leader == promise ? &layout->folds[at] : NULL;
}

int64_t weft_layout_end(const struct weft_layout *layout, const struct weft_model *model, uint32_t promise)
{
	const struct weft_promise *p = &model->promises[promise];
	if (layout->fold_count > 0 && weft_kind_has(p->kind, WEFT_TRAIT_FOLDS)) {
		const struct weft_fold *fold = weft_layout_fold(layout, promise);
		if (fold)
			return fold->end_ns;
	}
	return p->end_ns > p->start_ns ? p->end_ns : p->start_ns;
}

/* weft_layout_end(), with what most promises take of it in line: opening a trace asks some times for each. */
static inline int64_t end_of(const struct sweep *s, uint32_t promise)
{
	const struct weft_promise *p = &s->model->promises[promise];
	if (s->leaders && s->leaders[promise / 64] >> promise % 64 & 1)
		return weft_layout_end(s->layout, s->model, promise);
	return p->end_ns > p->start_ns ? p->end_ns : p->start_ns;
}

/* A stable radix sort by start, then by stream; digits that are the same everywhere cost nothing but a look. */
static bool sort_by_start(struct sweep *s)
{
	enum { BITS = 11, BUCKETS = 1 << BITS };
	const struct weft_promise *promises = s->model->promises;
	uint64_t seen_or = 0, seen_and = UINT64_MAX;
	bool sorted = true, one_stream = true;
	for (size_t i = 0; i < s->count; i++) {
		uint64_t key = (uint64_t)promises[i + 1].start_ns ^ 1ull << 63;
		seen_or |= key;
		seen_and &= key;
		s->order[i] = (uint32_t)i + 1;
		if (i > 0) {
			sorted = sorted && promises[i].start_ns <= promises[i + 1].start_ns;
			one_stream = one_stream && promises[i].stream == promises[i + 1].stream;
		}
	}
	if (sorted && one_stream)
		return true;
	uint32_t *other = malloc(s->count * sizeof *other);
	uint32_t *counts = malloc((BUCKETS > 65536 ? BUCKETS : 65536) * sizeof *counts);
	if (!other || !counts) {
		free(other);
		free(counts);
		return false;
	}
	for (int shift = 0; shift < 64 + BITS; shift += BITS) {
		bool by_stream = shift >= 64;
		uint32_t buckets = by_stream ? 65536 : BUCKETS;
		if (by_stream ? one_stream : sorted || !((seen_or ^ seen_and) >> shift & (BUCKETS - 1)))
			continue;
		memset(counts, 0, buckets * sizeof *counts);
#define KEY(i)                                                                                                                   \
	(by_stream ? promises[s->order[i]].stream                                                                                \
		   : (uint32_t)(((uint64_t)promises[s->order[i]].start_ns ^ 1ull << 63) >> shift & (BUCKETS - 1)))
		for (size_t i = 0; i < s->count; i++)
			counts[KEY(i)]++;
		for (uint32_t b = 0, sum = 0; b < buckets; b++) {
			uint32_t n = counts[b];
			counts[b] = sum;
			sum += n;
		}
		for (size_t i = 0; i < s->count; i++)
			other[counts[KEY(i)]++] = s->order[i];
#undef KEY
		uint32_t *swap = s->order;
		s->order = other;
		other = swap;
	}
	free(other);
	free(counts);
	return true;
}

/* The parent, if the promise has to stand below it. */
static uint32_t parent_of(const struct sweep *s, uint32_t promise)
{
	const struct weft_promise *p = &s->model->promises[promise];
	if (p->parent == WEFT_NONE || p->parent == WEFT_SYSTEM || p->parent == promise ||
	    s->model->promises[p->parent].stream != p->stream)
		return WEFT_NONE;
	return p->parent;
}

static bool overlaps_parent(const struct sweep *s, uint32_t promise, uint32_t parent)
{
	return s->model->promises[promise].start_ns < end_of(s, parent);
}

static bool take(struct sweep *s, uint32_t row, int64_t end)
{
	if (row == s->coming.count) {
		uint32_t *coming = weft_vec_push(&s->coming);
		if (!coming)
			return false;
		*coming = WEFT_NONE;
	}
	if (row < weft__rows_count(&s->last) && s->last.level[0].items[row] > end)
		return weft__rows_take(&s->now, row, end);
	return weft__rows_take(&s->now, row, end) && weft__rows_take(&s->last, row, end);
}

static bool place(struct sweep *s, uint32_t promise)
{
	const struct weft_promise *p = &s->model->promises[promise];
	uint32_t parent = parent_of(s, promise), from = 0, row;
	if (parent != WEFT_NONE && s->layout->rows[parent] != WEFT_NONE)
		from = s->layout->rows[parent] + overlaps_parent(s, promise, parent);
	row = from < weft__rows_count(&s->now) ? weft__rows_first(&s->now, from, p->start_ns) : UINT32_MAX;
	for (int tries = 0; row != UINT32_MAX; tries++) {
		uint32_t coming = s->coming.items[row];
		if (coming == WEFT_NONE || s->model->promises[coming].start_ns >= end_of(s, promise))
			break;
		const struct weft__rows *rows = tries < TRIES ? &s->now : &s->last;
		row = row + 1 < weft__rows_count(rows) ? weft__rows_first(rows, row + 1, p->start_ns) : UINT32_MAX;
		if (tries == TRIES)
			break;
	}
	if (row == UINT32_MAX)
		row = weft__rows_count(&s->now);
	s->layout->rows[promise] = row;
	return take(s, row, end_of(s, promise));
}

/* Places a promise, and before it those of its ancestors that begin later than it, which only a strange trace has. */
static bool place_after_parents(struct sweep *s, uint32_t promise)
{
	s->waiting.count = 0;
	for (uint32_t p = promise; p != WEFT_NONE && s->layout->rows[p] == WEFT_NONE; p = parent_of(s, p)) {
		if (s->waiting.count >= s->count)
			break; /* parents in a circle: the rule cannot hold for all of them */
		uint32_t *w = weft_vec_push(&s->waiting);
		if (!w)
			return false;
		*w = p;
	}
	while (s->waiting.count > 0) {
		uint32_t p = s->waiting.items[--s->waiting.count];
		if (s->layout->rows[p] == WEFT_NONE && !place(s, p))
			return false;
	}
	return true;
}

static void count_generations(struct sweep *s, size_t begin, size_t end)
{
	for (size_t i = end; i-- > begin;) {
		uint32_t promise = s->order[i], parent = parent_of(s, promise);
		if (parent == WEFT_NONE)
			continue;
		unsigned n = s->generations[promise] + (unsigned)overlaps_parent(s, promise, parent);
		n = n > MANY_GENERATIONS ? MANY_GENERATIONS : n;
		if (n > s->generations[parent])
			s->generations[parent] = (uint8_t)n;
	}
}

/* Places those of at least so many generations; whoever has a row already begins again where it stands. */
static bool sweep(struct sweep *s, size_t begin, size_t end, unsigned generations)
{
	uint32_t *rows = s->layout->rows;
	for (uint32_t r = 0; r < weft__rows_count(&s->now); r++)
		s->coming.items[r] = WEFT_NONE;
	weft__rows_clear(&s->now);
	for (size_t i = end; i-- > begin;) {
		uint32_t p = s->order[i];
		if (rows[p] == WEFT_NONE)
			continue;
		s->next[p] = s->coming.items[rows[p]];
		s->coming.items[rows[p]] = p;
	}
	for (uint32_t r = 0; r < weft__rows_count(&s->last); r++)
		if (!weft__rows_take(&s->now, r, INT64_MIN))
			return false;
	for (size_t i = begin; i < end; i++) {
		uint32_t p = s->order[i];
		if (rows[p] == WEFT_NONE) {
			if (s->generations[p] >= generations && !place_after_parents(s, p))
				return false;
		} else if (s->coming.items[rows[p]] == p) {
			int64_t until = end_of(s, p);
			s->coming.items[rows[p]] = s->next[p];
			/* One of no length may come after another that begins at the same time. */
			if (until > s->now.level[0].items[rows[p]] && !weft__rows_take(&s->now, rows[p], until))
				return false;
		}
	}
	return true;
}

static bool place_band(struct sweep *s, size_t begin, size_t end)
{
	static const unsigned least[] = {MANY_GENERATIONS, FEW_GENERATIONS, NO_GENERATION};
	size_t counts[MANY_GENERATIONS + 1] = {0}, waiting = 0, left = end - begin;
	weft__rows_clear(&s->now);
	weft__rows_clear(&s->last);
	s->coming.count = 0;
	count_generations(s, begin, end);
	for (size_t i = begin; i < end; i++)
		counts[s->generations[s->order[i]]]++;
	for (int i = 0, from = MANY_GENERATIONS; i < 3; i++) {
		for (; from >= (int)least[i]; from--)
			waiting += counts[from];
		/* So few, before or behind, that a sweep of their own would not change the picture. */
		bool is_last = i == 2 || left - waiting < (end - begin) / 256;
		if (!is_last && waiting < (end - begin) / 256)
			continue;
		if (!sweep(s, begin, end, is_last ? NO_GENERATION : least[i]))
			return false;
		if (is_last)
			break;
		left -= waiting;
		waiting = 0;
	}
	return true;
}

static bool place_bands(struct sweep *s)
{
	struct weft_layout *layout = s->layout;
	for (size_t begin = 0, end; begin < s->count; begin = end) {
		uint16_t stream = s->model->promises[s->order[begin]].stream;
		for (end = begin; end < s->count && s->model->promises[s->order[end]].stream == stream;)
			end++;
		if (!place_band(s, begin, end))
			return false;
		uint32_t count = weft__rows_count(&s->now);
		for (size_t i = begin; i < end; i++)
			layout->rows[s->order[i]] += layout->row_count;
		struct weft_band *bands = realloc(layout->bands, (layout->band_count + 1) * sizeof *bands);
		if (!bands)
			return false;
		layout->bands = bands;
		layout->bands[layout->band_count++] =
		    (struct weft_band){.first_row = layout->row_count, .row_count = count, .stream = stream};
		layout->row_count += count;
	}
	return true;
}

static bool list_rows(struct sweep *s)
{
	struct weft_layout *layout = s->layout;
	const struct weft_promise *promises = s->model->promises;
	layout->by_row = malloc((s->count ? s->count : 1) * sizeof *layout->by_row);
	layout->row_begin = calloc((size_t)layout->row_count + 2, sizeof *layout->row_begin);
	if (!layout->by_row || !layout->row_begin)
		return false;
	uint32_t *next = layout->row_begin + 1; /* where the next of a row goes; in the end, where the next row begins */
	for (size_t i = 0; i < s->count; i++)
		next[layout->rows[s->order[i]] + 1]++;
	for (uint32_t r = 0; r < layout->row_count; r++)
		next[r + 1] += next[r];
	for (size_t i = 0; i < s->count; i++)
		layout->by_row[next[layout->rows[s->order[i]]]++] = s->order[i];
	/* One of no length at the start of another stands before it. */
	for (uint32_t r = 0; r < layout->row_count; r++) {
		for (uint32_t i = layout->row_begin[r] + 1; i < layout->row_begin[r + 1]; i++) {
			uint32_t at = i, promise = layout->by_row[i];
			for (; at > layout->row_begin[r]; at--) {
				uint32_t before = layout->by_row[at - 1];
				if (promises[before].start_ns != promises[promise].start_ns ||
				    end_of(s, before) <= end_of(s, promise))
					break;
				layout->by_row[at] = layout->by_row[at - 1];
			}
			layout->by_row[at] = promise;
		}
	}
	return true;
}

/* Nobody has a row yet: any row marks who is not to be placed. */
static bool leave_followers_out(struct sweep *s)
{
	uint32_t *rows = s->layout->rows;
	size_t kept = 0;
	if (s->layout->fold_count == 0)
		return true;
	s->leaders = calloc(s->model->promise_count / 64 + 1, sizeof *s->leaders);
	if (!s->leaders)
		return false;
	for (size_t i = 0; i < s->layout->fold_count; i++) {
		const struct weft_fold *fold = &s->layout->folds[i];
		s->leaders[fold->leader / 64] |= 1ull << fold->leader % 64;
		for (uint32_t k = 1; k < fold->count; k++)
			rows[s->layout->folded[fold->first + k]] = 0;
	}
	for (size_t i = 0; i < s->count; i++)
		if (rows[s->order[i]] == WEFT_NONE)
			s->order[kept++] = s->order[i];
	s->count = kept;
	return true;
}

int weft_layout_create(struct weft_layout **out, const struct weft_model *model, struct weft_error *err)
{
	size_t n = model->promise_count;
	struct weft_layout *layout = calloc(1, sizeof *layout);
	struct sweep s = {.model = model, .layout = layout, .count = n > 0 ? n - 1 : 0};
	s.order = malloc((n ? n : 1) * sizeof *s.order);
	if (layout)
		layout->rows = malloc((n ? n : 1) * sizeof *layout->rows);
	s.generations = calloc(n ? n : 1, sizeof *s.generations);
	s.next = malloc((n ? n : 1) * sizeof *s.next);
	bool done = layout && layout->rows && s.order && s.generations && s.next;
	if (done) {
		memset(layout->rows, 0xff, n * sizeof *layout->rows);
		done = weft__folds_find(layout, model) && sort_by_start(&s);
		done = done && leave_followers_out(&s) && place_bands(&s) && list_rows(&s);
	}
	for (size_t i = 0; done && i < layout->fold_count; i++)
		for (uint32_t k = 1; k < layout->folds[i].count; k++)
			layout->rows[layout->folded[layout->folds[i].first + k]] = layout->rows[layout->folds[i].leader];
	free(s.order);
	free(s.leaders);
	free(s.generations);
	free(s.next);
	weft__rows_finish(&s.now);
	weft__rows_finish(&s.last);
	weft_vec_free(&s.coming);
	weft_vec_free(&s.waiting);
	if (!done) {
		weft_layout_destroy(layout);
		return weft_error_set(err, WEFT_ENOMEM, "no memory for the rows of %zu promises", n);
	}
	*out = layout;
	return WEFT_OK;
}

void weft_layout_destroy(struct weft_layout *layout)
{
	if (!layout)
		return;
	free(layout->rows);
	free(layout->by_row);
	free(layout->row_begin);
	free(layout->bands);
	free(layout->folds);
	free(layout->folded);
	free(layout);
}
