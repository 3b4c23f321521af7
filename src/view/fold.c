/* fold.c: finds the promises that share a line, and computes sums over the promises on a line.
 *
 * For the promises of a fold, starts and ends are sorted separately, with prefix sums.  The total time that promises were alive
 * before a given time is the difference of two such sums.
 * SPDX-License-Identifier: ISC */
#include "view/fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/idmap.h"
#include "base/search.h"
#include "base/sort.h"
#include "layout/group.h"
#include "model/roles.h"
#include "view/index.h"

bool weft_folding_has(const struct weft_folding *folding, const char *query)
{
	for (size_t i = 0; i < folding->count; i++)
		if (strcmp(folding->queries[i], query) == 0)
			return true;
	return false;
}

/* Returns whether the query decides for each promise alone whether the promise matches. */
static bool is_usable(const char *query)
{
	struct weft_query parsed;
	const size_t len = strlen(query);
	return len > 0 && len <= WEFT_QUERY_BYTES && weft_query_parse(&parsed, query, len, NULL) == WEFT_OK && parsed.count > 0 &&
	       parsed.slowest == 0;
}

bool weft_folding_hide(struct weft_folding *folding, const char *query)
{
	if (!is_usable(query) || folding->hidden_count == WEFT_MAX_HIDDEN)
		return false;
	snprintf(folding->hidden[folding->hidden_count++], WEFT_QUERY_BYTES + 1, "%s", query);
	return true;
}

bool weft_folding_toggle(struct weft_folding *folding, const char *query)
{
	size_t len = strlen(query), at = 0;
	if (!is_usable(query))
		return false;
	while (at < folding->count && strcmp(folding->queries[at], query) != 0)
		at++;
	if (at < folding->count) {
		folding->count--;
		memmove(folding->queries[at], folding->queries[at + 1], (folding->count - at) * sizeof *folding->queries);
	} else if (folding->count < WEFT_MAX_FOLDS) {
		memcpy(folding->queries[folding->count++], query, len + 1);
	} else {
		return false;
	}
	return true;
}

bool weft_folding_toggle_opened(struct weft_folding *folding, int64_t id)
{
	size_t at = 0;
	while (at < folding->opened_count && folding->opened[at] != id)
		at++;
	if (at == WEFT_MAX_OPENED_FOLDS)
		return false;
	if (at < folding->opened_count)
		folding->opened[at] = folding->opened[--folding->opened_count];
	else
		folding->opened[folding->opened_count++] = id;
	return true;
}

/* ---- Finding the promises that have rows ---- */

/* Clears the bits of promises that match a query, or of those that do not; a promise in the track of a matching actor matches
 * too.  Returns false without memory. */
static bool clear_matches(
    uint64_t *only, const char *text, bool matching, const struct weft_model *model, const struct weft_layout *whole)
{
	struct weft_query query;
	bool *in_track = calloc(whole->track_count + 1, sizeof *in_track);
	if (!in_track || weft_query_parse(&query, text, strlen(text), NULL) < 0) {
		free(in_track);
		return in_track != NULL;
	}
	/* A track has a larger number than the track that contains it. */
	for (size_t t = 0; t < whole->track_count; t++)
		in_track[t] = (whole->tracks[t].around < t && in_track[whole->tracks[t].around]) ||
			      weft_query_matches(&query, model, whole->tracks[t].actor);
	for (uint32_t p = WEFT_SYSTEM + 1; p < model->promise_count; p++) {
		const uint32_t track = whole->track_of ? whole->track_of[p] : WEFT_NONE;
		const bool is_match = (track != WEFT_NONE && in_track[track]) || weft_query_matches(&query, model, p);
		if (is_match == matching)
			only[p / 64] &= ~(1ull << p % 64);
	}
	weft_query_finish(&query);
	free(in_track);
	return true;
}

