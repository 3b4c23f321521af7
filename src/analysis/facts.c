/* facts.c: what is known of one promise.
 *
 * Links stand twice in order of the promise, the kind and the time: once by who did it, once by whom it was done to.  What is
 * looked for is found by halving, so that no table by promise is needed.  SPDX-License-Identifier: ISC */
#include "analysis/facts.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/life.h"
#include "analysis/shapes.h"
#include "analysis/walk.h"
#include "model/kernel.h"

struct measured {
	int64_t end_ns, ready_ns, running_ns;
};

struct weft_facts {
	const struct weft_model *model;
	uint32_t *by_from, *by_to; /* indices of links */
	uint32_t *created;         /* promises, by who created them */
	uint32_t *came;            /* those that became another, by what they became */
	size_t created_count, came_count;
	struct measured *measured; /* by promise */
	uint32_t *sort_of;         /* by promise, or NULL */
	size_t sorts;
};

/* Turns counts into where each one's items begin. */
static void sum_up(uint32_t *begin, size_t count)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t own = begin[i];
		begin[i] = sum;
		sum += own;
	}
}

static void sort_links(const struct weft_model *m, uint32_t *out, uint32_t *begin, bool by_to)
{
	memset(begin, 0, m->promise_count * sizeof *begin);
	for (size_t l = 0; l < m->link_count; l++)
		begin[by_to ? m->links[l].to : m->links[l].from]++;
	sum_up(begin, m->promise_count);
	for (int kind = 0; kind < WEFT_LINK_KINDS; kind++)
		for (size_t l = 0; l < m->link_count; l++)
			if (m->links[l].kind == kind)
				out[begin[by_to ? m->links[l].to : m->links[l].from]++] = (uint32_t)l;
}

static uint32_t creator_of(const struct weft_model *m, uint32_t promise)
{
	return m->promises[promise].created_by;
}

static uint32_t became_of(const struct weft_model *m, uint32_t promise)
{
	return m->promises[promise].became;
}

/* Those promises that have a key, in its order. */
static size_t sort_promises(
    const struct weft_model *m, uint32_t *out, uint32_t *begin, uint32_t (*key)(const struct weft_model *m, uint32_t promise))
{
	size_t count = 0;
	memset(begin, 0, m->promise_count * sizeof *begin);
	for (uint32_t p = 0; p < m->promise_count; p++)
		if (key(m, p) != WEFT_NONE) {
			begin[key(m, p)]++;
			count++;
		}
	sum_up(begin, m->promise_count);
	for (uint32_t p = 0; p < m->promise_count; p++)
		if (key(m, p) != WEFT_NONE)
			out[begin[key(m, p)]++] = p;
	return count;
}

static bool measure(struct weft_facts *f)
{
	struct weft__lives lives;
	bool ok = weft__lives_begin(&lives, f->model);
	for (uint32_t p = 0; ok && p < f->model->promise_count; p++) {
		struct weft__life life = {0};
		ok = p == WEFT_SYSTEM || weft__lives_measure(&lives, p, &life);
		f->measured[p] = (struct measured){lives.ends[p], life.ready_ns, life.running_ns};
	}
	weft__lives_finish(&lives);
	return ok;
}

static bool build(struct weft_facts *f)
{
	const struct weft_model *m = f->model;
	size_t merged = 0;
	for (size_t p = 0; p < m->promise_count; p++)
		merged += m->promises[p].became != WEFT_NONE;
	uint32_t *begin = malloc((m->promise_count + 1) * sizeof *begin);
	f->by_from = malloc((m->link_count + 1) * sizeof *f->by_from);
	f->by_to = malloc((m->link_count + 1) * sizeof *f->by_to);
	f->created = malloc((m->promise_count + 1) * sizeof *f->created);
	f->came = malloc((merged + 1) * sizeof *f->came);
	f->measured = malloc((m->promise_count + 1) * sizeof *f->measured);
	bool ok = begin && f->by_from && f->by_to && f->created && f->came && f->measured;
	if (ok) {
		sort_links(m, f->by_from, begin, false);
		sort_links(m, f->by_to, begin, true);
		f->created_count = sort_promises(m, f->created, begin, creator_of);
		f->came_count = sort_promises(m, f->came, begin, became_of);
	}
	free(begin);
	return ok && measure(f);
}

int weft_facts_create(struct weft_facts **out, const struct weft_model *model, struct weft_error *err)
{
	struct weft_facts *f = calloc(1, sizeof *f);
	if (f)
		f->model = model;
	if (!f || !build(f)) {
		weft_facts_destroy(f);
		return weft_error_set(err, WEFT_ENOMEM, "no memory to know %zu promises", model->promise_count);
	}
	*out = f;
	return WEFT_OK;
}

void weft_facts_destroy(struct weft_facts *f)
{
	if (!f)
		return;
	free(f->by_from);
	free(f->by_to);
	free(f->created);
	free(f->came);
	free(f->measured);
	free(f->sort_of);
	free(f);
}

const struct weft_model *weft_facts_model(const struct weft_facts *f)
{
	return f->model;
}

