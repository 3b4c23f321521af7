/* layout.c: computes a layout: sorts promises by start, groups them into tracks, and gives them rows.
 *
 * Only the leader (first promise) of a fold is placed, with the time span of the whole fold; the other promises get the leader's
 * row at the end.  SPDX-License-Identifier: ISC */
#include "layout/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/background_work.h"
#include "base/large.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"
#include "layout/fold.h"
#include "layout/group.h"
#include "layout/pack.h"
#include "layout/track.h"

enum { THREAD_MIN_PROMISES = 100000 /* number of promises from which on a second OS thread pays */ };

struct sorting {
	const struct weft_model *model;
	const uint64_t *only; /* one bit for each promise, set if the promise is drawn; NULL if all promises are drawn */
	struct weft_layout *layout;
	/* Promises by stream, start and number; without the system promise and without followers in folds. */
	struct weft__item *order;
	size_t count;
	uint64_t *parents;  /* one bit for each promise, set if other promises are drawn under it */
	uint16_t *group_of; /* for each promise: key of its band; NULL if each stream is a band */
	struct weft__census census;
	bool several_streams;
};

const struct weft_fold *weft_layout_fold(const struct weft_layout *layout, uint32_t promise)
{
	size_t at = WEFT_FIND_FIRST(i, 0, layout->fold_count, layout->folds[i].leader >= promise);
	return at < layout->fold_count && layout->folds[at].leader == promise ? &layout->folds[at] : NULL;
}

static int compare_items(const void *a, const void *b)
{
	const struct weft__item *x = a, *y = b;
	return WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->promise, y->promise);
}

/* Returns the first promise at or after `promise` that is drawn, or a number of at least promise_count if there is none. */
static inline uint32_t next_drawn(const struct sorting *s, uint32_t promise)
{
	if (!s->only || promise >= s->model->promise_count)
		return promise;
	size_t w = promise / 64, words = s->model->promise_count / 64 + 1;
	uint64_t bits = s->only[w] & UINT64_MAX << promise % 64;
	while (!bits && ++w < words)
		bits = s->only[w];
	return bits ? (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits) : (uint32_t)s->model->promise_count;
}

/* Sorts promises by start.  Promises are numbered in the order of their creation, so nearly all are in order already; but a bind
 * starts when its input is resolved, long after its creation.  A promise that is out of order by a few positions is inserted in
 * place.  If a few promises before it are late, these are set aside; otherwise the promise itself is set aside.  The promises
 * that were set aside are sorted and merged at the end. */
static bool sort_by_start(struct sorting *s)
{
	enum { LITTLE = 4, MAX_STEPS_BACK = 16 };
	const struct weft_promise *promises = s->model->promises;
	const uint32_t first = next_drawn(s, 1);
	WEFT_VEC(struct weft__item) late_items = {0};
	size_t kept_count = 0;
	bool done = true;
	for (uint32_t p = first; p < s->model->promise_count && done; p = next_drawn(s, p + 1)) {
		const struct weft_promise *promise = &promises[p];
		const int64_t start_ns = promise->start_ns;
		const struct weft__item item = {
		    start_ns, promise->end_ns > start_ns ? promise->end_ns : start_ns, p, promise->parent};
		size_t later = 0;
		if (item.parent != WEFT_NONE)
			s->parents[item.parent / 64] |= 1ull << item.parent % 64;
		s->census.traits |= weft_kind_traits(promise->kind);
		s->census.flags |= promise->flags;
		s->several_streams |= promise->stream != promises[first].stream;
		while (later < kept_count && later <= MAX_STEPS_BACK && s->order[kept_count - 1 - later].start_ns > start_ns)
			later++;
		struct weft__item *end = s->order + kept_count;
		if (later <= LITTLE) {
			for (size_t i = 0; i < later; i++)
				end[-(ptrdiff_t)i] = end[-(ptrdiff_t)i - 1];
			end[-(ptrdiff_t)later] = item;
			kept_count++;
			continue;
		}
		size_t out = later <= MAX_STEPS_BACK ? later : 1;
		done = weft_vec_reserve(&late_items, out);
		if (later <= MAX_STEPS_BACK) {
			for (size_t i = 0; i < later && done; i++, kept_count--)
				late_items.items[late_items.count++] = s->order[kept_count - 1];
			s->order[kept_count++] = item;
		} else if (done) {
			late_items.items[late_items.count++] = item;
		}
	}
	if (late_items.count > 0)
		weft_sort(late_items.items, late_items.count, sizeof *late_items.items, compare_items);
	s->count = kept_count + late_items.count;
	for (size_t to = s->count; late_items.count > 0 && done;) {
		const struct weft__item *last = &late_items.items[late_items.count - 1],
					*before = kept_count ? &s->order[kept_count - 1] : last;
		bool is_late = compare_items(before, last) <= 0;
		s->order[--to] = is_late ? *last : *before;
		late_items.count -= is_late;
		kept_count -= !is_late;
	}
	weft_vec_free(&late_items);
	return done;
}

/* Sorts the promises by stream; the sort is stable. */
static bool sort_by_stream(struct sorting *s)
{
	enum { STREAMS = UINT16_MAX + 1 };
	struct weft__item *other = malloc((s->count + 1) * sizeof *other);
	uint32_t *next = calloc(STREAMS + 1, sizeof *next);
	bool done = other && next;
	for (size_t i = 0; i < s->count && done; i++)
		next[weft__band_key(s->model, s->group_of, s->order[i].promise) + 1]++;
	for (size_t i = 0; i < STREAMS && done; i++)
		next[i + 1] += next[i];
	for (size_t i = 0; i < s->count && done; i++)
		other[next[weft__band_key(s->model, s->group_of, s->order[i].promise)]++] = s->order[i];
	free(next);
	if (done) {
		free(s->order);
		s->order = other;
	} else {
		free(other);
	}
	return done;
}