int weft_folding_find_shown(uint64_t **only, const struct weft_folding *folding, const struct weft_model *model,
    const struct weft_layout *whole, struct weft_error *err)
{
	const size_t words = model->promise_count / 64 + 1;
	uint64_t any = 0, *bits = *only;
	if (folding->hidden_count == 0 && !folding->only[0])
		return WEFT_OK;
	if (!bits && (bits = malloc(words * sizeof *bits))) {
		memset(bits, 0xff, words * sizeof *bits);
		bits[words - 1] = (1ull << model->promise_count % 64) - 1;
	}
	*only = bits;
	bool done = bits && (!folding->only[0] || clear_matches(bits, folding->only, false, model, whole));
	for (size_t i = 0; i < folding->hidden_count && done; i++)
		done = clear_matches(bits, folding->hidden[i], true, model, whole);
	if (!done)
		return weft_error_set(err, WEFT_ENOMEM, "no memory to hide promises");
	bits[0] &= ~1ull; /* the system */
	for (size_t w = 0; w < words; w++)
		any |= bits[w];
	return any ? WEFT_OK : weft_error_set(err, WEFT_ENOTFOUND, "no promise would be left");
}

/* ---- Finding the promises that share a line ---- */

struct finding {
	const struct weft_model *model;
	const struct weft_layout *whole;
	const uint64_t *only;
	uint32_t *leader_of;
	uint16_t *group_of;     /* for each promise, if rows are in groups: its group; or NULL */
	bool *folded;           /* by track */
	uint32_t *track_leader; /* for each track: the promise with which the track's promises share a line */
	struct weft_idmap map;  /* map from group_key() to the first promise of the group */
	const struct weft_roles *roles;
	/* For each process: its internal promise that starts first; WEFT_NONE if there are fewer than two; or NULL. */
	uint32_t *internal_leader;
};

static bool is_in(const struct finding *f, uint32_t promise)
{
	return !f->only || f->only[promise / 64] >> promise % 64 & 1;
}

static int64_t group_key(const struct finding *f, uint32_t promise)
{
	const struct weft_promise *p = &f->model->promises[promise];
	if (f->group_of)
		return (int64_t)((uint64_t)f->group_of[promise] << 16 | p->kind);
	return (int64_t)((uint64_t)(f->whole->track_of[promise] + 1) << 32 | (uint64_t)p->stream << 16 | p->kind);
}

/* Adds a matching promise, as the actor of a folded track or as a member of a group; the leader of a group is its promise that
 * starts first. */
static bool add_match(struct finding *f, uint32_t promise, uint64_t *matched)
{
	const struct weft_track *track = f->group_of ? NULL : weft_layout_track(f->whole, promise);
	const struct weft_promise *promises = f->model->promises;
	if (track) {
		f->folded[track - f->whole->tracks] = true;
		return true;
	}
	if (!f->group_of && weft_kind_has(promises[promise].kind, WEFT_TRAIT_ACTOR))
		return true;
	matched[promise / 64] |= 1ull << promise % 64;
	uint32_t first = weft_idmap_get(&f->map, group_key(f, promise));
	if (first != WEFT_IDMAP_NONE && promises[first].start_ns <= promises[promise].start_ns)
		return true;
	return weft_idmap_set(&f->map, group_key(f, promise), promise);
}

static uint32_t process_of(const struct finding *f, uint32_t promise)
{
	const struct weft_trace_info *info = f->model->trace;
	const uint16_t stream = f->model->promises[promise].stream;
	return info && stream < info->stream_count ? f->roles->part_of[stream] : 0;
}

/* Finds the promises that lead the lines of internal promises, which runtimes made for themselves.  Returns the number of such
 * lines, or -1 without memory. */
