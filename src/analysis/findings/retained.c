/* retained.c: reports memory that promises of one type allocated in one line, and that is not freed although they have ended.
 *
 * The allocations are samples (weft record --memory).  A cache that is full frees as much as it allocates, so most of what it
 * allocated early is freed; a cache that was filled at the start allocates nothing later.  Therefore as large a share of the
 * early allocations as of the late ones must be held.  SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "analysis/index/hot_function.h"
#include "analysis/index/memory.h"
#include "base/sort.h"

enum { QUARTERS = 4, MIN_HELD = 32, MIN_HELD_QUARTER = 4 };

/* A sampled allocation of a promise that has ended. */
struct item {
	uint32_t type, site, promise;
	int64_t time_ns, bytes;
	bool is_held;
};

/* Sums of the items with one type and line. */
struct group {
	int64_t held_bytes, quarter_bytes[QUARTERS];
	size_t held, promises, all_of[QUARTERS], held_of[QUARTERS]; /* numbers of samples; promises: of those with held memory */
};

static int compare_items(const void *x, const void *y)
{
	const struct item *a = x, *b = y;
	return WEFT_ORDER(a->type, b->type)         ?: WEFT_ORDER(a->site, b->site) ?: WEFT_ORDER(a->time_ns, b->time_ns)
	       ?: WEFT_ORDER(a->promise, b->promise) ?: WEFT_ORDER(a->bytes, b->bytes) ?: WEFT_ORDER(a->is_held, b->is_held);
}

static unsigned get_quarter(const struct weft__finder *f, const struct item *first, int64_t time_ns)
{
	const double span_ns = (double)f->model->end_ns - (double)first->time_ns;
	const double at = span_ns > 0 ? ((double)time_ns - (double)first->time_ns) / span_ns * QUARTERS : 0;
	return at < 0 ? 0 : at < QUARTERS ? (unsigned)at : QUARTERS - 1;
}

static int64_t add_bytes(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static struct group sum_up(const struct weft__finder *f, const struct item *items, size_t count)
{
	struct group g = {0};
	uint32_t last = WEFT_NONE;
	for (size_t i = 0; i < count; i++) {
		const unsigned quarter = get_quarter(f, items, items[i].time_ns);
		g.all_of[quarter]++;
		if (!items[i].is_held)
			continue;
		g.held++;
		g.held_of[quarter]++;
		g.held_bytes = add_bytes(g.held_bytes, items[i].bytes);
		g.quarter_bytes[quarter] = add_bytes(g.quarter_bytes[quarter], items[i].bytes);
		g.promises += items[i].promise != last;
		last = items[i].promise;
	}
	return g;
}

/* Returns whether the memory grew all the time, and the share of it that is held does not depend on its age. */
static bool is_growing(const struct weft__finder *f, const struct group *g)
{
	if (g->held < MIN_HELD || g->promises < f->options.leak_count / 2)
		return false;
	for (unsigned q = 0; q < QUARTERS; q++)
		if (g->held_of[q] < MIN_HELD_QUARTER)
			return false;
	const unsigned last = QUARTERS - 1;
	/* The share of the oldest quarter is at least half of the share of the newest quarter. */
	return g->held_of[0] * g->all_of[last] * 2 >= g->held_of[last] * g->all_of[0];
}

static void report_group(struct weft__finder *f, const struct item *items, size_t count, const struct group *g)
{
	const uint32_t first = items[0].promise, last = items[count - 1].promise;
	char held[WEFT_BYTES_BYTES], period[WEFT_BYTES_BYTES], q[QUARTERS][WEFT_BYTES_BYTES];
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_RETAINED, first, items[0].time_ns, f->model->end_ns);
	if (!finding)
		return;
	const char *at = weft__format_place(f, items[0].site);
	finding->weight = (uint64_t)g->held_bytes;
	finding->title =
	    weft__finding_text(f, "about %s of memory of ended promises %s is not freed, and grew all the time%s%s%s",
		weft_bytes_text(held, g->held_bytes), weft__format_type_group(f, first, false), *at ? " (" : "",
		*at ? at + sizeof " at " - 1 : "", *at ? ")" : "");
	finding->next = weft__finding_text(f, "find out what keeps the memory that is allocated%s", at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, items[0].time_ns, first, "%s makes the first of these allocations",
	    weft__format_promise(f, first));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, items[count - 1].time_ns, last, "%s makes the last of these allocations",
	    weft__format_promise(f, last));
	for (unsigned i = 0; i < QUARTERS; i++)
		weft_bytes_text(q[i], g->quarter_bytes[i]);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "held memory that was allocated in each quarter of that time: %s, %s, %s and %s", q[0], q[1], q[2], q[3]);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "the sizes are estimated from %zu of %zu samples, one in %s; a cache that grows without a limit looks the same",
	    g->held, count, weft_bytes_text(period, (int64_t)f->model->trace->memory.period_bytes));
}

/* Lists the allocations of promises that have ended.  Returns their number. */
static size_t list_items(struct weft__finder *f, const uint32_t *first, struct item *items)
{
	const struct weft_model *m = f->model;
	size_t count = 0;
	for (size_t i = 0; i < m->allocation_count && weft__finding_may_continue(f, i, m->allocation_count); i++) {
		const struct weft_promise_allocation *a = &m->allocations[i];
		if (a->promise == WEFT_NONE || a->promise == WEFT_SYSTEM || f->link_index.ended_ns[a->promise] == WEFT_NEVER)
			continue;
		const uint32_t site = weft__find_allocating_site(m->trace, a->stack);
		if (site != WEFT_NONE)
			items[count++] = (struct item){
			    first[f->types.of[a->promise]], site, a->promise, a->time_ns, a->bytes, a->freed_ns == INT64_MAX};
	}
	return count;
}

void weft__find_retained(struct weft__finder *f)
{
	/* If ends of allocations are missing, freed memory seems to be held. */
	if (f->model->allocation_count < MIN_HELD || f->model->trace->memory.misses_ends)
		return;
	struct item *items = weft__finding_alloc(f, f->model->allocation_count, sizeof *items);
	const uint32_t *first = weft__finding_patterns(f);
	const size_t all = items && first ? list_items(f, first, items) : 0;
	if (all)
		weft_sort(items, all, sizeof *items, compare_items);
	for (size_t i = 0, end; i < all && weft__finding_may_continue(f, i, all); i = end) {
		for (end = i + 1; end < all && items[end].type == items[i].type && items[end].site == items[i].site;)
			end++;
		const struct group g = sum_up(f, items + i, end - i);
		if (is_growing(f, &g))
			report_group(f, items + i, end - i, &g);
	}
	free(items);
}
