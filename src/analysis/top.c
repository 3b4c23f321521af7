/* top.c: see top.h.  SPDX-License-Identifier: ISC */
#include "analysis/top.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/delays.h"
#include "base/duration.h"
#include "base/search.h"
#include "base/sort.h"

enum { LEAST_LATE_NS = 1000000 };

static int compare_sorts(const void *a, const void *b)
{
	const struct weft_top_sort *x = a, *y = b;
	return WEFT_ORDER(y->in_flight, x->in_flight) ?: WEFT_ORDER(y->ran_ns, x->ran_ns) ?: WEFT_ORDER(x->row.sort, y->row.sort);
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

static int64_t overlap_ns(int64_t start_ns, int64_t end_ns, const struct weft_top *top)
{
	const int64_t from_ns = start_ns > top->from_ns ? start_ns : top->from_ns,
		      to_ns = end_ns < top->to_ns ? end_ns : top->to_ns;
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void add_promise(struct weft_top *top, struct weft_top_sort *sort, const struct weft_facts *facts, uint32_t p)
{
	const struct weft_model *m = weft_facts_model(facts);
	const struct weft_promise *promise = &m->promises[p];
	if (promise->start_ns > top->to_ns)
		return;
	for (uint32_t r = m->promises[p + 1].runs; r-- > promise->runs && m->runs[r].end_ns > top->from_ns;)
		sort->ran_ns += overlap_ns(m->runs[r].start_ns, m->runs[r].end_ns, top);
	const int64_t end_ns = weft_facts_end(facts, p);
	if (end_ns <= top->to_ns) {
		const bool is_new = end_ns >= top->from_ns;
		sort->ended += is_new;
		sort->failed += is_new && promise->end == WEFT_END_FAILED && weft_has_ended(promise);
		return;
	}
	/* One that became another is that one. */
	if (promise->end == WEFT_END_BECAME && promise->end_ns <= top->to_ns)
		return;
	top->is_in_flight[p / 64] |= UINT64_C(1) << p % 64;
	sort->in_flight++;
	top->in_flight += !weft_kind_has(promise->kind, WEFT_TRAIT_ENDLESS);
	const int64_t age_ns = promise->flags & WEFT_PROMISE_START_UNKNOWN ? -1 : top->to_ns - promise->start_ns;
	sort->oldest_ns = age_ns > sort->oldest_ns ? age_ns : sort->oldest_ns;
}

static int fill_sorts(
    struct weft_top *top, const struct weft_facts *facts, const struct weft_table *table, struct weft_error *err)
{
	const struct weft_model *m = weft_facts_model(facts);
	struct weft_top_sort **of = calloc(table->sorts + 1, sizeof *of); /* by number of a sort */
	top->sorts = calloc(table->count + 1, sizeof *top->sorts);
	if (!of || !top->sorts) {
		free(of);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < table->count; i++) {
		of[table->rows[i].sort] = &top->sorts[i];
		top->sorts[i] = (struct weft_top_sort){.row = table->rows[i], .oldest_ns = -1};
	}
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (table->sort_of[p] != WEFT_NONE)
			add_promise(top, of[table->sort_of[p]], facts, p);
	for (size_t i = 0; i < table->count; i++)
		if (top->sorts[i].in_flight || top->sorts[i].ended || top->sorts[i].ran_ns)
			top->sorts[top->sort_count++] = top->sorts[i];
	weft_sort(top->sorts, top->sort_count, sizeof *top->sorts, compare_sorts);
	free(of);
	return WEFT_OK;
}

static int add_sorts(struct weft_top *top, struct weft_facts *facts, struct weft_error *err)
{
	struct weft_table *table = NULL;
	int status = weft_table_create(&table, facts, 0, top->to_ns, err);
	if (status < 0)
		return status;
	top->is_in_flight = calloc(weft_facts_model(facts)->promise_count / 64 + 1, sizeof *top->is_in_flight);
	status = top->is_in_flight ? fill_sorts(top, facts, table, err) : weft_error_set(err, WEFT_ENOMEM, "out of memory");
	top->sort_of = table->sort_of;
	table->sort_of = NULL;
	weft_table_destroy(table);
	return status;
}

/* The number of the first wait of that promise, or the count. */
static size_t first_wait(const struct weft_waits *waits, uint32_t from)
{
	return WEFT_FIRST(i, 0, waits->count, waits->waits[i].from >= from);
}

const struct weft_wait *weft_top_wait_of(const struct weft_top *top, uint32_t promise)
{
	const size_t i = first_wait(top->all_waits, promise);
	return i < top->all_waits->count && top->all_waits->waits[i].from == promise ? &top->all_waits->waits[i] : NULL;
}

/* Whom p waits for; WEFT_NONE: nobody, in a circle, or for several, of which none is the end, as a loop does for its handles. */
static uint32_t next_of(const struct weft_waits *waits, uint32_t p)
{
	const size_t i = first_wait(waits, p);
	const bool waits_on = i < waits->count && waits->waits[i].from == p && !waits->waits[i].in_cycle &&
			      (i + 1 == waits->count || waits->waits[i + 1].from != p);
	return waits_on ? waits->waits[i].to : WEFT_NONE;
}

/* The end of these waits; what is found on the way is kept, so that all together are linear. */
static uint32_t find_root(const struct weft_waits *waits, uint32_t *roots, uint32_t p)
{
	uint32_t root = p, next;
	while (roots[root] == WEFT_NONE && (next = next_of(waits, root)) != WEFT_NONE)
		root = next;
	root = roots[root] == WEFT_NONE ? root : roots[root];
	while (roots[p] == WEFT_NONE) {
		roots[p] = root;
		if (p != root)
			p = next_of(waits, p);
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
	struct weft_ties ties;
	struct weft__delays delays;
	if (weft_ties_init(&ties, m, WEFT_TIES_ALL, NULL) < 0)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	int status = weft__delays_init(&delays, &ties, LEAST_LATE_NS, NULL);
	top->late = status == WEFT_OK ? calloc(delays.ready.count + 1, sizeof *top->late) : NULL;
	for (size_t i = 0; top->late && i < delays.ready.count; i++) {
		const struct weft__ready *ready = &delays.ready.items[i];
		if (ready->to_ns >= top->from_ns && ready->to_ns <= top->to_ns && ready->to_ns - ready->from_ns >= LEAST_LATE_NS)
			top->late[top->late_count++] = (struct weft_top_late){ready->promise, ready->from_ns, ready->to_ns};
	}
	if (top->late)
		weft_sort(top->late, top->late_count, sizeof *top->late, compare_late);
	weft__delays_finish(&delays);
	weft_ties_finish(&ties);
	return top->late ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "out of memory");
}

static int add_streams(struct weft_top *top, const struct weft_model *m, struct weft_error *err)
{
	top->stream_count = m->trace->stream_count;
	top->streams = calloc(top->stream_count + 1, sizeof *top->streams);
	if (!top->streams)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	for (size_t i = 0; i < top->stream_count; i++) {
		/* Of several processes one may have ended before: it is not awake since then. */
		const int64_t until_ns = weft_model_stream_until(m, (uint16_t)i);
		top->streams[i].stream = (uint16_t)i;
		if (until_ns < m->end_ns)
			top->streams[i].slept_ns = overlap_ns(until_ns, INT64_MAX, top);
	}
	for (size_t i = 0; i < m->sleep_count; i++) {
		const uint16_t stream = m->sleeps[i].stream;
		if (stream >= top->stream_count)
			continue;
		/* Who sleeps when the trace ends goes on to sleep. */
		const int64_t end_ns = m->sleeps[i].end_ns < m->end_ns ? m->sleeps[i].end_ns : INT64_MAX,
			      until_ns = weft_model_stream_until(m, stream);
		top->streams[stream].slept_ns +=
		    overlap_ns(m->sleeps[i].start_ns, until_ns < m->end_ns ? weft_min_ns(end_ns, until_ns) : end_ns, top);
	}
	for (size_t i = 0; i < m->pause_count; i++)
		if (m->pauses[i].stream < top->stream_count)
			top->streams[m->pauses[i].stream].paused_ns +=
			    overlap_ns(m->pauses[i].start_ns, m->pauses[i].end_ns, top);
	return WEFT_OK;
}

int weft_top_create(struct weft_top **out, struct weft_facts *facts, int64_t to_ns, int64_t window_ns, struct weft_error *err)
{
	const struct weft_model *model = weft_facts_model(facts);
	struct weft_top *top = calloc(1, sizeof *top);
	if (!top)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	top->to_ns = to_ns;
	top->from_ns = window_ns < to_ns ? to_ns - window_ns : 0;
	int status = add_sorts(top, facts, err);
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
	free(top->sorts);
	free(top->sort_of);
	free(top->is_in_flight);
	weft_waits_destroy(top->all_waits);
	free(top->waits);
	free(top->late);
	free(top->streams);
	free(top);
}
