/* top.c: summarizes the promises in flight at a moment.  SPDX-License-Identifier: ISC */
#include "analysis/queries/top.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/index/delays.h"
#include "base/duration.h"
#include "base/search.h"
#include "base/sort.h"

enum { MIN_LATE_NS = 1000000 };

static int compare_types(const void *a, const void *b)
{
	const struct weft_top_type *x = a, *y = b;
	return WEFT_ORDER(y->in_flight, x->in_flight) ?: WEFT_ORDER(y->ran_ns, x->ran_ns) ?: WEFT_ORDER(x->row.type, y->row.type);
}

static int compare_waits(const void *a, const void *b)
{
	const struct weft_top_wait *x = a, *y = b;
	return WEFT_ORDER(x->since_ns, y->since_ns) ?: WEFT_ORDER(x->promise, y->promise) ?: WEFT_ORDER(x->awaits, y->awaits);
}

static int compare_late(const void *a, const void *b)
{
	const struct weft_top_late *x = a, *y = b;
	return WEFT_ORDER(y->to_ns - y->from_ns, x->to_ns - x->from_ns) ?: WEFT_ORDER(x->promise, y->promise) ?:
	       WEFT_ORDER(x->from_ns, y->from_ns);
}

static int64_t get_overlap_ns(int64_t start_ns, int64_t end_ns, const struct weft_top *top)
{
	const int64_t from_ns = start_ns > top->from_ns ? start_ns : top->from_ns,
		      to_ns = end_ns < top->to_ns ? end_ns : top->to_ns;
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void add_promise(struct weft_top *top, struct weft_top_type *type, const struct weft_promise_info *facts, uint32_t p)
{
	const struct weft_model *m = weft_promise_info_model(facts);
	const struct weft_promise *promise = &m->promises[p];
	if (promise->start_ns > top->to_ns)
		return;
	for (uint32_t r = m->promises[p + 1].runs; r-- > promise->runs && m->runs[r].end_ns > top->from_ns;)
		type->ran_ns += get_overlap_ns(m->runs[r].start_ns, m->runs[r].end_ns, top);
	const int64_t end_ns = weft_promise_info_end_ns(facts, p);
	if (end_ns <= top->to_ns) {
		const bool is_new = end_ns >= top->from_ns;
		type->ended += is_new;
		type->failed += is_new && promise->end == WEFT_END_FAILED && weft_has_ended(promise);
		return;
	}
	/* A promise that became another promise counts as that other promise. */
	if (promise->end == WEFT_END_BECAME && promise->end_ns <= top->to_ns)
		return;
	top->is_in_flight[p / 64] |= UINT64_C(1) << p % 64;
	type->in_flight++;
	top->in_flight += !weft_kind_has(promise->kind, WEFT_TRAIT_ENDLESS);
	const int64_t age_ns = promise->flags & WEFT_PROMISE_START_UNKNOWN ? -1 : top->to_ns - promise->start_ns;
	type->oldest_ns = age_ns > type->oldest_ns ? age_ns : type->oldest_ns;
}

static int fill_types(
    struct weft_top *top, const struct weft_promise_info *facts, const struct weft_table *table, struct weft_error *err)
{
	const struct weft_model *m = weft_promise_info_model(facts);
	struct weft_top_type **of = calloc(table->types + 1, sizeof *of); /* by type number */
	top->types = calloc(table->count + 1, sizeof *top->types);
	if (!of || !top->types) {
		free(of);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < table->count; i++) {
		of[table->rows[i].type] = &top->types[i];
		top->types[i] = (struct weft_top_type){.row = table->rows[i], .oldest_ns = -1};
	}
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (table->type_of[p] != WEFT_NONE)
			add_promise(top, of[table->type_of[p]], facts, p);
	for (size_t i = 0; i < table->count; i++)
		if (top->types[i].in_flight || top->types[i].ended || top->types[i].ran_ns)
			top->types[top->type_count++] = top->types[i];
	weft_sort(top->types, top->type_count, sizeof *top->types, compare_types);
	free(of);
	return WEFT_OK;
}

static int add_types(struct weft_top *top, struct weft_promise_info *facts, struct weft_error *err)
{
	struct weft_table *table = NULL;
	int status = weft_table_create(&table, facts, 0, top->to_ns, err);
	if (status < 0)
		return status;
	top->is_in_flight = calloc(weft_promise_info_model(facts)->promise_count / 64 + 1, sizeof *top->is_in_flight);
	status = top->is_in_flight ? fill_types(top, facts, table, err) : weft_error_set(err, WEFT_ENOMEM, "out of memory");
	top->type_of = table->type_of;
	table->type_of = NULL;
	weft_table_destroy(table);
	return status;
}

/* Returns the index of the first wait of a promise, or the number of waits if it has none. */
static size_t find_first_wait(const struct weft_waits *waits, uint32_t from)
{
	return WEFT_FIND_FIRST(i, 0, waits->count, waits->waits[i].from >= from);
}

const struct weft_wait *weft_top_wait_of(const struct weft_top *top, uint32_t promise)
{
	const size_t i = find_first_wait(top->all_waits, promise);
	return i < top->all_waits->count && top->all_waits->waits[i].from == promise ? &top->all_waits->waits[i] : NULL;
}

/* Returns the promise for which p waits; WEFT_NONE if p waits for none, is in a cycle, or waits for several promises, as a loop
 * does. */
static uint32_t find_next_awaited(const struct weft_waits *waits, uint32_t p)
{
	const size_t i = find_first_wait(waits, p);
	const bool waits_on = i < waits->count && waits->waits[i].from == p && !waits->waits[i].in_cycle &&
			      (i + 1 == waits->count || waits->waits[i + 1].from != p);
	return waits_on ? waits->waits[i].to : WEFT_NONE;
}

/* Returns the last promise of the wait chain; stores the results for all promises of the chain, so that all calls together take
 * linear time. */
static uint32_t find_root(const struct weft_waits *waits, uint32_t *roots, uint32_t p)
{
	uint32_t root = p, next;
	while (roots[root] == WEFT_NONE && (next = find_next_awaited(waits, root)) != WEFT_NONE)
		root = next;
	root = roots[root] == WEFT_NONE ? root : roots[root];
	while (roots[p] == WEFT_NONE) {
		roots[p] = root;
		if (p != root)
			p = find_next_awaited(waits, p);
	}
	return root;
}

static int fill_waits(struct weft_top *top, const struct weft_model *m, const struct weft_waits *waits, struct weft_error *err)
{
	bool *is_awaited = calloc(m->promise_count, sizeof *is_awaited);
	uint32_t *roots = malloc(m->promise_count * sizeof *roots);
	top->waits = calloc(waits->count + 1, sizeof *top->waits);
	const bool has_memory = is_awaited && roots && top->waits;
	if (has_memory) {
		memset(roots, 0xff, m->promise_count * sizeof *roots);
		for (size_t i = 0; i < waits->count; i++)
			is_awaited[waits->waits[i].to] |= !waits->waits[i].in_cycle;
		for (size_t i = 0; i < waits->count; i++) {
			const struct weft_wait *wait = &waits->waits[i];
			const bool is_first = i == 0 || waits->waits[i - 1].from != wait->from;
			if (!is_first || is_awaited[wait->from])
				continue;
			size_t more = 0;
			while (i + more + 1 < waits->count && waits->waits[i + more + 1].from == wait->from)
				more++;
			top->waits[top->wait_count++] = (struct weft_top_wait){.promise = wait->from,
			    .awaits = wait->to,
			    .more = more,
			    .root = wait->in_cycle || more ? wait->to : find_root(waits, roots, wait->to),
			    .since_ns = wait->since_ns,
			    .in_cycle = wait->in_cycle};
		}
		weft_sort(top->waits, top->wait_count, sizeof *top->waits, compare_waits);
	}
	free(is_awaited);
	free(roots);
	return has_memory ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "out of memory");
}

