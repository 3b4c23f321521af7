/* fold.c: which promises stand on whose line, and how many of them at a time.
 *
 * Of the promises of a fold, starts and ends are sorted apart, with sums: how long promises were alive before a time is the
 * difference of two sums.  SPDX-License-Identifier: ISC */
#include "view/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/idmap.h"
#include "base/search.h"
#include "base/sort.h"
#include "view/index.h"

bool weft_folding_has(const struct weft_folding *folding, const char *query)
{
	for (size_t i = 0; i < folding->count; i++)
		if (strcmp(folding->queries[i], query) == 0)
			return true;
	return false;
}

bool weft_folding_toggle(struct weft_folding *folding, const char *query)
{
	struct weft_query parsed;
	size_t len = strlen(query), at = 0;
	if (len == 0 || len > WEFT_QUERY_BYTES || weft_query_parse(&parsed, query, len, NULL) < 0 || parsed.count == 0)
		return false;
	while (at < folding->count && strcmp(folding->queries[at], query) != 0)
		at++;
	if (at < folding->count) {
		folding->count--;
		memmove(folding->queries[at], folding->queries[at + 1], (folding->count - at) * sizeof *folding->queries);
	} else if (folding->count < WEFT_FOLDS_MOST) {
		memcpy(folding->queries[folding->count++], query, len + 1);
	} else {
		return false;
	}
	return true;
}

/* ---- who stands on whose line ---- */

struct finding {
	const struct weft_model *model;
	const struct weft_layout *whole;
	const uint64_t *only;
	uint32_t *leader_of;
	bool *folded;          /* by track */
	struct weft_idmap map; /* from group_key() to the first of the group */
};

static bool is_in(const struct finding *f, uint32_t promise)
{
	return !f->only || f->only[promise / 64] >> promise % 64 & 1;
}

static int64_t group_key(const struct finding *f, uint32_t promise)
{
	const struct weft_promise *p = &f->model->promises[promise];
	return (int64_t)((uint64_t)(f->whole->track_of[promise] + 1) << 32 | (uint64_t)p->stream << 16 | p->kind);
}

/* What matches: an actor's track, or a member of a group, of which the first to begin becomes the leader. */
static bool add_match(struct finding *f, uint32_t promise, uint64_t *matched)
{
	const struct weft_track *track = weft_layout_track(f->whole, promise);
	const struct weft_promise *promises = f->model->promises;
	if (track) {
		f->folded[track - f->whole->tracks] = true;
		return true;
	}
	if (weft_kind_has(promises[promise].kind, WEFT_TRAIT_ACTOR))
		return true;
	matched[promise / 64] |= 1ull << promise % 64;
	uint32_t first = weft_idmap_get(&f->map, group_key(f, promise));
	if (first != WEFT_IDMAP_NONE && promises[first].start_ns <= promises[promise].start_ns)
		return true;
	return weft_idmap_set(&f->map, group_key(f, promise), promise);
}

/* The actor of the outermost track that is folded around a promise. */
static uint32_t outermost(const struct finding *f, uint32_t promise)
{
	uint32_t leader = WEFT_NONE;
	for (uint32_t t = f->whole->track_of[promise]; t != WEFT_NONE; t = f->whole->tracks[t].around)
		if (f->folded[t] && is_in(f, f->whole->tracks[t].actor))
			leader = f->whole->tracks[t].actor;
	return leader;
}

static void find_leaders(struct finding *f, const uint64_t *matched)
{
	for (uint32_t p = WEFT_SYSTEM + 1; p < f->model->promise_count; p++) {
		uint32_t leader = outermost(f, p);
		if (leader == WEFT_NONE && matched[p / 64] >> p % 64 & 1)
			leader = weft_idmap_get(&f->map, group_key(f, p));
		if (leader != WEFT_NONE)
			f->leader_of[p] = leader == p ? WEFT_NONE : leader;
	}
	/* Who leads a fold of the whole layout may stand on another's line now. */
	for (uint32_t p = WEFT_SYSTEM + 1; p < f->model->promise_count; p++)
		if (f->leader_of[p] != WEFT_NONE && f->leader_of[f->leader_of[p]] != WEFT_NONE)
			f->leader_of[p] = f->leader_of[f->leader_of[p]];
}

