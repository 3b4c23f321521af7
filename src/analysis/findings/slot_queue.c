/* slot_queue.c: finds long queues for a semaphore or a pool: many promises wait, and longer than what they wait for takes them.
 *
 * A limit is no fault, so this is information.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/sort.h"

enum {
	MIN_WAITS = 8,
	MIN_AT_ONCE = 4,        /* promises that wait at the same time */
	MIN_LONGEST_STALLS = 10 /* shorter waits are a limit that does its work */
};

/* One wait for a place.  Waits for one semaphore are promises of one type; those for a pool name it. */
struct place_wait {
	uint64_t queue; /* a pool, or UINT32_MAX + the type of a semaphore's promises */
	int64_t start_ns, end_ns;
	uint32_t promise, pool; /* pool: WEFT_NONE for a semaphore */
};

typedef WEFT_VEC(struct place_wait) waits_vec;

/* The waits for one semaphore or pool. */
struct queue {
	const struct place_wait *longest, *first;
	uint32_t count, most;
	int64_t waited_ns, lived_ns; /* of all waits, and of the promises that waited, together */
};

static int compare_waits(const void *a, const void *b)
{
	const struct place_wait *x = a, *y = b;
	return WEFT_ORDER(x->queue, y->queue) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->promise, y->promise);
}

static int compare_times(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return WEFT_ORDER(*x, *y);
}

static void add_wait(struct weft__finder *f, waits_vec *waits, struct place_wait wait)
{
	struct place_wait *added = weft_vec_push(waits);
	f->no_memory |= !added;
	if (added)
		*added = wait;
}

/* Gathers waits that got their place: the others are hangs. */
static void gather_waits(struct weft__finder *f, waits_vec *waits)
{
	const struct weft_model *m = f->model;
	for (uint32_t p = 1; weft__promise_types_have(&f->types, WEFT_KIND_SEMAPHORE) && p < m->promise_count; p++)
		if (f->types.kinds[p] == WEFT_KIND_SEMAPHORE && m->promises[p].end == WEFT_END_RESOLVED &&
		    !(m->promises[p].flags & WEFT_PROMISE_START_UNKNOWN))
			add_wait(f, waits,
			    (struct place_wait){(uint64_t)UINT32_MAX + f->types.of[p], m->promises[p].start_ns,
				m->promises[p].end_ns, p, WEFT_NONE});
	for (size_t l = 0; weft__promise_types_have(&f->types, WEFT_KIND_POOL) && l < m->link_count && !f->no_memory; l++) {
		const struct weft_link *link = &m->links[l];
		if (link->kind != WEFT_LINK_AWAIT || f->types.kinds[link->to] != WEFT_KIND_POOL || link->from == WEFT_SYSTEM)
			continue;
		const int64_t end_ns = weft_min_ns(weft_model_await_end(m, link), f->link_index.ended_ns[link->from]);
		if (end_ns != WEFT_NEVER)
			add_wait(f, waits, (struct place_wait){link->to, link->time_ns, end_ns, link->from, link->to});
	}
	if (waits->count > 0)
		weft_sort(waits->items, waits->count, sizeof *waits->items, compare_waits);
}

/* Returns the promise that waited for p's end first, and goes on with the place. */
static uint32_t find_user(const struct weft__finder *f, uint32_t p)
{
	for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_READ && link->from != WEFT_SYSTEM)
			return link->from;
	}
	return p;
}

static struct queue measure_queue(struct weft__finder *f, const struct place_wait *waits, uint32_t count)
{
	struct queue q = {.longest = waits, .first = waits, .count = count};
	int64_t *ends = weft__finding_alloc(f, count, sizeof *ends);
	for (uint32_t i = 0; ends && i < count; i++) {
		const struct place_wait *w = &waits[i];
		const int64_t over_ns =
		    weft_min_ns(f->link_index.ended_ns[find_user(f, w->promise)], weft_model_until(f->model, w->promise));
		ends[i] = w->end_ns;
		q.waited_ns += w->end_ns - w->start_ns;
		q.lived_ns += weft_max_ns(over_ns, w->end_ns) - w->start_ns;
		if (w->end_ns - w->start_ns > q.longest->end_ns - q.longest->start_ns)
			q.longest = w;
	}
	if (ends)
		weft_sort(ends, count, sizeof *ends, compare_times);
	for (uint32_t i = 0, over = 0; ends && i < count; i++) {
		while (over < count && ends[over] <= waits[i].start_ns)
			over++;
		q.most = i + 1 - over > q.most ? i + 1 - over : q.most;
	}
	free(ends);
	return q;
}

static void report_queue(struct weft__finder *f, const struct queue *q)
{
	const struct place_wait *longest = q->longest;
	const uint32_t p = longest->promise;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_EXHAUSTED, p, longest->start_ns, longest->end_ns);
	if (!finding)
		return;
	const char *at = weft__format_site_suffix(f, p), *name = weft__format_promise(f, p);
	finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->root = longest->pool == WEFT_NONE ? p : longest->pool;
	finding->weight = (uint64_t)q->waited_ns;
	finding->title = weft__finding_text(f,
	    "%" PRIu32 " promises queued for %s, %" PRIu32 " at once, for up to %s: %s on average%s", q->count,
	    longest->pool == WEFT_NONE ? "a semaphore" : weft__format_promise(f, longest->pool), q->most,
	    weft__format_duration(f, longest->end_ns - longest->start_ns), weft__format_duration(f, q->waited_ns / q->count), at);
	finding->next = weft__finding_text(f, "find out what keeps the places for so long, or allow more at once%s", at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, q->first->start_ns, q->first->promise, "%s is the first that waits",
	    weft__format_promise(f, q->first->promise));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, longest->start_ns, p, "%s%s starts to wait", name, at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, longest->end_ns, p, "%s gets its place %s later", name,
	    weft__format_duration(f, longest->end_ns - longest->start_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "those that waited did so for %" PRId64 "%% of their time", 100 * (q->waited_ns / 1000) / (q->lived_ns / 1000 + 1));
}

void weft__slot_queue_find(struct weft__finder *f)
{
	waits_vec waits = {0};
	gather_waits(f, &waits);
	for (size_t i = 0, end; !f->no_memory && i < waits.count; i = end) {
		for (end = i; end < waits.count && waits.items[end].queue == waits.items[i].queue; end++)
			;
		if (end - i < MIN_WAITS)
			continue;
		const struct queue q = measure_queue(f, &waits.items[i], (uint32_t)(end - i));
		if (q.most >= MIN_AT_ONCE &&
		    q.longest->end_ns - q.longest->start_ns >= MIN_LONGEST_STALLS * f->options.stall_ns &&
		    q.waited_ns >= q.lived_ns / 2)
			report_queue(f, &q);
	}
	weft_vec_free(&waits);
}