static int add_waits(struct weft_top *top, const struct weft_model *m, struct weft_error *err)
{
	const int status = weft_waits_create(&top->all_waits, m, top->to_ns, err);
	return status < 0 ? status : fill_waits(top, m, top->all_waits, err);
}

static int add_late(struct weft_top *top, const struct weft_model *m, struct weft_error *err)
{
	struct weft_link_index link_index;
	struct weft__delays delays;
	if (weft_link_index_init(&link_index, m, WEFT_LINK_INDEX_ALL, NULL) < 0)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	int status = weft__delays_init(&delays, &link_index, MIN_LATE_NS, NULL);
	top->late = status == WEFT_OK ? calloc(delays.ready.count + 1, sizeof *top->late) : NULL;
	for (size_t i = 0; top->late && i < delays.ready.count; i++) {
		const struct weft__ready *ready = &delays.ready.items[i];
		if (ready->to_ns >= top->from_ns && ready->to_ns <= top->to_ns && ready->to_ns - ready->from_ns >= MIN_LATE_NS)
			top->late[top->late_count++] = (struct weft_top_late){ready->promise, ready->from_ns, ready->to_ns};
	}
	if (top->late)
		weft_sort(top->late, top->late_count, sizeof *top->late, compare_late);
	weft__delays_finish(&delays);
	weft_link_index_finish(&link_index);
	return top->late ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "out of memory");
}