int weft_folding_find(uint32_t **leader_of, const struct weft_folding *folding, const struct weft_model *model,
    const struct weft_layout *whole, const uint64_t *only, struct weft_error *err)
{
	struct finding f = {.model = model, .whole = whole, .only = only};
	*leader_of = NULL;
	if (folding->count == 0)
		return WEFT_OK;
	uint64_t *matched = calloc(model->promise_count / 64 + 1, sizeof *matched);
	f.leader_of = malloc((model->promise_count + 1) * sizeof *f.leader_of);
	f.folded = calloc(whole->track_count + 1, sizeof *f.folded);
	bool done = matched && f.leader_of && f.folded;
	if (done)
		memset(f.leader_of, 0xff, (model->promise_count + 1) * sizeof *f.leader_of); /* WEFT_NONE */
	for (size_t i = 0; done && !only && i < whole->fold_count; i++)
		for (uint32_t k = 1; k < whole->folds[i].count; k++)
			f.leader_of[whole->folded[whole->folds[i].first + k]] = whole->folds[i].leader;
	for (size_t q = 0; done && q < folding->count; q++) {
		struct weft_query query;
		if (weft_query_parse(&query, folding->queries[q], strlen(folding->queries[q]), NULL) < 0)
			continue;
		for (uint32_t p = WEFT_SYSTEM + 1; done && p < model->promise_count; p++)
			if (is_in(&f, p) && weft_query_matches(&query, model, p))
				done = add_match(&f, p, matched);
		weft_query_finish(&query);
	}
	if (done)
		find_leaders(&f, matched);
	free(matched);
	free(f.folded);
	weft_idmap_finish(&f.map);
	if (!done) {
		free(f.leader_of);
		return weft_error_set(err, WEFT_ENOMEM, "no memory to fold %zu promises", model->promise_count);
	}
	*leader_of = f.leader_of;
	return WEFT_OK;
}

/* ---- how many stand there ---- */

/* Sorted times, and at [i] the sum of those before i, which may wrap around: differences are right. */
struct times {
	int64_t *times;
	uint64_t *sums;
};

struct weft_fold_index {
	size_t *lives, *runs, *failures; /* by fold: where its times begin, and behind the last */
	struct times start, end, run_start, run_end;
	int64_t *failed;
};

static bool allocate(struct times *t, size_t count, size_t folds)
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

/* How much time the times of a fold that are before `at` are before it, in all. */
static uint64_t before(const struct times *t, const size_t *begin, size_t fold, int64_t at)
{
	size_t first = begin[fold], n = WEFT_FIRST(i, first, begin[fold + 1], t->times[i] >= at) - first;
	return (uint64_t)n * (uint64_t)at - t->sums[first + fold + n];
}

static double covered(
    const struct times *start, const struct times *end, const size_t *begin, size_t fold, int64_t from, int64_t to)
{
	uint64_t begun = before(start, begin, fold, to) - before(start, begin, fold, from);
	uint64_t ended = before(end, begin, fold, to) - before(end, begin, fold, from);
	return (double)(int64_t)(begun - ended);
}

static bool has_failed(const struct weft_promise *p)
{
	return weft_promise_went_wrong(p);
}

/* The leader of a track is not among what it leads; what it runs is its own all the same. */
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
		done = allocate(&x->start, x->lives[n], n) && allocate(&x->end, x->lives[n], n) &&
		       allocate(&x->run_start, x->runs[n], n) && allocate(&x->run_end, x->runs[n], n) &&
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

struct weft_fold_sum weft_view_sum_fold(const struct weft_view *v, size_t fold, int64_t from_ns, int64_t to_ns)
{
	const struct weft_fold_index *x = v->index->folds;
	if (!x || to_ns <= from_ns)
		return (struct weft_fold_sum){0};
	double span = (double)to_ns - (double)from_ns;
	size_t first = WEFT_FIRST(i, x->failures[fold], x->failures[fold + 1], x->failed[i] >= from_ns);
	size_t last = WEFT_FIRST(i, first, x->failures[fold + 1], x->failed[i] >= to_ns);
	return (struct weft_fold_sum){.alive = covered(&x->start, &x->end, x->lives, fold, from_ns, to_ns) / span,
	    .running = covered(&x->run_start, &x->run_end, x->runs, fold, from_ns, to_ns) / span,
	    .failed = last - first};
}
