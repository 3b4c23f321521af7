/* workload.c: groups requests by the address that served them.  SPDX-License-Identifier: ISC */
#include "analysis/queries/workload.h"

#include <stdlib.h>

#include "analysis/index/link_index.h"
#include "base/duration.h"
#include "base/idmap.h"
#include "base/sort.h"
#include "base/vec.h"

/* A request that belongs to a group of requests. */
struct sample {
	uint32_t group, promise;
	int64_t from_ns, took_ns;
};

/* Returns to_ns - from_ns, at least 0, without overflow. */
static int64_t get_span_ns(int64_t from_ns, int64_t to_ns)
{
	int64_t span_ns;
	return to_ns <= from_ns ? 0 : __builtin_sub_overflow(to_ns, from_ns, &span_ns) ? INT64_MAX : span_ns;
}

struct weft_workload_private {
	const struct weft_model *m;
	WEFT_VEC(struct weft_workload_group) groups;
	WEFT_VEC(struct sample) samples;
	struct weft_idmap group_of; /* by side and label */
	bool *is_named;             /* by promise: whether it is a connection whose requests are promises */
	bool *is_counted;           /* by promise: whether it is a connection that its group has counted */
};

/* Returns the group of a label, which is added if it is new; NULL when out of memory. */
static struct weft_workload_group *get_group(struct weft_workload_private *w, bool is_served, uint32_t label)
{
	const int64_t key = (int64_t)label << 1 | is_served;
	const uint32_t known = weft_idmap_get(&w->group_of, key);
	if (known != WEFT_IDMAP_NONE)
		return &w->groups.items[known];
	struct weft_workload_group *added = weft_vec_push(&w->groups);
	if (!added || !weft_idmap_set(&w->group_of, key, (uint32_t)w->groups.count - 1))
		return NULL;
	*added = (struct weft_workload_group){
	    .label = label, .is_served = is_served, .slowest = WEFT_NONE, .from_ns = INT64_MAX, .to_ns = INT64_MIN};
	return added;
}

/* Returns the text that names the server of a connection: the label of its listener, or WEFT_NONE. */
static uint32_t find_listener_label(const struct weft_model *m, uint32_t connection)
{
	const uint32_t by = m->promises[connection].created_by;
	return by != WEFT_NONE && m->promises[by].kind == WEFT_KIND_LISTEN ? weft_first_label(m, by) : WEFT_NONE;
}

/* Adds a request on a connection; to_ns is WEFT_NEVER if it has no answer.  Returns false when out of memory. */
static bool add_request(
    struct weft_workload_private *w, bool is_served, uint32_t connection, uint32_t promise, int64_t from_ns, int64_t to_ns)
{
	struct weft_workload_group *group =
	    get_group(w, is_served, is_served ? find_listener_label(w->m, connection) : weft_first_label(w->m, connection));
	if (!group)
		return false;
	group->has_names |= promise != connection;
	group->connections += !w->is_counted[connection];
	w->is_counted[connection] = true;
	group->from_ns = weft_min_ns(group->from_ns, from_ns);
	if (to_ns == WEFT_NEVER) {
		group->open++;
		return true;
	}
	struct sample *sample = weft_vec_push(&w->samples);
	if (!sample)
		return false;
	*sample = (struct sample){(uint32_t)(group - w->groups.items), promise, from_ns, get_span_ns(from_ns, to_ns)};
	group->to_ns = weft_max_ns(group->to_ns, to_ns);
	return true;
}

/* Adds the requests that are promises of an accepted connection. */
static bool add_named(struct weft_workload_private *w)
{
	const struct weft_model *m = w->m;
	for (uint32_t p = 1; p < m->promise_count; p++) {
		const struct weft_promise *request = &m->promises[p];
		const uint32_t by = request->created_by;
		if (!weft_kind_has(request->kind, WEFT_TRAIT_REQUEST) || by == WEFT_NONE ||
		    !weft_kind_has(m->promises[by].kind, WEFT_TRAIT_CONNECTION) || m->promises[by].flags & WEFT_PROMISE_CONNECTED)
			continue;
		w->is_named[by] = true;
		if (request->flags & WEFT_PROMISE_START_UNKNOWN)
			continue;
		if (!add_request(w, true, by, p, request->start_ns, weft_has_ended(request) ? request->end_ns : WEFT_NEVER))
			return false;
	}
	return true;
}