struct weft_times weft_facts_times(const struct weft_facts *f, uint32_t promise)
{
	const struct weft_promise *p = &f->model->promises[promise];
	const struct measured *m = &f->measured[promise];
	int64_t rest = p->end_ns - p->start_ns - m->ready_ns - m->running_ns;
	return (struct weft_times){rest > 0 ? rest : 0, m->ready_ns, m->running_ns,
	    weft_kernel_promise_off_ns(f->model, promise, p->start_ns, p->end_ns)};
}

int64_t weft_facts_end(const struct weft_facts *f, uint32_t promise)
{
	return f->measured[promise].end_ns;
}

/* A list of links or promises, and which items of it are meant. */
struct list {
	const uint32_t *items;
	size_t begin, end;
	bool is_links, by_to;
};

/* Where in the order of links `promise` and `kind` have their place. */
static size_t links_from(const struct weft_facts *f, const uint32_t *items, bool by_to, uint32_t promise, int kind)
{
	size_t low = 0, high = f->model->link_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct weft_link *link = &f->model->links[items[middle]];
		uint32_t own = by_to ? link->to : link->from;
		if (own < promise || (own == promise && link->kind < kind))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct list links_of(const struct weft_facts *f, uint32_t promise, enum weft_link_kind kind, bool by_to)
{
	const uint32_t *items = by_to ? f->by_to : f->by_from;
	return (struct list){.items = items,
	    .begin = links_from(f, items, by_to, promise, kind),
	    .end = links_from(f, items, by_to, promise, (int)kind + 1),
	    .is_links = true,
	    .by_to = by_to};
}

static size_t promises_from(const struct weft_facts *f, const uint32_t *items, size_t count,
    uint32_t (*key)(const struct weft_model *m, uint32_t promise), uint32_t promise)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (key(f->model, items[middle]) < promise)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct list promises_of(const struct weft_facts *f, const uint32_t *items, size_t count,
    uint32_t (*key)(const struct weft_model *m, uint32_t promise), uint32_t promise)
{
	return (struct list){.items = items,
	    .begin = promises_from(f, items, count, key, promise),
	    .end = promises_from(f, items, count, key, promise + 1)};
}

static struct list list_of(const struct weft_facts *f, uint32_t promise, enum weft_relation relation)
{
	const struct weft_promise *p = &f->model->promises[promise];
	switch (relation) {
	case WEFT_RELATION_CREATED_BY:
		return (struct list){
		    .items = &p->created_by, .end = p->created_by != WEFT_NONE && !(p->flags & WEFT_PROMISE_START_UNKNOWN)};
	case WEFT_RELATION_BECAME: return (struct list){.items = &p->became, .end = p->became != WEFT_NONE};
	case WEFT_RELATION_AWAITS: return links_of(f, promise, WEFT_LINK_AWAIT, false);
	case WEFT_RELATION_READ: return links_of(f, promise, WEFT_LINK_READ, false);
	case WEFT_RELATION_SIGNALLED_BY: return links_of(f, promise, WEFT_LINK_SIGNAL, true);
	case WEFT_RELATION_RESOLVED_BY: return links_of(f, promise, WEFT_LINK_RESOLVE, true);
	case WEFT_RELATION_CAME_FROM: return promises_of(f, f->came, f->came_count, became_of, promise);
	case WEFT_RELATION_AWAITED_BY: return links_of(f, promise, WEFT_LINK_AWAIT, true);
	case WEFT_RELATION_READ_BY: return links_of(f, promise, WEFT_LINK_READ, true);
	case WEFT_RELATION_SIGNALLED: return links_of(f, promise, WEFT_LINK_SIGNAL, false);
	case WEFT_RELATION_RESOLVED: return links_of(f, promise, WEFT_LINK_RESOLVE, false);
	case WEFT_RELATION_CREATED: return promises_of(f, f->created, f->created_count, creator_of, promise);
	default: return (struct list){0};
	}
}

/* When one that is not a link happened. */
static int64_t time_of(const struct weft_facts *f, uint32_t promise, uint32_t other, enum weft_relation relation)
{
	const struct weft_promise *promises = f->model->promises;
	switch (relation) {
	case WEFT_RELATION_CREATED_BY: return promises[promise].start_ns;
	case WEFT_RELATION_BECAME: return promises[promise].end_ns;
	case WEFT_RELATION_CAME_FROM: return promises[other].end_ns;
	default: return promises[other].start_ns;
	}
}

size_t weft_facts_count(const struct weft_facts *f, uint32_t promise, enum weft_relation relation)
{
	struct list list = list_of(f, promise, relation);
	return list.end - list.begin;
}

size_t weft_facts_list(
    const struct weft_facts *f, uint32_t promise, enum weft_relation relation, size_t first, struct weft_fact *out, size_t most)
{
	struct list list = list_of(f, promise, relation);
	size_t count = list.end - list.begin;
	count = first < count ? count - first : 0;
	count = count < most ? count : most;
	for (size_t i = 0; i < count; i++) {
		uint32_t item = list.items[list.begin + first + i];
		if (!list.is_links) {
			out[i] = (struct weft_fact){item, time_of(f, promise, item, relation), false};
			continue;
		}
		const struct weft_link *link = &f->model->links[item];
		out[i] = (struct weft_fact){list.by_to ? link->from : link->to, link->time_ns,
		    link->kind == WEFT_LINK_AWAIT && f->measured[link->to].end_ns > f->model->promises[link->from].end_ns};
	}
	return count;
}

/* ---- walk.h ---- */

/* The last, or the first, in a relation; its promise is WEFT_NONE if there is none. */
static struct weft_fact one_of(const struct weft_facts *f, uint32_t promise, enum weft_relation relation, bool last)
{
	struct weft_fact fact = {.promise = WEFT_NONE, .time_ns = INT64_MIN};
	size_t count = weft_facts_count(f, promise, relation);
	if (count > 0)
		weft_facts_list(f, promise, relation, last ? count - 1 : 0, &fact, 1);
	return fact;
}

#define AWAITS_LOOKED_AT 64u

static uint32_t awaited(const struct weft_facts *f, uint32_t promise)
{
	struct weft_fact awaits[AWAITS_LOOKED_AT];
	size_t count = weft_facts_count(f, promise, WEFT_RELATION_AWAITS);
	if (f->model->promises[promise].became != WEFT_NONE)
		return f->model->promises[promise].became;
	count = weft_facts_list(
	    f, promise, WEFT_RELATION_AWAITS, count > AWAITS_LOOKED_AT ? count - AWAITS_LOOKED_AT : 0, awaits, AWAITS_LOOKED_AT);
	for (size_t i = count; i-- > 0;)
		if (awaits[i].is_open)
			return awaits[i].promise;
	struct weft_fact read = one_of(f, promise, WEFT_RELATION_READ, true);
	if (count > 0 && awaits[count - 1].time_ns > read.time_ns)
		return awaits[count - 1].promise;
	uint32_t creator = f->model->promises[promise].created_by;
	if (read.promise == WEFT_NONE && creator != WEFT_NONE &&
	    weft_kind_has(f->model->promises[creator].kind, WEFT_TRAIT_CONDITION))
		return creator;
	return read.promise;
}

static uint32_t woken(const struct weft_facts *f, uint32_t promise)
{
	static const enum weft_relation order[] = {
	    WEFT_RELATION_READ_BY, WEFT_RELATION_SIGNALLED, WEFT_RELATION_AWAITED_BY, WEFT_RELATION_CAME_FROM};
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		uint32_t to = one_of(f, promise, order[i], false).promise;
		if (to != WEFT_NONE && to != WEFT_SYSTEM)
			return to;
	}
	return WEFT_NONE;
}