static int64_t find_internals(struct finding *f)
{
	const struct weft_trace_info *info = f->model->trace;
	const size_t parts = info && info->part_count > 0 ? info->part_count : 1;
	int64_t lines = 0;
	if (weft_model_roles(f->model, &f->roles) < 0)
		return -1;
	if (f->roles->internal_count < 2)
		return 0;
	uint32_t *count = calloc(parts, sizeof *count);
	f->internal_leader = malloc(parts * sizeof *f->internal_leader);
	if (!count || !f->internal_leader) {
		free(count);
		return -1;
	}
	memset(f->internal_leader, 0xff, parts * sizeof *f->internal_leader); /* WEFT_NONE */
	for (uint32_t p = WEFT_SYSTEM + 1; p < f->model->promise_count; p++) {
		if (!weft_is_internal(f->roles, p) || !is_in(f, p))
			continue;
		uint32_t *leader = &f->internal_leader[process_of(f, p)];
		if (*leader == WEFT_NONE || f->model->promises[p].start_ns < f->model->promises[*leader].start_ns)
			*leader = p;
		count[process_of(f, p)]++;
	}
	for (size_t i = 0; i < parts; i++) {
		lines += count[i] > 1;
		f->internal_leader[i] = count[i] > 1 ? f->internal_leader[i] : WEFT_NONE;
	}
	free(count);
	return lines;
}

static void find_leaders(struct finding *f, const uint64_t *matched)
{
	for (uint32_t p = WEFT_SYSTEM + 1; p < f->model->promise_count; p++) {
		uint32_t leader = f->whole->track_of[p] != WEFT_NONE ? f->track_leader[f->whole->track_of[p]] : WEFT_NONE;
		if (leader == WEFT_NONE && matched[p / 64] >> p % 64 & 1)
			leader = weft_idmap_get(&f->map, group_key(f, p));
		if (leader == WEFT_NONE && f->internal_leader && weft_is_internal(f->roles, p) && is_in(f, p))
			leader = f->internal_leader[process_of(f, p)];
		if (leader != WEFT_NONE)
			f->leader_of[p] = leader == p ? WEFT_NONE : leader;
	}
	/* The leader of a fold of the whole layout may now itself share another promise's line. */
	for (uint32_t p = WEFT_SYSTEM + 1; p < f->model->promise_count; p++)
		if (f->leader_of[p] != WEFT_NONE && f->leader_of[f->leader_of[p]] != WEFT_NONE)
			f->leader_of[p] = f->leader_of[f->leader_of[p]];
}

/* Number of promises in the tracks of one OS thread at one depth. */
struct level {
	uint64_t all, most; /* all: number in all tracks; most: number in the largest track */
};

enum { LEVELS = 16 };

/* Returns the smallest depth at which the promises of an OS thread are spread over several tracks, or 0.  At smaller depths, one
 * track contains nearly all promises: the track of a loop, a listener, or the only connection. */
static uint32_t first_spread(const struct level *levels)
{
	for (uint32_t d = 1; d < LEVELS; d++)
		if (levels[d].most < levels[d].all / 4 * 3)
			return d;
	return 0;
}

/* Folds the tracks at the depth of a folding, except those that the user opened.  A track has a larger number than the track
 * that contains it.  Returns the number of folded tracks, or -1 without memory. */
