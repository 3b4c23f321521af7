/* outlier.c: promises that took far longer than the others of their sort and place.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "analysis/path.h"
#include "analysis/turns.h"
#include "base/duration.h"
#include "base/idmap.h"
#include "base/search.h"
#include "base/select.h"
#include "base/sort.h"
#include "base/vec.h"

enum {
	LEAST_PEERS = 16,  /* fewer have no usual time */
	TIMES_MEDIAN = 10, /* from there on it is far longer */
	TIMES_STALL = 10,  /* and so many stalls at least */
	MOST_OUTLIERS = 5, /* if more than one in so many takes as long, that is usual */
	TIMES_USUAL = 3,   /* of those that are too few for a median that says much */
	MOST_TOLD = 8,
	MOST_LOOKED_AT = 32
};

/* Of those of one sort and place, how long each took. */
struct place {
	uint32_t group, site;
	size_t count, end;            /* the last `count` before `end` in struct times are of it */
	int64_t longest_ns, least_ns; /* of those that turns do not tell of; from then on one is slow */
	uint32_t longest, found;      /* who took longest; the place's struct slowest, if any is slow */
};

struct times {
	WEFT_VEC(struct place) places;
	uint32_t *place_of; /* by promise: number + 1 of its place; 0 if it has no usual time */
	int64_t *ns;        /* by place, of those where one may be slow */
};

/* What others are told to have waited for, and is told of itself. */
struct told {
	bool *is_slow; /* by promise */
	bool *is_late; /* by turn */
};

struct slowest {
	uint32_t promise, count, peers;
	int64_t took_ns, median_ns;
};

static int compare_slowest(const void *a, const void *b)
{
	const struct slowest *x = a, *y = b;
	return WEFT_ORDER(y->took_ns, x->took_ns) ?: WEFT_ORDER(x->promise, y->promise);
}

/* A timer takes as long as it was told to, and some are started anew again and again: a loop that is late with it is a stall. */
static bool sort_has_usual_time(const struct weft__sort *sort)
{
	return sort->kind != WEFT_KIND_TIMER && sort->named && !weft_kind_has(sort->kind, WEFT__TRAITS_LASTING);
}

/* Of a sort that has one. */
static bool has_usual_time(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return f->ties.ended_ns[p] != WEFT_NEVER && (promise->start_ns >= 0 || weft__lacks_only_past_of(f->lacks, f->model, p)) &&
	       promise->end != WEFT_END_BECAME && !(promise->flags & WEFT_PROMISE_START_UNKNOWN) &&
	       !weft_model_was_cancelled(f->model, promise);
}

/* What had been written to the connection of a read before that brought an answer, or NULL. */
static const struct weft_turn *turn_of(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *read = &f->model->promises[p];
	if (read->kind != WEFT_KIND_STREAM_READ || read->created_by == WEFT_NONE || f->ties.ended_ns[p] == WEFT_NEVER)
		return NULL;
	const struct weft_turn *turn = weft_turn_before(f->model, read->created_by, f->ties.ended_ns[p] + 1);
	return turn && turn->answered_ns >= read->start_ns && turn->answered_ns <= f->ties.ended_ns[p] ? turn : NULL;
}

/* A read is begun long before its other end has to write, where a connection is kept.  What that end was asked, and answered
 * late, is told by late.c. */
static bool is_told_by_turns(const struct weft__finder *f, uint32_t p, int64_t took_ns)
{
	const struct weft_turn *turn = turn_of(f, p);
	return turn && (turn->is_question || turn->answered_ns - turn->last_ns < took_ns / 2);
}

/* Whether it waited, for most of that time, for one that is told of itself. */
static bool waited_for_another(const struct weft__finder *f, uint32_t p, int64_t took_ns, const struct told *told)
{
	for (uint32_t i = f->ties.out_begin[p]; i < f->ties.out_begin[p + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->ties.out[i]];
		uint32_t input = f->ties.now[link->to];
		int64_t from_ns = link->time_ns, to_ns = f->ties.ended_ns[link->to];
		if (link->kind == WEFT_LINK_AWAIT && input != p && (told->is_slow[link->to] || told->is_slow[input]) &&
		    to_ns != WEFT_NEVER && to_ns - from_ns >= took_ns / 2)
			return true;
	}
	return false;
}

