/* outlier.c: promises that took far longer than the others of their sort and place.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "analysis/path.h"
#include "base/sort.h"

enum {
	LEAST_PEERS = 16,  /* fewer have no usual time */
	TIMES_MEDIAN = 10, /* from there on it is far longer */
	TIMES_STALL = 10,  /* and so many stalls at least */
	MOST_OUTLIERS = 5, /* if more than one in so many takes as long, that is usual */
	MOST_TOLD = 8,
	MOST_LOOKED_AT = 32
};

struct took {
	uint32_t group, site, promise;
	int64_t ns;
};

struct slowest {
	uint32_t promise, count, peers;
	int64_t took_ns, median_ns;
};

static int compare_took(const void *a, const void *b)
{
	const struct took *x = a, *y = b;
	return WEFT_ORDER(x->group, y->group) ?: WEFT_ORDER(x->site, y->site) ?: WEFT_ORDER(x->ns, y->ns) ?:
	       WEFT_ORDER(x->promise, y->promise);
}

static int compare_slowest(const void *a, const void *b)
{
	const struct slowest *x = a, *y = b;
	return WEFT_ORDER(y->took_ns, x->took_ns) ?: WEFT_ORDER(x->promise, y->promise);
}

static bool has_usual_time(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return f->sorts.items.items[f->sorts.of[p]].named && f->ties.ended_ns[p] != WEFT_NEVER && promise->start_ns >= 0 &&
	       promise->end != WEFT_END_BECAME && !(promise->flags & WEFT_PROMISE_START_UNKNOWN) &&
	       !weft_kind_has(promise->kind, WEFT__TRAITS_LASTING) && !weft_model_was_cancelled(f->model, promise);
}

/* Whether it waited, for most of that time, for one that is told of itself. */
static bool waited_for_another(const struct weft__finder *f, uint32_t p, int64_t took_ns, const bool *is_slow)
{
	for (uint32_t i = f->ties.out_begin[p]; i < f->ties.out_begin[p + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->ties.out[i]];
		uint32_t input = f->ties.now[link->to];
		int64_t from_ns = link->time_ns, to_ns = f->ties.ended_ns[link->to];
		if (link->kind == WEFT_LINK_AWAIT && input != p && (is_slow[link->to] || is_slow[input]) && to_ns != WEFT_NEVER &&
		    to_ns - from_ns >= took_ns / 2)
			return true;
	}
	return false;
}

/* It ran, or was held up by what ran meanwhile, for most of the time: that is told of as a stall or as starvation, if it is a
 * fault.  Or it waited for most of the time for one that is told of itself. */
static bool is_by_another(const struct weft_path *path, uint32_t p, int64_t took_ns, const bool *is_slow)
{
	int64_t held_ns = 0, other_ns = 0;
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_path_step *step = &path->steps[i];
		int64_t ns = step->end_ns - step->start_ns;
		held_ns += step->kind != WEFT_STEP_WAITING || step->behind != WEFT_NONE ? ns : 0;
		other_ns += step->kind == WEFT_STEP_WAITING && step->promise != p && is_slow[step->promise] ? ns : 0;
	}
	return held_ns > took_ns / 2 || other_ns > took_ns / 2;
}

/* Whether that was told. */
static bool tell_slowest(struct weft__finder *f, const struct slowest *s, const bool *is_slow)
{
	uint32_t p = s->promise;
	struct weft_path *path = NULL;
	if (weft_path_create_with(&path, &f->ties, p, NULL) == WEFT_ENOMEM)
		f->no_memory = true;
	bool is_own = path && !is_by_another(path, p, s->took_ns, is_slow);
	struct weft_finding *finding =
	    is_own ? weft__finding_begin(f, WEFT_FINDING_SLOW, p, f->model->promises[p].start_ns, f->ties.ended_ns[p]) : NULL;
	if (finding) {
		const char *name = weft__words_name(f, p), *at = weft__words_at(f, p);
		const char *more = s->count == 1 ? "" : weft__finding_text(f, ", and so did %" PRIu32 " more", s->count - 1);
		finding->weight = (uint64_t)s->took_ns;
		finding->title = weft__finding_text(f, "%s%s took %s%s; of %" PRIu32 " of its sort the median took %s", name, at,
		    weft__words_span(f, s->took_ns), more, s->peers, weft__words_span(f, s->median_ns));
		finding->next = weft__finding_text(f, "find out what was different that time%s", at);
		weft__words_creation(f, p);
		weft__slow_tell(f, p, path);
	}
	weft_path_destroy(path);
	return finding != NULL;
}