static int64_t fold_depth(struct finding *f, const struct weft_folding *folding)
{
	const struct weft_layout *whole = f->whole;
	const struct weft_promise *promises = f->model->promises;
	size_t n = whole->track_count, streams = 1;
	int64_t folded = 0;
	for (size_t t = 0; t < n; t++)
		streams =
		    streams > promises[whole->tracks[t].actor].stream ? streams : promises[whole->tracks[t].actor].stream + 1u;
	uint32_t *count = calloc(2 * n + 1, sizeof *count);
	struct level(*levels)[LEVELS] = calloc(streams, sizeof *levels);
	if (!count || !levels) {
		free(count);
		free(levels);
		return -1;
	}
	uint32_t *depth = count + n;
	for (uint32_t p = WEFT_SYSTEM + 1; p < f->model->promise_count; p++)
		if (whole->track_of[p] != WEFT_NONE)
			count[whole->track_of[p]]++;
	for (size_t t = n; t-- > 0;)
		if (whole->tracks[t].around < t)
			count[whole->tracks[t].around] += count[t];
	for (size_t t = 0; t < n; t++) {
		depth[t] = 1 + (whole->tracks[t].around < t ? depth[whole->tracks[t].around] : 0);
		if (depth[t] >= LEVELS)
			continue;
		struct level *level = &levels[promises[whole->tracks[t].actor].stream][depth[t]];
		level->all += count[t];
		level->most = count[t] > level->most ? count[t] : level->most;
	}
	for (size_t t = 0; t < n; t++) {
		uint32_t first = first_spread(levels[promises[whole->tracks[t].actor].stream]);
		bool is_opened = false;
		for (size_t i = 0; i < folding->opened_count; i++)
			is_opened |= folding->opened[i] == promises[whole->tracks[t].actor].id;
		if (first > 0 && depth[t] == first + (uint32_t)folding->depth - 1 && !is_opened) {
			f->folded[t] = true;
			folded++;
		}
	}
	free(count);
	free(levels);
	return folded;
}

/* Sets for each track the actor of the outermost folded track around it, or its own actor if it is itself the outermost folded
 * one. */
static bool find_track_leaders(struct finding *f)
{
	const struct weft_layout *whole = f->whole;
	f->track_leader = malloc((whole->track_count + 1) * sizeof *f->track_leader);
	for (uint32_t t = 0; f->track_leader && t < whole->track_count; t++) {
		const struct weft_track *track = &whole->tracks[t];
		uint32_t outer = track->around < t ? f->track_leader[track->around] : WEFT_NONE;
		f->track_leader[t] = outer != WEFT_NONE                       ? outer
				     : f->folded[t] && is_in(f, track->actor) ? track->actor
									      : WEFT_NONE;
	}
	return f->track_leader;
}

int weft_folding_find(uint32_t **leader_of, const struct weft_folding *folding, const struct weft_model *model,
    const struct weft_layout *whole, const uint64_t *only, struct weft_error *err)
{
	struct finding f = {.model = model, .whole = whole, .only = only};
	*leader_of = NULL;
	bool is_grouped = folding->rows_by != WEFT_ROWS_BY_THREAD;
	const bool may_fold = folding->count > 0 || (folding->depth > 0 && whole->track_of && !is_grouped);
	int64_t internals = folding->shows_internals || is_grouped || !whole->track_of ? 0 : find_internals(&f);
	if (internals >= 0 && !may_fold && internals == 0) {
		free(f.internal_leader);
		return WEFT_OK;
	}
	if (is_grouped) {
		size_t count;
		bool is_rest;
		int status = weft_groups_find(&f.group_of, &count, &is_rest, model, folding->rows_by, err);
		if (status < 0)
			return status; /* rows in groups have no leaders of internal promises */
	}
	uint64_t *matched = calloc(model->promise_count / 64 + 1, sizeof *matched);
	f.leader_of = malloc((model->promise_count + 1) * sizeof *f.leader_of);
	f.folded = calloc(whole->track_count + 1, sizeof *f.folded);
	bool done = matched && f.leader_of && f.folded && internals >= 0;
	if (done)
		memset(f.leader_of, 0xff, (model->promise_count + 1) * sizeof *f.leader_of); /* WEFT_NONE */
	for (size_t i = 0; done && !only && i < whole->fold_count; i++)
		for (uint32_t k = 1; k < whole->folds[i].count; k++)
			f.leader_of[whole->folded[whole->folds[i].first + k]] = whole->folds[i].leader;
	int64_t by_depth = done && folding->depth > 0 && whole->track_of && !is_grouped ? fold_depth(&f, folding) : 0;
	done = done && by_depth >= 0;
	for (size_t q = 0; done && q < folding->count; q++) {
		struct weft_query query;
		if (weft_query_parse(&query, folding->queries[q], strlen(folding->queries[q]), NULL) < 0)
			continue;
		for (uint32_t p = WEFT_SYSTEM + 1; done && p < model->promise_count; p++)
			if (is_in(&f, p) && weft_query_matches(&query, model, p))
				done = add_match(&f, p, matched);
		weft_query_finish(&query);
	}
	done = done && find_track_leaders(&f);
	if (done && whole->track_of)
		find_leaders(&f, matched);
	free(matched);
	free(f.folded);
	free(f.track_leader);
	free(f.group_of);
	free(f.internal_leader);
	weft_idmap_finish(&f.map);
	if (!done) {
		free(f.leader_of);
		return weft_error_set(err, WEFT_ENOMEM, "no memory to fold %zu promises", model->promise_count);
	}
	if (folding->count == 0 && by_depth == 0 && internals == 0) {
		free(f.leader_of);
		return WEFT_OK;
	}
	*leader_of = f.leader_of;
	return WEFT_OK;
}