/* Of what is waited for in a step. */
static bool is_told(const struct weft__finder *f, const struct weft_path_step *step, uint32_t p, const struct told *told)
{
	const struct weft_turn *turn =
	    step->connection != WEFT_NONE ? weft_turn_before(f->model, step->connection, step->end_ns) : NULL;
	return (turn && told->is_late[turn - f->model->turns]) || (step->promise != p && told->is_slow[step->promise]);
}

/* It ran, or was held up by what ran meanwhile, for most of the time: that is told of as a stall or as starvation, if it is a
 * fault.  Or it waited for most of the time for one that is told of itself. */
static bool is_by_another(
    const struct weft__finder *f, const struct weft_path *path, uint32_t p, int64_t took_ns, const struct told *told)
{
	int64_t held_ns = 0, other_ns = 0;
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_path_step *step = &path->steps[i];
		int64_t ns = step->end_ns - step->start_ns;
		held_ns += step->kind != WEFT_STEP_WAITING || step->behind != WEFT_NONE ? ns : 0;
		other_ns += step->kind == WEFT_STEP_WAITING && is_told(f, step, p, told) ? ns : 0;
	}
	return held_ns > took_ns / 2 || other_ns > took_ns / 2;
}

/* Whether the path says what else was waited for, most of the time: a read on who asks next ends when he was answered. */
static bool waited_for_what_is_known(const struct weft_path *path, uint32_t p, uint32_t connection, int64_t took_ns)
{
	int64_t other_ns = 0;
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_path_step *step = &path->steps[i];
		const bool is_other = step->connection != WEFT_NONE ? step->connection != connection
								    : step->promise != p && step->promise != WEFT_SYSTEM;
		other_ns += step->kind == WEFT_STEP_WAITING && is_other ? step->end_ns - step->start_ns : 0;
	}
	return other_ns > took_ns / 2;
}

/* Who is at the other end of a connection that it is read from: that one answers late. */
static void tell_peer(struct weft__finder *f, struct weft_finding *finding, uint32_t p)
{
	const struct weft_promise *promises = f->model->promises;
	const uint32_t connection = promises[p].created_by;
	const char *name = weft__words_name(f, connection);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, connection, "it came late from the other end of %s%s", name,
	    weft__words_at(f, connection));
	finding->next = weft__words_next_late(f, connection);
}

static bool reads_of_connection(const struct weft_model *m, uint32_t p)
{
	const uint32_t by = m->promises[p].created_by;
	return m->promises[p].kind == WEFT_KIND_STREAM_READ && by != WEFT_NONE &&
	       weft_kind_has(m->promises[by].kind, WEFT_TRAIT_CONNECTION);
}

/* Whether that was told. */
static bool tell_slowest(struct weft__finder *f, const struct slowest *s, const struct told *told)
{
	uint32_t p = s->promise;
	struct weft_path *path = NULL;
	if (weft_path_create_with(&path, &f->ties, p, NULL) == WEFT_ENOMEM)
		f->no_memory = true;
	bool is_own = path && !is_by_another(f, path, p, s->took_ns, told);
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
		const bool is_by_peer = reads_of_connection(f->model, p) &&
					!waited_for_what_is_known(path, p, f->model->promises[p].created_by, s->took_ns);
		weft__slow_tell(f, p, path);
		if (is_by_peer)
			tell_peer(f, finding, p);
	}
	weft_path_destroy(path);
	return finding != NULL;
}

/* The place of a promise; NULL when out of memory.  A sort has one place most of the time: `recent` is the number + 1 of what was
 * found last for the sort. */
