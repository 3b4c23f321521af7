/* slow_route.c: reports served requests that took far longer than most requests of their process, if slow_outlier.c cannot
 * compare them with fast requests of their own type: all requests of the type are slow, or the type has few requests.
 * SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "analysis/findings/slow.h"
#include "analysis/index/path_by_process.h"
#include "base/duration.h"
#include "base/select.h"
#include "base/sort.h"
#include "base/vec.h"

/* The duration of a served request. */
struct duration {
	size_t part;    /* trace of its process */
	uint32_t group; /* its type group */
	uint32_t promise;
	int64_t ns;
};

typedef WEFT_VEC(struct duration) duration_vec;
typedef WEFT_VEC(struct weft__slowest) slowest_vec;

/* Orders by part, type group and duration, the longest first. */
static int compare_durations(const void *a, const void *b)
{
	const struct duration *x = a, *y = b;
	return WEFT_ORDER(x->part, y->part)
		   ?: WEFT_ORDER(x->group, y->group) ?: WEFT_ORDER(y->ns, x->ns) ?: WEFT_ORDER(x->promise, y->promise);
}

static int compare_slowest(const void *a, const void *b)
{
	const struct weft__slowest *x = a, *y = b;
	return WEFT_ORDER(y->took_ns, x->took_ns) ?: WEFT_ORDER(x->promise, y->promise);
}

static void list_durations(struct weft__finder *f, const uint32_t *group, duration_vec *list)
{
	for (uint32_t p = 1; p < f->model->promise_count && weft__finding_may_continue(f, p, f->model->promise_count); p++) {
		if (f->types.kinds[p] != WEFT_KIND_REQUEST || !weft__is_served(f, p) || !weft__slow_has_duration(f, p))
			continue;
		struct duration *added = weft_vec_push(list);
		if (!added) {
			f->no_memory = true;
			return;
		}
		*added = (struct duration){weft_part_of(f->model, p), group[f->types.of[p]], p,
		    f->link_index.ended_ns[p] - f->model->promises[p].start_ns};
	}
	weft_sort(list->items, list->count, sizeof *list->items, compare_durations);
}

/* Returns the median of the durations, or -1 on lack of memory, which is noted in the finder. */
static int64_t find_median(struct weft__finder *f, const struct duration *durations, size_t count)
{
	int64_t *ns = weft__finding_alloc(f, count, sizeof *ns);
	for (size_t i = 0; ns && i < count; i++)
		ns[i] = durations[i].ns;
	const int64_t median_ns = ns ? weft_select_kth(ns, count, count / 2) : -1;
	free(ns);
	return median_ns;
}

/* Adds the slowest request of each type group that slow_outlier.c cannot judge, among the requests of one process. */
static void gather_slowest(struct weft__finder *f, const struct duration *durations, size_t count, slowest_vec *out)
{
	const int64_t median_ns = count >= MIN_PEERS ? find_median(f, durations, count) : -1;
	if (median_ns < 0 || median_ns > INT64_MAX / TIMES_MEDIAN)
		return;
	const int64_t least_ns = weft_max_ns(median_ns * TIMES_MEDIAN, TIMES_STALL * f->options.stall_ns);
	size_t slow = 0;
	for (size_t i = 0; i < count; i++)
		slow += durations[i].ns >= least_ns;
	if (slow > count / OUTLIER_DIVISOR)
		return;
	for (size_t begin = 0, end; begin < count; begin = end) {
		size_t slow_of_type = 0;
		for (end = begin; end < count && durations[end].group == durations[begin].group; end++)
			slow_of_type += durations[end].ns >= least_ns;
		const size_t of_type = end - begin;
		if (slow_of_type == 0 || (of_type >= MIN_PEERS && slow_of_type <= of_type / OUTLIER_DIVISOR))
			continue;
		struct weft__slowest *added = weft_vec_push(out);
		if (!added) {
			f->no_memory = true;
			return;
		}
		*added = (struct weft__slowest){durations[begin].promise, (uint32_t)slow_of_type, (uint32_t)count,
		    durations[begin].ns, median_ns, true, false};
	}
}

void weft__slow_route_find(struct weft__finder *f, const uint32_t *group, const struct weft__slow_reported *reported)
{
	duration_vec durations = {0};
	slowest_vec slowest = {0};
	if (weft__promise_types_have(&f->types, WEFT_KIND_REQUEST))
		list_durations(f, group, &durations);
	for (size_t begin = 0, end; begin < durations.count && !f->no_memory; begin = end) {
		end = begin;
		while (end < durations.count && durations.items[end].part == durations.items[begin].part)
			end++;
		gather_slowest(f, &durations.items[begin], end - begin, &slowest);
	}
	weft_sort(slowest.items, slowest.count, sizeof *slowest.items, compare_slowest);
	for (size_t i = 0, count = 0; i < slowest.count && count < MAX_REPORTED; i++)
		if (!reported->is_slow[slowest.items[i].promise] && !weft__slow_has_finding(f, slowest.items[i].promise))
			count += weft__slow_report(f, &slowest.items[i], reported);
	weft_vec_free(&durations);
	weft_vec_free(&slowest);
}
