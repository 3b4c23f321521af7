/* promise_info.c: answers questions about one promise.
 *
 * Links are sorted twice by promise, kind and time: once by the promise from which they come, once by the promise to which they
 * lead.  Binary search finds the links of a promise, so that no table by promise is needed.  SPDX-License-Identifier: ISC */
#include "analysis/queries/promise_info.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/index/account.h"
#include "analysis/index/label_patterns.h"
#include "analysis/queries/walk.h"

struct measured {
	int64_t end_ns; /* end of the promise, or of the promise that it became */
	struct weft_state_times times;
};

struct weft_promise_info {
	const struct weft_model *model;
	uint32_t *by_from, *by_to; /* link numbers, sorted */
	uint32_t *created;         /* promises, sorted by creator */
	uint32_t *predecessors;    /* promises that became another promise, sorted by the promise that they became */
	size_t created_count, predecessor_count;
	struct measured *measured; /* by promise */
	uint32_t *type_of;         /* by promise, or NULL */
	size_t type_count;
};

/* Replaces an array of counts by the start positions that follow from them. */
static void counts_to_offsets(uint32_t *begin, size_t count)
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
	counts_to_offsets(begin, m->promise_count);
	for (int kind = 0; kind < WEFT_LINK_KINDS; kind++)
		for (size_t l = 0; l < m->link_count; l++)
			if (m->links[l].kind == kind)
				out[begin[by_to ? m->links[l].to : m->links[l].from]++] = (uint32_t)l;
}

static uint32_t get_creator(const struct weft_model *m, uint32_t promise)
{
	return m->promises[promise].created_by;
}

static uint32_t get_successor(const struct weft_model *m, uint32_t promise)
{
	return m->promises[promise].became;
}

/* Returns the promises that have a key, sorted by the key. */
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
	counts_to_offsets(begin, m->promise_count);
	for (uint32_t p = 0; p < m->promise_count; p++)
		if (key(m, p) != WEFT_NONE)
			out[begin[key(m, p)]++] = p;
	return count;
}

static bool measure_promises(struct weft_promise_info *f)
{
	struct weft_link_index link_index;
	if (weft_link_index_init(&link_index, f->model, WEFT_LINK_INDEX_ALL, NULL) < 0)
		return false;
	bool ok = true;
	for (uint32_t p = 0; ok && p < f->model->promise_count; p++) {
		f->measured[p].end_ns = link_index.ended_ns[p];
		ok = weft_account_measure(link_index.accounts, p, &f->measured[p].times);
	}
	weft_link_index_finish(&link_index);
	return ok;
}

static bool build_indexes(struct weft_promise_info *f)
{
	const struct weft_model *m = f->model;
	size_t merged = 0;
	for (size_t p = 0; p < m->promise_count; p++)
		merged += m->promises[p].became != WEFT_NONE;
	uint32_t *begin = malloc((m->promise_count + 1) * sizeof *begin);
	f->by_from = malloc((m->link_count + 1) * sizeof *f->by_from);
	f->by_to = malloc((m->link_count + 1) * sizeof *f->by_to);
	f->created = malloc((m->promise_count + 1) * sizeof *f->created);
	f->predecessors = malloc((merged + 1) * sizeof *f->predecessors);
	f->measured = malloc((m->promise_count + 1) * sizeof *f->measured);
	bool ok = begin && f->by_from && f->by_to && f->created && f->predecessors && f->measured;
	if (ok) {
		sort_links(m, f->by_from, begin, false);
		sort_links(m, f->by_to, begin, true);
		f->created_count = sort_promises(m, f->created, begin, get_creator);
		f->predecessor_count = sort_promises(m, f->predecessors, begin, get_successor);
	}
	free(begin);
	return ok && measure_promises(f);
}

int weft_promise_info_create(struct weft_promise_info **out, const struct weft_model *model, struct weft_error *err)
{
	struct weft_promise_info *f = calloc(1, sizeof *f);
	if (f)
		f->model = model;
	if (!f || !build_indexes(f)) {
		weft_promise_info_destroy(f);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory for %zu promises", model->promise_count);
	}
	*out = f;
	return WEFT_OK;
}

void weft_promise_info_destroy(struct weft_promise_info *f)
{
	if (!f)
		return;
	free(f->by_from);
	free(f->by_to);
	free(f->created);
	free(f->predecessors);
	free(f->measured);
	free(f->type_of);
	free(f);
}

const struct weft_model *weft_promise_info_model(const struct weft_promise_info *f)
{
	return f->model;
}

struct weft_state_times weft_promise_info_times(const struct weft_promise_info *f, uint32_t promise)
{
	return f->measured[promise].times;
}

int64_t weft_promise_info_end_ns(const struct weft_promise_info *f, uint32_t promise)
{
	return f->measured[promise].end_ns;
}