static struct place *find_place(struct times *times, struct weft_idmap *map, uint32_t *recent, uint32_t group, uint32_t site)
{
	struct place *place = *recent ? &times->places.items[*recent - 1] : NULL;
	if (place && place->site == site && place->group == group)
		return place;
	int64_t key = (int64_t)((uint64_t)group << 32 | site);
	uint32_t number = weft_idmap_get(map, key);
	if (number == WEFT_IDMAP_NONE) {
		place = weft_vec_push(&times->places);
		number = (uint32_t)times->places.count - 1;
		if (!place || !weft_idmap_set(map, key, number))
			return NULL;
		*place = (struct place){.group = group, .site = site};
	}
	*recent = number + 1;
	return &times->places.items[number];
}

/* Finds the place of each, and who took longest there. */
static void gather_places(struct weft__finder *f, struct times *times, const uint32_t *group, const bool *is_suspect)
{
	const struct weft_model *m = f->model;
	struct weft_idmap map = {0};
	uint32_t *recent = weft__finding_alloc(f, f->sorts.items.count, sizeof *recent);
	for (uint32_t p = 1; recent && p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++) {
		uint32_t sort = f->sorts.of[p];
		if (!is_suspect[sort] || !has_usual_time(f, p))
			continue;
		struct place *place = find_place(times, &map, &recent[sort], group[sort], m->promises[p].site);
		if (!place) {
			f->no_memory = true;
			break;
		}
		int64_t ns = f->ties.ended_ns[p] - m->promises[p].start_ns;
		if (ns >= place->longest_ns && !is_told_by_turns(f, p, ns)) {
			place->longest_ns = ns;
			place->longest = p;
		}
		place->count++;
		times->place_of[p] = (uint32_t)(place - times->places.items) + 1;
	}
	free(recent);
	weft_idmap_finish(&map);
}

static bool may_be_slow(const struct weft__finder *f, const struct place *place)
{
	return place->count >= LEAST_PEERS && place->longest_ns >= TIMES_STALL * f->options.stall_ns;
}

/* How long each took, place by place. */
static bool gather_times(struct weft__finder *f, struct times *times)
{
	const struct weft_model *m = f->model;
	size_t all = 0;
	for (size_t i = 0; i < times->places.count; i++) {
		times->places.items[i].end = all;
		all += may_be_slow(f, &times->places.items[i]) ? times->places.items[i].count : 0;
	}
	if (all == 0 || !(times->ns = weft__finding_alloc(f, all, sizeof *times->ns)))
		return false;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++) {
		struct place *place = times->place_of[p] ? &times->places.items[times->place_of[p] - 1] : NULL;
		if (place && may_be_slow(f, place))
			times->ns[place->end++] = f->ties.ended_ns[p] - m->promises[p].start_ns;
	}
	return true;
}

/* From when on one is slow in that place, or WEFT_NEVER; *median_ns as well. */
static int64_t find_least(const struct weft__finder *f, const struct times *times, const struct place *place, int64_t *median_ns)
{
	int64_t *ns = &times->ns[place->end - place->count];
	*median_ns = weft_select(ns, place->count, place->count / 2);
	if (*median_ns > INT64_MAX / TIMES_MEDIAN)
		return WEFT_NEVER;
	int64_t least_ns = weft_max_ns(*median_ns * TIMES_MEDIAN, TIMES_STALL * f->options.stall_ns);
	size_t slow = 0;
	for (size_t i = 0; i < place->count; i++)
		slow += ns[i] >= least_ns;
	return place->longest_ns >= least_ns && slow <= place->count / MOST_OUTLIERS ? least_ns : WEFT_NEVER;
}

/* Of what spins the trace has one round for all that were alike: who came again and again there seems to have lasted as long. */
static bool is_counted(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const uint32_t by = m->promises[p].created_by;
	for (size_t i = 0; by != WEFT_NONE && i < m->spin_count; i++)
		if (m->spins[i].time_ns > m->promises[p].start_ns && m->spins[i].time_ns < f->ties.ended_ns[p] &&
		    (f->ties.now[by] == m->spins[i].promise || m->promises[m->spins[i].promise].created_by == by))
			return true;
	return false;
}