/* Of one sort and place, by their time: the slow ones are marked. */
static uint32_t mark_slow(const struct weft__finder *f, const struct took *of, size_t count, bool *is_slow)
{
	int64_t median_ns = of[count / 2].ns, least_ns = TIMES_STALL * f->options.stall_ns;
	uint32_t slow = 0;
	if (count < LEAST_PEERS)
		return 0;
	while (slow < count && of[count - 1 - slow].ns >= least_ns && of[count - 1 - slow].ns / TIMES_MEDIAN >= median_ns)
		slow++;
	if (slow > count / MOST_OUTLIERS)
		return 0;
	for (uint32_t i = 0; i < slow; i++)
		is_slow[of[count - 1 - i].promise] = true;
	return slow;
}

static size_t gather_times(struct weft__finder *f, const uint32_t *group, const bool *is_suspect, struct took *times)
{
	const struct weft_model *m = f->model;
	size_t count = 0;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++) {
		uint32_t of = group[f->sorts.of[p]];
		if (!is_suspect[of] || !has_usual_time(f, p))
			continue;
		if (times)
			times[count] = (struct took){of, m->promises[p].site, p, f->ties.ended_ns[p] - m->promises[p].start_ns};
		count++;
	}
	return count;
}

static void tell_all(struct weft__finder *f, struct took *times, size_t count, struct slowest *found, bool *is_slow)
{
	size_t found_count = 0;
	weft_sort(times, count, sizeof *times, compare_took);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i; end < count && times[end].group == times[i].group && times[end].site == times[i].site; end++)
			;
		uint32_t slow = mark_slow(f, &times[i], end - i, is_slow);
		if (slow > 0)
			found[found_count++] = (struct slowest){
			    times[end - 1].promise, slow, (uint32_t)(end - i), times[end - 1].ns, times[i + (end - i) / 2].ns};
	}
	weft_sort(found, found_count, sizeof *found, compare_slowest);
	for (size_t i = 0, told = 0, looked = 0; i < found_count && told < MOST_TOLD && looked < MOST_LOOKED_AT; i++) {
		if (waited_for_another(f, found[i].promise, found[i].took_ns, is_slow))
			continue;
		looked++;
		told += tell_slowest(f, &found[i], is_slow);
	}
}

void weft__find_slow(struct weft__finder *f)
{
	const size_t sorts = f->sorts.items.count;
	const uint32_t *group = weft__finding_shapes(f);
	bool *is_suspect = weft__finding_alloc(f, sorts, sizeof *is_suspect), any = false;
	for (size_t s = 0; group && is_suspect && s < sorts; s++)
		if (f->sorts.items.items[s].longest_ns >= TIMES_STALL * f->options.stall_ns)
			any = is_suspect[group[s]] = true;
	size_t count = any ? gather_times(f, group, is_suspect, NULL) : 0;
	if (count >= LEAST_PEERS) {
		struct took *times = weft__finding_alloc(f, count, sizeof *times);
		struct slowest *found = weft__finding_alloc(f, count / LEAST_PEERS, sizeof *found);
		bool *is_slow = weft__finding_alloc(f, f->model->promise_count, sizeof *is_slow);
		if (times && found && is_slow && gather_times(f, group, is_suspect, times) == count)
			tell_all(f, times, count, found, is_slow);
		free(times);
		free(found);
		free(is_slow);
	}
	free(is_suspect);
}