int weft_folding_find_depth(int *depth, const struct weft_model *model, const struct weft_layout *whole, struct weft_error *err)
{
	enum { MAX_DEPTH = 3, ROWS_THAT_FIT = 40 };
	struct weft_folding folding = {.shows_internals = true};
	int found = 0;
	for (int d = 1; d <= MAX_DEPTH && whole->track_count > 0; d++) {
		struct weft_layout *layout = NULL;
		uint32_t *leader_of = NULL;
		folding.depth = d;
		int status = weft_folding_find(&leader_of, &folding, model, whole, NULL, err);
		if (status == WEFT_OK && leader_of)
			status = weft_layout_create_folded(&layout, model, NULL, NULL, leader_of, err);
		free(leader_of);
		if (status < 0)
			return status;
		uint32_t rows = layout ? layout->row_count : UINT32_MAX;
		weft_layout_destroy(layout);
		if (rows > whole->row_count / 4 * 3 || (d > 1 && rows > ROWS_THAT_FIT))
			break;
		found = d;
	}
	*depth = found;
	return WEFT_OK;
}

static double height_for_rows(const struct weft_view *v, double lanes_px)
{
	return v->height_px - lanes_px - WEFT_VIEW_TOP_PX - WEFT_VIEW_BOTTOM_PX;
}

void weft_thinness_measure(struct weft_thinness *t, struct weft_view *v)
{
	enum { PLACES = 9 };
	int64_t from_ns = v->from_ns, span = v->model->end_ns > 0 ? v->model->end_ns : 1;
	double px_per_ns = v->px_per_ns, focus = v->focus;
	bool holds_rows = v->holds_rows;
	t->promises = (double)v->model->promise_count;
	weft_view_hold_rows(v, false);
	for (int scale = 0; scale < WEFT_THIN_SCALES; scale++) {
		uint32_t rows[PLACES];
		int64_t length = span >> scale;
		for (int i = 0; i < PLACES; i++) {
			int64_t from = (int64_t)((double)(span - length) * i / (PLACES - 1));
			weft_view_show(v, from, from + length);
			uint32_t count = weft_view_rank(v, v->layout->row_count);
			int at = i;
			for (; at > 0 && rows[at - 1] > count; at--)
				rows[at] = rows[at - 1];
			rows[at] = count;
		}
		t->rows[scale] = rows[PLACES / 2];
	}
	weft_view_hold_rows(v, holds_rows);
	weft_view_restore(v, from_ns, px_per_ns, focus);
}