/* Returns whether a link is an await that was never given up, if the awaited promise was still pending when the waiter ended.
 * A callback may await a lock after its promise has ended. */
static bool is_open_await(const struct weft_promise_info *f, const struct weft_link *link)
{
	return link->kind == WEFT_LINK_AWAIT && f->measured[link->to].end_ns > f->model->promises[link->from].end_ns &&
	       weft_model_await_end(f->model, link) == INT64_MAX;
}

/* A range within a list of links or promises. */
struct list {
	const uint32_t *items;
	size_t begin, end;
	bool is_links, by_to;
};

/* Returns the position of `promise` and `kind` in a sorted list of links. */
static size_t find_link_index(const struct weft_promise_info *f, const uint32_t *items, bool by_to, uint32_t promise, int kind)
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

static struct list list_links(const struct weft_promise_info *f, uint32_t promise, enum weft_link_kind kind, bool by_to)
{
	const uint32_t *items = by_to ? f->by_to : f->by_from;
	return (struct list){.items = items,
	    .begin = find_link_index(f, items, by_to, promise, kind),
	    .end = find_link_index(f, items, by_to, promise, (int)kind + 1),
	    .is_links = true,
	    .by_to = by_to};
}

static size_t find_promise_index(const struct weft_promise_info *f, const uint32_t *items, size_t count,
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

static struct list list_promises(const struct weft_promise_info *f, const uint32_t *items, size_t count,
    uint32_t (*key)(const struct weft_model *m, uint32_t promise), uint32_t promise)
{
	return (struct list){.items = items,
	    .begin = find_promise_index(f, items, count, key, promise),
	    .end = find_promise_index(f, items, count, key, promise + 1)};
}

static struct list list_related(const struct weft_promise_info *f, uint32_t promise, enum weft_relation relation)
{
	const struct weft_promise *p = &f->model->promises[promise];
	switch (relation) {
	case WEFT_RELATION_CREATED_BY:
		return (struct list){
		    .items = &p->created_by, .end = p->created_by != WEFT_NONE && !(p->flags & WEFT_PROMISE_START_UNKNOWN)};
	case WEFT_RELATION_BECAME: return (struct list){.items = &p->became, .end = p->became != WEFT_NONE};
	case WEFT_RELATION_AWAITS: return list_links(f, promise, WEFT_LINK_AWAIT, false);
	case WEFT_RELATION_READ: return list_links(f, promise, WEFT_LINK_READ, false);
	case WEFT_RELATION_SIGNALLED_BY: return list_links(f, promise, WEFT_LINK_SIGNAL, true);
	case WEFT_RELATION_RESOLVED_BY: return list_links(f, promise, WEFT_LINK_RESOLVE, true);
	case WEFT_RELATION_CAME_FROM: return list_promises(f, f->predecessors, f->predecessor_count, get_successor, promise);
	case WEFT_RELATION_AWAITED_BY: return list_links(f, promise, WEFT_LINK_AWAIT, true);
	case WEFT_RELATION_READ_BY: return list_links(f, promise, WEFT_LINK_READ, true);
	case WEFT_RELATION_SIGNALLED: return list_links(f, promise, WEFT_LINK_SIGNAL, false);
	case WEFT_RELATION_RESOLVED: return list_links(f, promise, WEFT_LINK_RESOLVE, false);
	case WEFT_RELATION_CREATED: return list_promises(f, f->created, f->created_count, get_creator, promise);
	default: return (struct list){0};
	}
}

/* Returns the time of an item that is not a link. */
static int64_t get_relation_time(const struct weft_promise_info *f, uint32_t promise, uint32_t other, enum weft_relation relation)
{
	const struct weft_promise *promises = f->model->promises;
	switch (relation) {
	case WEFT_RELATION_CREATED_BY: return promises[promise].start_ns;
	case WEFT_RELATION_BECAME: return promises[promise].end_ns;
	case WEFT_RELATION_CAME_FROM: return promises[other].end_ns;
	default: return promises[other].start_ns;
	}
}

size_t weft_promise_info_count(const struct weft_promise_info *f, uint32_t promise, enum weft_relation relation)
{
	struct list list = list_related(f, promise, relation);
	return list.end - list.begin;
}

size_t weft_promise_info_list(const struct weft_promise_info *f, uint32_t promise, enum weft_relation relation, size_t first,
    struct weft_related_promise *out, size_t most)
{
	struct list list = list_related(f, promise, relation);
	size_t count = list.end - list.begin;
	count = first < count ? count - first : 0;
	count = count < most ? count : most;
	for (size_t i = 0; i < count; i++) {
		uint32_t item = list.items[list.begin + first + i];
		if (!list.is_links) {
			out[i] = (struct weft_related_promise){item, get_relation_time(f, promise, item, relation), false};
			continue;
		}
		const struct weft_link *link = &f->model->links[item];
		out[i] = (struct weft_related_promise){list.by_to ? link->from : link->to, link->time_ns, is_open_await(f, link)};
	}
	return count;
}

/* ---- walk.h ---- */

/* Returns the last or the first item of a relation; its promise is WEFT_NONE if there is none. */
static struct weft_related_promise get_one_related(
    const struct weft_promise_info *f, uint32_t promise, enum weft_relation relation, bool last)
{
	struct weft_related_promise fact = {.promise = WEFT_NONE, .time_ns = INT64_MIN};
	size_t count = weft_promise_info_count(f, promise, relation);
	if (count > 0)
		weft_promise_info_list(f, promise, relation, last ? count - 1 : 0, &fact, 1);
	return fact;
}

#define MAX_AWAITS_SCANNED 64u

static uint32_t find_awaited(const struct weft_promise_info *f, uint32_t promise)
{
	struct weft_related_promise awaits[MAX_AWAITS_SCANNED];
	size_t count = weft_promise_info_count(f, promise, WEFT_RELATION_AWAITS);
	if (f->model->promises[promise].became != WEFT_NONE)
		return f->model->promises[promise].became;
	count = weft_promise_info_list(f, promise, WEFT_RELATION_AWAITS,
	    count > MAX_AWAITS_SCANNED ? count - MAX_AWAITS_SCANNED : 0, awaits, MAX_AWAITS_SCANNED);
	for (size_t i = count; i-- > 0;)
		if (awaits[i].is_open)
			return awaits[i].promise;
	struct weft_related_promise read = get_one_related(f, promise, WEFT_RELATION_READ, true);
	if (count > 0 && awaits[count - 1].time_ns > read.time_ns)
		return awaits[count - 1].promise;
	uint32_t creator = f->model->promises[promise].created_by;
	if (read.promise == WEFT_NONE && creator != WEFT_NONE &&
	    weft_kind_has(f->model->promises[creator].kind, WEFT_TRAIT_CONDITION))
		return creator;
	return read.promise;
}

static uint32_t find_woken(const struct weft_promise_info *f, uint32_t promise)
{
	static const enum weft_relation order[] = {
	    WEFT_RELATION_READ_BY, WEFT_RELATION_SIGNALLED, WEFT_RELATION_AWAITED_BY, WEFT_RELATION_CAME_FROM};
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		uint32_t to = get_one_related(f, promise, order[i], false).promise;
		if (to != WEFT_NONE && to != WEFT_SYSTEM)
			return to;
	}
	return WEFT_NONE;
}