static void tell_all(struct weft__finder *f, struct times *times, struct slowest *found, const struct told *told)
{
	const struct weft_model *m = f->model;
	size_t found_count = 0;
	for (uint32_t p = 1; m->turn_count > 0 && p < m->promise_count; p++) {
		const struct weft_turn *turn = turn_of(f, p);
		told->is_slow[p] = turn && told->is_late[turn - m->turns];
	}
	for (size_t i = 0; i < times->places.count; i++) {
		struct place *place = &times->places.items[i];
		int64_t median_ns = 0;
		place->least_ns = may_be_slow(f, place) ? find_least(f, times, place, &median_ns) : WEFT_NEVER;
		if (place->least_ns != WEFT_NEVER)
			found[found_count++] =
			    (struct slowest){place->longest, 0, (uint32_t)place->count, place->longest_ns, median_ns};
		place->found = (uint32_t)found_count - 1;
	}
	for (uint32_t p = 1; found_count > 0 && p < m->promise_count; p++) {
		const struct place *place = times->place_of[p] ? &times->places.items[times->place_of[p] - 1] : NULL;
		const int64_t ns = f->ties.ended_ns[p] - m->promises[p].start_ns;
		if (place && place->least_ns != WEFT_NEVER && ns >= place->least_ns && !is_told_by_turns(f, p, ns)) {
			told->is_slow[p] = true;
			found[place->found].count++;
		}
	}
	weft_sort(found, found_count, sizeof *found, compare_slowest);
	for (size_t i = 0, told_count = 0, looked = 0; i < found_count && told_count < MOST_TOLD && looked < MOST_LOOKED_AT;
	     i++) {
		if (waited_for_another(f, found[i].promise, found[i].took_ns, told) || is_counted(f, found[i].promise))
			continue;
		looked++;
		told_count += tell_slowest(f, &found[i], told);
	}
}

/* ---- What others are asked for: a name server, a peer ---- */

static int compare_ns(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return WEFT_ORDER(*x, *y);
}

typedef WEFT_VEC(uint32_t) promises_vec;

/* Those of a kind; false when out of memory. */
static bool list_kind(const struct weft__finder *f, enum weft_kind kind, promises_vec *list)
{
	for (uint32_t p = 1; p < f->model->promise_count && weft__sorts_have(&f->sorts, kind); p++) {
		if (f->sorts.kinds[p] != kind || !sort_has_usual_time(&f->sorts.items.items[f->sorts.of[p]]) ||
		    !has_usual_time(f, p))
			continue;
		uint32_t *added = weft_vec_push(list);
		if (!added)
			return false;
		*added = p;
	}
	return true;
}

/* How long they took, in order; the caller frees it.  NULL: there are none, or no memory, which is noted. */
static int64_t *times_of(struct weft__finder *f, const promises_vec *list)
{
	int64_t *times = list->count > 0 ? weft__finding_alloc(f, list->count, sizeof *times) : NULL;
	for (size_t i = 0; times && i < list->count; i++)
		times[i] = f->ties.ended_ns[list->items[i]] - f->model->promises[list->items[i]].start_ns;
	if (times)
		weft_sort(times, list->count, sizeof *times, compare_ns);
	return times;
}