bool weft_thinness_at(const struct weft_thinness *t, const struct weft_view *v, double lanes_px)
{
	double length = v->lulls ? (double)weft_view_time(v, v->width_px) - (double)v->from_ns : v->width_px / v->px_per_ns;
	double span = (double)v->model->end_ns;
	int scale = 0;
	while (scale + 1 < WEFT_THIN_SCALES && length * 1.5 < span) {
		length *= 2;
		scale++;
	}
	/* `promises` becomes the part of the width that each promise has on its row. */
	double promises = t->promises, rows = t->rows[scale];
	for (int i = 0; i < scale; i++)
		promises /= 2;
	bool is_crowded = v->width_px * rows < WEFT_NAMED_PROMISE_PX * (promises + rows);
	return height_for_rows(v, lanes_px) < (is_crowded ? WEFT_CROWDED_ROW_PX : WEFT_THIN_ROW_PX) * rows;
}

/* ---- Sums over the promises of a fold ---- */

/* Sorted times; sums[i] is the sum of the times before i.  The sums may wrap around; their differences are exact. */
struct times {
	int64_t *times;
	uint64_t *sums;
};

struct weft_fold_index {
	size_t *lives, *runs, *failures; /* for each fold: index at which its times start; one more entry marks the end */
	struct times start, end, run_start, run_end;
	int64_t *failed;
};

static bool allocate_times(struct times *t, size_t count, size_t folds)
{
	t->times = calloc(count > 0 ? count : 1, sizeof *t->times);
	t->sums = calloc(count + folds + 1, sizeof *t->sums);
	return t->times && t->sums;
}

static void sum_up(struct times *t, const size_t *begin, size_t folds)
{
	for (size_t i = 0; i < folds; i++) {
		weft_sort(t->times + begin[i], begin[i + 1] - begin[i], sizeof *t->times, weft_compare_i64);
		uint64_t *sums = t->sums + begin[i] + i;
		sums[0] = 0;
		for (size_t k = begin[i]; k < begin[i + 1]; k++)
			sums[k - begin[i] + 1] = sums[k - begin[i]] + (uint64_t)t->times[k];
	}
}

/* A walk over the times of one fold, in time order. */
struct walk {
	const struct times *times;
	size_t first, end, at, sums;
};

static struct walk start_walk(const struct times *t, const size_t *begin, size_t fold)
{
	return (struct walk){t, begin[fold], begin[fold + 1], begin[fold], begin[fold] + fold};
}

/* Returns the sum of (until_ns - time) over all times before `until_ns`, which must not decrease between calls. */
static uint64_t time_before(struct walk *w, int64_t until_ns)
{
	const int64_t *times = w->times->times;
	w->at = WEFT_FIND_FIRST_NEAR(i, w->at, w->end, times[i] >= until_ns);
	size_t n = w->at - w->first;
	return (uint64_t)n * (uint64_t)until_ns - w->times->sums[w->sums + n];
}

static bool has_failed(const struct weft_promise *p)
{
	return weft_promise_went_wrong(p);
}

/* The actor of a track does not count as one of the track's promises, but the actor's runs count. */
static void add_fold(struct weft_fold_index *x, const struct weft_model *m, const struct weft_layout *layout, size_t fold)
{
	const struct weft_fold *f = &layout->folds[fold];
	size_t life = x->lives[fold], run = x->runs[fold], failure = x->failures[fold];
	for (uint32_t k = 0; k < f->count; k++) {
		const struct weft_promise *p = &m->promises[layout->folded[f->first + k]];
		int64_t end_ns = p->end_ns > p->start_ns ? p->end_ns : p->start_ns;
		for (uint32_t r = p->runs; r < p[1].runs; r++, run++) {
			x->run_start.times[run] = m->runs[r].start_ns;
			x->run_end.times[run] = m->runs[r].end_ns;
		}
		if (has_failed(p))
			x->failed[failure++] = end_ns;
		if (k == 0 && f->is_track)
			continue;
		x->start.times[life] = p->start_ns;
		x->end.times[life++] = end_ns;
	}
	weft_sort(x->failed + x->failures[fold], failure - x->failures[fold], sizeof *x->failed, weft_compare_i64);
}

