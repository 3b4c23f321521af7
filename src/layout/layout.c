/* layout.c: sorts promises by their starts, has them grouped into tracks and given rows, and lists rows.
 *
 * Of a fold only the leader is placed, as long as all of the fold; the others get its row at the end.  SPDX-License-Identifier:
 * ISC */
#include "layout/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "layout/fold.h"
#include "layout/pack.h"
#include "layout/track.h"

struct sorting {
	const struct weft_model *model;
	struct weft_layout *layout;
	uint32_t *order; /* promises by stream, start and number; neither the system nor who follows in a fold is among them */
	size_t count;
};

const struct weft_fold *weft_layout_fold(const struct weft_layout *layout, uint32_t promise)
{
	size_t at = WEFT_FIRST(i, 0, layout->fold_count, layout->folds[i].leader >= promise);
	return at < layout->fold_count && layout->folds[at].leader == promise ? &layout->folds[at] : NULL;
}

const struct weft_track *weft_layout_track(const struct weft_layout *layout, uint32_t actor)
{
	size_t at = WEFT_FIRST(i, 0, layout->track_count, layout->tracks[i].actor >= actor);
	return at < layout->track_count && layout->tracks[at].actor == actor ? &layout->tracks[at] : NULL;
}

/* A stable radix sort by start, then by stream; digits that are the same everywhere cost nothing but a look. */
static bool sort_by_start(struct sorting *s)
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

static bool list_rows(struct sorting *s)
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
				    weft_layout_end(layout, s->model, before) <= weft_layout_end(layout, s->model, promise))
					break;
				layout->by_row[at] = layout->by_row[at - 1];
			}
			layout->by_row[at] = promise;
		}
	}
	return true;
}

static void leave_out(struct sorting *s, const uint64_t *only)
{
	size_t kept = 0;
	for (size_t i = 0; i < s->count; i++)
		if (only[s->order[i] / 64] >> s->order[i] % 64 & 1)
			s->order[kept++] = s->order[i];
	s->count = kept;
}

/* Nobody has a row yet: any row marks who is not to be placed. */
static bool leave_followers_out(struct sorting *s)
{
	uint32_t *rows = s->layout->rows;
	size_t kept = 0;
	if (s->layout->fold_count == 0)
		return true;
	s->layout->leaders = calloc(s->model->promise_count / 64 + 1, sizeof *s->layout->leaders);
	if (!s->layout->leaders)
		return false;
	for (size_t i = 0; i < s->layout->fold_count; i++) {
		const struct weft_fold *fold = &s->layout->folds[i];
		s->layout->leaders[fold->leader / 64] |= 1ull << fold->leader % 64;
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
	return weft_layout_create_folded(out, model, NULL, NULL, err);
}

int weft_layout_create_of(struct weft_layout **out, const struct weft_model *model, const uint64_t *only, struct weft_error *err)
{
	return weft_layout_create_folded(out, model, only, NULL, err);
}

static bool find_folds(
    struct weft_layout *layout, const struct weft_model *model, const uint64_t *only, const uint32_t *leader_of)
{
	if (leader_of)
		return weft__folds_gather(layout, model, only, leader_of);
	return only || weft__folds_find(layout, model);
}

int weft_layout_create_folded(struct weft_layout **out, const struct weft_model *model, const uint64_t *only,
    const uint32_t *leader_of, struct weft_error *err)
{
	size_t n = model->promise_count;
	struct weft_layout *layout = calloc(1, sizeof *layout);
	struct sorting s = {.model = model, .layout = layout, .count = n > 0 ? n - 1 : 0};
	s.order = malloc((n ? n : 1) * sizeof *s.order);
	if (layout)
		layout->rows = malloc((n ? n : 1) * sizeof *layout->rows);
	bool done = layout && layout->rows && s.order;
	if (done) {
		memset(layout->rows, 0xff, n * sizeof *layout->rows);
		done = find_folds(layout, model, only, leader_of) && sort_by_start(&s);
		if (done && only)
			leave_out(&s, only);
		done = done && leave_followers_out(&s) && weft__tracks_find(layout, model, only) &&
		       weft__rows_pack(layout, model, s.order, s.count) && list_rows(&s);
	}
	for (size_t i = 0; done && i < layout->fold_count; i++)
		for (uint32_t k = 1; k < layout->folds[i].count; k++)
			layout->rows[layout->folded[layout->folds[i].first + k]] = layout->rows[layout->folds[i].leader];
	free(s.order);
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
	free(layout->leaders);
	free(layout->tracks);
	free(layout->track_of);
	free(layout);
}