static bool tell_dependency(struct weft__finder *f, uint32_t p, const int64_t *times, size_t count, const struct told *told)
{
	const int64_t took_ns = f->ties.ended_ns[p] - f->model->promises[p].start_ns;
	const bool is_name = f->model->promises[p].kind == WEFT_KIND_GETADDRINFO;
	struct weft_path *path = NULL;
	if (weft_path_create_with(&path, &f->ties, p, NULL) == WEFT_ENOMEM)
		f->no_memory = true;
	struct weft_finding *finding =
	    path && !is_by_another(f, path, p, took_ns, told)
		? weft__finding_begin(f, WEFT_FINDING_SLOW, p, f->model->promises[p].start_ns, f->ties.ended_ns[p])
		: NULL;
	if (finding) {
		const char *name = weft__words_name(f, p), *at = weft__words_at(f, p);
		const char *usual = count > 1 ? weft__finding_text(f, "; of %zu of its kind the median took %s", count,
						    weft__words_span(f, times[(count - 1) / 2]))
					      : "";
		finding->weight = (uint64_t)took_ns;
		finding->title = weft__finding_text(f, "%s%s took %s: %s answered late%s", name, at, weft__words_span(f, took_ns),
		    is_name ? "whoever knows names" : "the peer", usual);
		finding->next = is_name ? "look at the name servers, and in which order they are asked; keep their answers, and "
					  "give up after some time"
					: "look at that peer; a timeout, or a second address, would help";
		weft__words_creation(f, p);
		weft__finding_evidence(
		    f, WEFT_EVIDENCE_CAUSE, f->ties.ended_ns[p], p, "%s ends, %s later", name, weft__words_span(f, took_ns));
	}
	weft_path_destroy(path);
	return finding != NULL;
}

/* Names and connections are asked for less often than 16 times: one that took so long is told if it is the only one, or took
 * three times as long as is usual. */
static void find_dependencies(struct weft__finder *f, const struct told *told)
{
	static const enum weft_kind kinds[] = {WEFT_KIND_GETADDRINFO, WEFT_KIND_CONNECT};
	const int64_t least_ns = TIMES_STALL * f->options.stall_ns;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		promises_vec list = {0};
		f->no_memory |= !list_kind(f, kinds[k], &list);
		int64_t *times = times_of(f, &list);
		const size_t count = times ? list.count : 0;
		const int64_t late_ns = count > 1 ? weft_max_ns(least_ns, TIMES_USUAL * times[(count - 1) / 2]) : least_ns;
		for (size_t i = 0, told_count = 0; i < count && times[count - 1] >= late_ns && told_count < MOST_TOLD; i++) {
			const uint32_t p = list.items[i];
			if (!told->is_slow[p] && f->ties.ended_ns[p] - f->model->promises[p].start_ns >= late_ns)
				told_count += tell_dependency(f, p, times, count, told);
		}
		free(times);
		weft_vec_free(&list);
	}
}

void weft__find_slow(struct weft__finder *f)
{
	const size_t sorts = f->sorts.items.count;
	const uint32_t *group = weft__finding_shapes(f);
	bool *is_suspect = weft__finding_alloc(f, sorts, sizeof *is_suspect), any = false;
	for (size_t s = 0; group && is_suspect && s < sorts; s++)
		any |= is_suspect[s] = f->shape_longest_ns[group[s]] >= TIMES_STALL * f->options.stall_ns &&
				       sort_has_usual_time(&f->sorts.items.items[s]);
	struct times times = {.place_of = any ? weft__finding_alloc(f, f->model->promise_count, sizeof *times.place_of) : NULL};
	const struct told told = {
	    weft__finding_alloc(f, f->model->promise_count, 1), weft__finding_alloc(f, f->model->turn_count, 1)};
	const bool has_memory = told.is_slow && told.is_late;
	if (has_memory)
		weft__late_find(f, told.is_late);
	if (has_memory && times.place_of)
		gather_places(f, &times, group, is_suspect);
	if (has_memory && !f->no_memory && gather_times(f, &times)) {
		struct slowest *found = weft__finding_alloc(f, times.places.count, sizeof *found);
		if (found)
			tell_all(f, &times, found, &told);
		free(found);
	}
	if (has_memory)
		find_dependencies(f, &told);
	free(told.is_slow);
	free(told.is_late);
	weft_vec_free(&times.places);
	free(times.place_of);
	free(times.ns);
	free(is_suspect);
}