static int add_streams(struct weft_top *top, const struct weft_model *m, struct weft_error *err)
{
	top->stream_count = m->trace->stream_count;
	top->streams = calloc(top->stream_count + 1, sizeof *top->streams);
	if (!top->streams)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	for (size_t i = 0; i < top->stream_count; i++) {
		/* In a trace of several processes, one process may have ended earlier: its threads do not count as awake after
		 * its end. */
		const int64_t until_ns = weft_model_stream_until(m, (uint16_t)i);
		top->streams[i].stream = (uint16_t)i;
		if (until_ns < m->end_ns)
			top->streams[i].slept_ns = get_overlap_ns(until_ns, INT64_MAX, top);
	}
	for (size_t i = 0; i < m->sleep_count; i++) {
		const uint16_t stream = m->sleeps[i].stream;
		if (stream >= top->stream_count)
			continue;
		/* A thread that sleeps at the end of the trace counts as sleeping afterwards. */
		const int64_t end_ns = m->sleeps[i].end_ns < m->end_ns ? m->sleeps[i].end_ns : INT64_MAX,
			      until_ns = weft_model_stream_until(m, stream);
		top->streams[stream].slept_ns +=
		    get_overlap_ns(m->sleeps[i].start_ns, until_ns < m->end_ns ? weft_min_ns(end_ns, until_ns) : end_ns, top);
	}
	for (size_t i = 0; i < m->pause_count; i++)
		if (m->pauses[i].stream < top->stream_count)
			top->streams[m->pauses[i].stream].paused_ns +=
			    get_overlap_ns(m->pauses[i].start_ns, m->pauses[i].end_ns, top);
	return WEFT_OK;
}

int weft_top_create(
    struct weft_top **out, struct weft_promise_info *facts, int64_t to_ns, int64_t window_ns, struct weft_error *err)
{
	const struct weft_model *model = weft_promise_info_model(facts);
	struct weft_top *top = calloc(1, sizeof *top);
	if (!top)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	top->to_ns = to_ns;
	top->from_ns = window_ns < to_ns ? to_ns - window_ns : 0;
	int status = add_types(top, facts, err);
	if (status == WEFT_OK)
		status = add_waits(top, model, err);
	if (status == WEFT_OK)
		status = add_late(top, model, err);
	if (status == WEFT_OK)
		status = add_streams(top, model, err);
	if (status == WEFT_OK)
		*out = top;
	else
		weft_top_destroy(top);
	return status;
}

void weft_top_destroy(struct weft_top *top)
{
	if (!top)
		return;
	free(top->types);
	free(top->type_of);
	free(top->is_in_flight);
	weft_waits_destroy(top->all_waits);
	free(top->waits);
	free(top->late);
	free(top->streams);
	free(top);
}
