/* layout.c: a sweep over the promises in order of their start, with the time from which each row is free again.
 *
 * A child may take any row that is free from its parent's on.  SPDX-License-Identifier: ISC */
#include "layout/layout.h"

#include <string.h>

#include "layout/rows.h"

struct sweep {
	const struct weft_model *model;
	struct weft_layout *layout;
	uint32_t *order; /* promises by stream, start and number; the system is not among them */
	size_t count;
	uint32_t *depth; /* rows that the descendants of a promise need below it */
	uint32_t limit;  /* rows that the band is meant to need */
	struct weft__rows rows;
	WEFT_VEC(uint32_t) waiting; /* promises whose parents are to be placed first */
};

static int64_t end_of(const struct weft_promise *p)
{
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
	return s->model->promises[promise].start_ns < end_of(&s->model->promises[parent]);
}

static bool place(struct sweep *s, uint32_t promise)
{
	const struct weft_promise *p = &s->model->promises[promise];
	uint32_t parent = parent_of(s, promise), from = 0;
	if (parent != WEFT_NONE && s->layout->rows[parent] != WEFT_NONE)
		from = s->layout->rows[parent] + overlaps_parent(s, promise, parent);
	uint32_t row = weft__rows_first(&s->rows, from, p->start_ns);
	while (row == UINT32_MAX) {
		/* Rows that nobody has stood on yet are free, those between the last and `from` included. */
		row = weft__rows_count(&s->rows);
		if (row < from) {
			if (!weft__rows_take(&s->rows, row, INT64_MIN))
				return false;
			row = UINT32_MAX;
		}
	}
	s->layout->rows[promise] = row;
	return weft__rows_take(&s->rows, row, end_of(p));
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

static bool place_bands(struct sweep *s)
{
	struct weft_layout *layout = s->layout;
	for (size_t begin = 0, end; begin < s->count; begin = end) {
		uint16_t stream = s->model->promises[s->order[begin]].stream;
		weft__rows_clear(&s->rows);
		for (end = begin; end < s->count && s->model->promises[s->order[end]].stream == stream; end++)
			if (layout->rows[s->order[end]] == WEFT_NONE && !place_after_parents(s, s->order[end]))
				return false;
		uint32_t count = weft__rows_count(&s->rows);
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
				const struct weft_promise *before = &promises[layout->by_row[at - 1]];
				if (before->start_ns != promises[promise].start_ns ||
				    end_of(before) <= end_of(&promises[promise]))
					break;
				layout->by_row[at] = layout->by_row[at - 1];
			}
			layout->by_row[at] = promise;
		}
	}
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
	bool done = layout && layout->rows && s.order;
	if (done) {
		memset(layout->rows, 0xff, n * sizeof *layout->rows);
		done = sort_by_start(&s) && place_bands(&s) && list_rows(&s);
	}
	free(s.order);
	free(s.depth);
	weft__rows_finish(&s.rows);
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
	free(layout);
}