uint32_t weft_walk(const struct weft_facts *f, uint32_t promise, enum weft_step step)
{
	uint32_t to = WEFT_NONE;
	switch (step) {
	case WEFT_STEP_AWAITED: to = awaited(f, promise); break;
	case WEFT_STEP_RESOLVER:
		to = f->model->promises[promise].became;
		if (to == WEFT_NONE)
			to = one_of(f, promise, WEFT_RELATION_RESOLVED_BY, true).promise;
		break;
	case WEFT_STEP_CREATOR: to = one_of(f, promise, WEFT_RELATION_CREATED_BY, true).promise; break;
	case WEFT_STEP_WOKEN: to = woken(f, promise); break;
	default: break;
	}
	return to == WEFT_SYSTEM || to == promise ? WEFT_NONE : to;
}

size_t weft_facts_links(const struct weft_facts *f, uint32_t promise, bool to_it, const uint32_t **links)
{
	const uint32_t *items = to_it ? f->by_to : f->by_from;
	size_t begin = links_from(f, items, to_it, promise, 0), end = links_from(f, items, to_it, promise, WEFT_LINK_KINDS);
	*links = items + begin;
	return end - begin;
}

/* By promise, the first sort with its shape. */
const uint32_t *weft_facts_sorts(struct weft_facts *f, size_t *count)
{
	const struct weft_model *m = f->model;
	struct weft_ties ties;
	struct weft__sorts sorts = {0};
	uint32_t *group = NULL;
	if (!f->sort_of && weft_ties_init(&ties, m, WEFT_TIES_NONE, NULL) == WEFT_OK) {
		if (weft__sorts_init(&sorts, &ties, NULL) == WEFT_OK &&
		    (group = malloc((sorts.items.count + 1) * sizeof *group)) &&
		    weft__shapes_group(group, m, &sorts, NULL) == WEFT_OK) {
			for (size_t p = 0; p < m->promise_count; p++)
				sorts.of[p] = group[sorts.of[p]];
			f->sort_of = sorts.of;
			f->sorts = sorts.items.count;
			sorts.of = NULL;
		}
		free(group);
		weft__sorts_finish(&sorts);
		weft_ties_finish(&ties);
	}
	*count = f->sorts;
	return f->sort_of;
}