/* Removes the followers of folds from s->order, and sets the end of each leader to the end of its fold.  No promise has a row
 * yet, so any row marks a follower. */
static bool drop_followers(struct sorting *s)
{
	uint32_t *rows = s->layout->rows;
	size_t kept_count = 0;
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
		if (rows[s->order[i].promise] == WEFT_NONE) {
			s->order[kept_count] = s->order[i];
			s->order[kept_count++].end_ns = weft_layout_end(s->layout, s->model, s->order[i].promise);
		}
	s->count = kept_count;
	return true;
}

int weft_layout_create(struct weft_layout **out, const struct weft_model *model, struct weft_error *err)
{
	return weft_layout_create_folded(out, model, NULL, NULL, NULL, err);
}

static bool find_folds(const struct sorting *s, const uint32_t *leader_of)
{
	if (leader_of)
		return weft__folds_from_leaders(s->layout, s->model, s->only, leader_of);
	return s->only || !(s->census.traits & WEFT_TRAIT_FOLDS) || weft__folds_find(s->layout, s->model);
}

static bool find_tracks(const struct sorting *s, const struct weft_layout *whole)
{
	static const struct weft__census no_actors;
	return s->only && !s->group_of ? weft__tracks_restrict(s->layout, s->model, whole, s->only)
				       : weft__tracks_find(s->layout, s->model, s->group_of ? &no_actors : &s->census);
}

/* Work of a background thread, which restricts tracks to a subset while the promises of the subset are sorted. */
struct track_work {
	const struct sorting *sorting;
	const struct weft_layout *whole;
	bool done;
};

static void restrict_tracks(void *ctx)
{
	struct track_work *t = ctx;
	t->done = find_tracks(t->sorting, t->whole);
}

static int create_layout(struct weft_layout **out, struct sorting *s, const struct weft_layout *whole, const uint32_t *leader_of,
    struct weft_error *err)
{
	size_t n = s->model->promise_count;
	struct weft_layout *layout = s->layout;
	struct track_work track_work = {s, whole, false};
	struct weft_background_work meanwhile = {.work = restrict_tracks, .ctx = &track_work};
	/* Tracks can be restricted early, because no folds must be known first. */
	const bool restricts_early = s->only && !s->group_of && !leader_of;
	s->order = weft_large_alloc(n + 1, sizeof *s->order);
	s->parents = calloc(n / 64 + 1, sizeof *s->parents);
	layout->rows = weft_large_alloc(n + 1, sizeof *layout->rows);
	if (restricts_early && n >= THREAD_MIN_PROMISES)
		weft_background_work_start(&meanwhile);
	bool done = layout->rows && s->order && s->parents && sort_by_start(s) &&
		    (!(s->several_streams || s->group_of) || sort_by_stream(s));
	if (done) {
		memset(layout->rows, 0xff, n * sizeof *layout->rows);
		done = find_folds(s, leader_of) && drop_followers(s);
	}
	if (restricts_early || done)
		weft_background_work_finish(&meanwhile);
	done = done && track_work.done && weft__rows_pack(layout, s->model, s->group_of, s->order, s->count, s->parents);
	for (size_t i = 0; done && i < layout->fold_count; i++)
		for (uint32_t k = 1; k < layout->folds[i].count; k++)
			layout->rows[layout->folded[layout->folds[i].first + k]] = layout->rows[layout->folds[i].leader];
	free(s->order);
	free(s->parents);
	if (!done) {
		weft_layout_destroy(layout);
		return weft_error_set(err, WEFT_ENOMEM, "no memory for the rows of %zu promises", n);
	}
	*out = layout;
	return WEFT_OK;
}

int weft_layout_create_folded(struct weft_layout **out, const struct weft_model *model, const struct weft_layout *whole,
    const uint64_t *only, const uint32_t *leader_of, struct weft_error *err)
{
	struct sorting s = {.model = model, .only = only, .layout = calloc(1, sizeof *s.layout)};
	if (!s.layout)
		return weft_error_set(err, WEFT_ENOMEM, "no memory for the rows of %zu promises", model->promise_count);
	return create_layout(out, &s, whole, leader_of, err);
}

int weft_layout_create_grouped(struct weft_layout **out, const struct weft_model *model, enum weft_rows_by by,
    const uint64_t *only, const uint32_t *leader_of, struct weft_error *err)
{
	struct sorting s = {.model = model, .only = only};
	size_t count;
	bool has_rest;
	int status = weft_groups_find(&s.group_of, &count, &has_rest, model, by, err);
	if (status < 0)
		return status;
	s.layout = calloc(1, sizeof *s.layout);
	if (s.layout) {
		s.layout->rows_by = by;
		s.layout->has_rest = has_rest;
		status = create_layout(out, &s, NULL, leader_of, err);
	} else {
		status = weft_error_set(err, WEFT_ENOMEM, "no memory for the rows of %zu promises", model->promise_count);
	}
	free(s.group_of);
	return status;
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
	free(layout->actors);
	free(layout->actors_before);
	free(layout->track_of);
	free(layout);
}