/* Adds the requests that appear in the trace only as reads and writes. */
static bool add_unnamed(struct weft_workload_private *w)
{
	for (size_t i = 0; i < w->m->request_count; i++) {
		const struct weft_request *r = &w->m->requests[i];
		const bool is_answer = !r->is_question;
		if (r->connection == WEFT_NONE || (is_answer && (r->heard_ns == INT64_MIN || w->is_named[r->connection])))
			continue;
		const int64_t from_ns = is_answer ? r->heard_ns : r->asked_ns;
		const int64_t to_ns = is_answer ? r->last_ns : r->answered_ns;
		if (!add_request(w, is_answer, r->connection, r->connection, from_ns, to_ns))
			return false;
	}
	return true;
}

static int compare_samples(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	return WEFT_ORDER(x->group, y->group) ?: WEFT_ORDER(x->took_ns, y->took_ns) ?: WEFT_ORDER(y->from_ns, x->from_ns) ?:
	       WEFT_ORDER(y->promise, x->promise);
}

/* Fills the percentiles. */
static void measure_groups(struct weft_workload_private *w)
{
	const struct sample *all = w->samples.items;
	weft_sort(w->samples.items, w->samples.count, sizeof *w->samples.items, compare_samples);
	for (size_t first = 0, end; first < w->samples.count; first = end) {
		struct weft_workload_group *group = &w->groups.items[all[first].group];
		for (end = first; end < w->samples.count && all[end].group == all[first].group; end++)
			group->total_ns = weft_min_ns(group->total_ns, INT64_MAX - all[end].took_ns) + all[end].took_ns;
		group->count = end - first;
		group->p50_ns = all[first + (group->count - 1) / 2].took_ns;
		group->p99_ns = all[first + (group->count * 99 + 99) / 100 - 1].took_ns;
		group->max_ns = all[end - 1].took_ns;
		group->slowest = all[end - 1].promise;
		group->slowest_from_ns = all[end - 1].from_ns;
	}
}

static int compare_groups(const void *a, const void *b)
{
	const struct weft_workload_group *x = a, *y = b;
	const int size = x->is_served ? WEFT_ORDER(y->count, x->count) : WEFT_ORDER(y->total_ns, x->total_ns);
	return WEFT_ORDER(y->is_served, x->is_served) ?: size ?: WEFT_ORDER(x->from_ns, y->from_ns) ?:
	       WEFT_ORDER(x->label, y->label);
}

int weft_workload_init(struct weft_workload *out, const struct weft_model *m)
{
	struct weft_workload_private *w = calloc(1, sizeof *w);
	*out = (struct weft_workload){.priv = w};
	if (!w)
		return WEFT_ENOMEM;
	w->m = m;
	w->is_named = calloc(m->promise_count, sizeof *w->is_named);
	w->is_counted = calloc(m->promise_count, sizeof *w->is_counted);
	if (!w->is_named || !w->is_counted || !add_named(w) || !add_unnamed(w))
		return WEFT_ENOMEM;
	measure_groups(w);
	weft_sort(w->groups.items, w->groups.count, sizeof *w->groups.items, compare_groups);
	out->groups = w->groups.items;
	out->count = w->groups.count;
	return WEFT_OK;
}

void weft_workload_finish(struct weft_workload *workload)
{
	struct weft_workload_private *w = workload->priv;
	if (!w)
		return;
	weft_vec_free(&w->groups);
	weft_vec_free(&w->samples);
	weft_idmap_finish(&w->group_of);
	free(w->is_named);
	free(w->is_counted);
	free(w);
	*workload = (struct weft_workload){0};
}