int weft__fold_index_create(struct weft_fold_index **out, const struct weft_model *m, const struct weft_layout *layout)
{
	struct weft_fold_index *x = NULL;
	size_t n = layout->fold_count;
	if (n == 0 || (!layout->folds[0].is_track && !layout->folds[0].is_group))
		return WEFT_OK;
	x = calloc(1, sizeof *x);
	bool done = x && (x->lives = calloc(3 * (n + 1), sizeof *x->lives));
	if (done) {
		x->runs = x->lives + n + 1;
		x->failures = x->runs + n + 1;
		for (size_t i = 0; i < n; i++) {
			const struct weft_fold *f = &layout->folds[i];
			size_t runs = 0, failures = 0;
			for (uint32_t k = 0; k < f->count; k++) {
				const struct weft_promise *p = &m->promises[layout->folded[f->first + k]];
				runs += p[1].runs - p->runs;
				failures += has_failed(p);
			}
			x->lives[i + 1] = x->lives[i] + f->count - f->is_track;
			x->runs[i + 1] = x->runs[i] + runs;
			x->failures[i + 1] = x->failures[i] + failures;
		}
		done = allocate_times(&x->start, x->lives[n], n) && allocate_times(&x->end, x->lives[n], n) &&
		       allocate_times(&x->run_start, x->runs[n], n) && allocate_times(&x->run_end, x->runs[n], n) &&
		       (x->failed = malloc((x->failures[n] + 1) * sizeof *x->failed));
	}
	for (size_t i = 0; done && i < n; i++)
		add_fold(x, m, layout, i);
	if (!done) {
		weft__fold_index_destroy(x);
		return WEFT_ENOMEM;
	}
	sum_up(&x->start, x->lives, n);
	sum_up(&x->end, x->lives, n);
	sum_up(&x->run_start, x->runs, n);
	sum_up(&x->run_end, x->runs, n);
	*out = x;
	return WEFT_OK;
}

void weft__fold_index_destroy(struct weft_fold_index *x)
{
	if (!x)
		return;
	struct times *all[] = {&x->start, &x->end, &x->run_start, &x->run_end};
	for (size_t i = 0; i < 4; i++) {
		free(all[i]->times);
		free(all[i]->sums);
	}
	free(x->lives);
	free(x->failed);
	free(x);
}

void weft_view_sum_fold(const struct weft_view *v, size_t fold, const int64_t *times_ns, size_t count, struct weft_fold_sum *sums)
{
	const struct weft_fold_index *x = v->index->folds;
	memset(sums, 0, count * sizeof *sums);
	if (!x)
		return;
	struct walk begun = start_walk(&x->start, x->lives, fold), ended = start_walk(&x->end, x->lives, fold);
	struct walk run = start_walk(&x->run_start, x->runs, fold), rested = start_walk(&x->run_end, x->runs, fold);
	size_t failed = x->failures[fold], failures_end = x->failures[fold + 1];
	uint64_t alive_before = 0, running_before = 0;
	size_t failed_before = 0;
	for (size_t i = 0; i <= count; i++) {
		/* The sums may wrap around; their differences are exact. */
		uint64_t alive = time_before(&begun, times_ns[i]) - time_before(&ended, times_ns[i]);
		uint64_t running = time_before(&run, times_ns[i]) - time_before(&rested, times_ns[i]);
		failed = WEFT_FIND_FIRST_NEAR(k, failed, failures_end, x->failed[k] >= times_ns[i]);
		if (i > 0 && times_ns[i] > times_ns[i - 1]) {
			double span = (double)times_ns[i] - (double)times_ns[i - 1];
			sums[i - 1] = (struct weft_fold_sum){.alive = (double)(int64_t)(alive - alive_before) / span,
			    .running = (double)(int64_t)(running - running_before) / span,
			    .failed = failed - failed_before};
		}
		alive_before = alive;
		running_before = running;
		failed_before = failed;
	}
}