uint32_t weft_walk(const struct weft_promise_info *f, uint32_t promise, enum weft_walk_step step)
{
	uint32_t to = WEFT_NONE;
	switch (step) {
	case WEFT_WALK_AWAITED: to = find_awaited(f, promise); break;
	case WEFT_WALK_RESOLVER:
		to = f->model->promises[promise].became;
		if (to == WEFT_NONE)
			to = get_one_related(f, promise, WEFT_RELATION_RESOLVED_BY, true).promise;
		break;
	case WEFT_WALK_CREATOR: to = get_one_related(f, promise, WEFT_RELATION_CREATED_BY, true).promise; break;
	case WEFT_WALK_WOKEN: to = find_woken(f, promise); break;
	default: break;
	}
	return to == WEFT_SYSTEM || to == promise ? WEFT_NONE : to;
}

size_t weft_promise_info_links(const struct weft_promise_info *f, uint32_t promise, bool to_it, const uint32_t **links)
{
	const uint32_t *items = to_it ? f->by_to : f->by_from;
	size_t begin = find_link_index(f, items, to_it, promise, 0),
	       end = find_link_index(f, items, to_it, promise, WEFT_LINK_KINDS);
	*links = items + begin;
	return end - begin;
}

/* Sets, by promise, the first type with the promise's label pattern. */
const uint32_t *weft_promise_info_types(struct weft_promise_info *f, size_t *count)
{
	const struct weft_model *m = f->model;
	struct weft_link_index link_index;
	struct weft__promise_types types = {0};
	uint32_t *group = NULL;
	if (!f->type_of && weft_link_index_init(&link_index, m, WEFT_LINK_INDEX_NONE, NULL) == WEFT_OK) {
		if (weft__promise_types_init(&types, &link_index, NULL) == WEFT_OK &&
		    (group = malloc((types.items.count + 1) * sizeof *group)) &&
		    weft__label_patterns_group(group, m, &types, NULL) == WEFT_OK) {
			for (size_t p = 0; p < m->promise_count; p++)
				types.of[p] = group[types.of[p]];
			f->type_of = types.of;
			f->type_count = types.items.count;
			types.of = NULL;
		}
		free(group);
		weft__promise_types_finish(&types);
		weft_link_index_finish(&link_index);
	}
	*count = f->type_count;
	return f->type_of;
}
