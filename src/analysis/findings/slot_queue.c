/* slot_queue.c: finds long queues for a semaphore or a pool: many promises waited for an item, most of them for longer than
 * they then used the item.
 *
 * Only promises that give their items back can form such a queue.  A semaphore that other promises post is a signal: its
 * waiters have nothing to do until it is posted.  The limit may be intended, so the finding is informational.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/idmap.h"

enum {
	MIN_WAITS = 8,
	MIN_AT_ONCE = 4,        /* fewest promises that wait at the same time */
	MIN_LONGEST_STALLS = 10 /* shortest reported wait, in stall limits: shorter waits are what a limit is for */
};

/* The waits for one pool, or for the semaphores that were created at one site. */
struct queue {
	const struct weft__span *first, *longest;
	uint32_t count, most;
	uint32_t handed_on;          /* number of items that came from a promise which had itself waited for an item */
	uint32_t pool;               /* the pool for which the promises wait; WEFT_NONE if they wait for semaphores */
	int64_t waited_ns, lived_ns; /* sum of the durations of all waits; sum of the lifetimes of the promises that waited */
};

/* Gathers the waits for semaphores that got an item; a wait that never got one is a hang.  The waits of one type form a
 * group. */
static void gather_semaphore_waits(struct weft__finder *f, weft__spans_vec *waits)
{
	const struct weft_promise *promises = f->model->promises;
	for (uint32_t p = 1; weft__promise_types_have(&f->types, WEFT_KIND_SEMAPHORE) && p < f->model->promise_count; p++)
		if (f->types.kinds[p] == WEFT_KIND_SEMAPHORE && promises[p].end == WEFT_END_RESOLVED &&
		    weft__has_complete_history(f->completeness, f->model, p))
			weft__spans_add(
			    f, waits, (struct weft__span){f->types.of[p], promises[p].start_ns, promises[p].end_ns, p, 0});
}

/* Returns when a wait for a pool got its item; WEFT_NEVER if it never did.  A promise that does nothing but wait ends when it
 * gets the item. */
static int64_t find_got_ns(const struct weft__finder *f, const struct weft_link *wait)
{
	const struct weft_promise *waiter = &f->model->promises[wait->from];
	if (weft_has_ended(waiter) && waiter->end != WEFT_END_RESOLVED)
		return WEFT_NEVER;
	return weft_min_ns(weft_model_await_end(f->model, wait), f->link_index.ended_ns[wait->from]);
}

/* Gathers waits for pools.  The waits for one pool form a group. */
static void gather_pool_waits(struct weft__finder *f, weft__spans_vec *waits)
{
	const struct weft_model *m = f->model;
	for (size_t l = 0; weft__promise_types_have(&f->types, WEFT_KIND_POOL) && l < m->link_count; l++) {
		const struct weft_link *link = &m->links[l];
		if (link->kind != WEFT_LINK_AWAIT || f->types.kinds[link->to] != WEFT_KIND_POOL || link->from == WEFT_SYSTEM)
			continue;
		const int64_t got_ns = find_got_ns(f, link);
		if (got_ns != WEFT_NEVER && got_ns >= link->time_ns)
			weft__spans_add(f, waits, (struct weft__span){link->to, link->time_ns, got_ns, link->from, 0});
	}
}

/* Returns the promise that uses the item for which p waited: for a semaphore, the promise that read the result of p. */
static uint32_t find_user(const struct weft__finder *f, uint32_t p)
{
	for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_READ && link->from != WEFT_SYSTEM)
			return f->link_index.final[link->from];
	}
	return f->link_index.final[p];
}

/* Returns the promise that ended p; WEFT_NONE if the trace does not tell. */
static uint32_t find_resolver(const struct weft__finder *f, uint32_t p)
{
	for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_RESOLVE && link->from != WEFT_SYSTEM)
			return f->link_index.final[link->from];
	}
	return WEFT_NONE;
}

/* Returns whether wait w got its item from one of the promises `users`, which had themselves got an item.  The recorder of OS
 * threads records a semaphore as a pool only if its holders post it, so the waits of threads always count. */
static bool is_handed_on(const struct weft__finder *f, const struct weft_idmap *users, const struct weft__span *w)
{
	const uint32_t resolver = find_resolver(f, w->promise);
	return weft_kind_has(f->model->promises[w->promise].kind, WEFT_TRAIT_THREAD) ||
	       (resolver != WEFT_NONE && weft_idmap_get(users, resolver) != WEFT_IDMAP_NONE);
}

static void measure_waits(struct weft__finder *f, struct queue *q)
{
	struct weft_idmap users = {0}; /* the promises that got an item */
	for (uint32_t i = 0; !f->no_memory && i < q->count; i++) {
		const struct weft__span *w = &q->first[i];
		const uint32_t user = find_user(f, w->promise);
		q->handed_on += is_handed_on(f, &users, w);
		q->waited_ns += w->end_ns - w->start_ns;
		if (w->end_ns - w->start_ns > q->longest->end_ns - q->longest->start_ns)
			q->longest = w;
		if (weft_idmap_get(&users, user) != WEFT_IDMAP_NONE)
			continue;
		f->no_memory |= !weft_idmap_set(&users, user, i);
		const int64_t over_ns = weft_min_ns(f->link_index.ended_ns[user], weft_model_until(f->model, w->promise));
		q->lived_ns += weft_max_ns(over_ns, w->end_ns) - w->start_ns;
	}
	weft_idmap_finish(&users);
}

/* Returns whether the waits ended in the order in which they began.  If they did not, the waits were for several semaphores
 * that the trace does not tell apart. */
static bool are_in_order(const struct queue *q)
{
	for (uint32_t i = 1; i < q->count; i++)
		if (q->first[i].end_ns < q->first[i - 1].end_ns)
			return false;
	return true;
}

static const char *format_wait_place(struct weft__finder *f, const struct queue *q)
{
	const struct weft__span *w = q->longest;
	const char *at = q->pool == WEFT_NONE ? "" : weft__format_wait_place(f, w->promise, q->pool, w->start_ns);
	return *at ? weft__finding_text(f, " (%s)", at + sizeof " at " - 1) : weft__format_site_suffix(f, w->promise);
}

static void report_queue(struct weft__finder *f, const struct queue *q)
{
	const struct weft__span *w = q->longest;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_EXHAUSTED, w->promise, w->start_ns, w->end_ns);
	if (!finding)
		return;
	const char *at = format_wait_place(f, q), *name = weft__format_promise(f, w->promise),
		   *longest = weft__format_duration(f, w->end_ns - w->start_ns);
	finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->root = q->pool == WEFT_NONE ? w->promise : q->pool;
	finding->weight = (uint64_t)q->waited_ns;
	finding->title =
	    weft__finding_text(f, "%" PRIu32 " promises queued for %s for %s on average and %s at most, %" PRIu32 " at once%s",
		q->count, q->pool == WEFT_NONE ? "a semaphore" : weft__format_promise(f, q->pool),
		weft__format_duration(f, q->waited_ns / q->count), longest, q->most, at);
	finding->next = weft__finding_text(f, "hold each place of the semaphore for less time, or add places%s", at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, q->first->start_ns, q->first->promise, "%s is the first that waits",
	    weft__format_promise(f, q->first->promise));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, w->start_ns, w->promise, "%s%s starts to wait", name, at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, w->end_ns, w->promise, "%s gets its place %s later", name, longest);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "the promises that waited spent %" PRId64 "%% of their time in this queue",
	    100 * (q->waited_ns / 1000) / (q->lived_ns / 1000 + 1));
}

static void find_queues(struct weft__finder *f, weft__spans_vec *waits, bool is_pool)
{
	weft__spans_sort(waits);
	for (size_t i = 0, end; !f->no_memory && i < waits->count; i = end) {
		const struct weft__span *first = &waits->items[i];
		end = weft__spans_group_end(waits, i);
		if (end - i < MIN_WAITS)
			continue;
		struct queue q = {.first = first, .longest = first, .count = (uint32_t)(end - i), .pool = WEFT_NONE};
		if (is_pool)
			q.pool = (uint32_t)first->group;
		measure_waits(f, &q);
		q.most = weft__spans_most_at_once(f, first, q.count);
		if (q.most >= MIN_AT_ONCE &&
		    q.longest->end_ns - q.longest->start_ns >= MIN_LONGEST_STALLS * f->options.stall_ns &&
		    q.handed_on >= q.count / 2 && q.waited_ns >= q.lived_ns / 2 && (is_pool || are_in_order(&q)))
			report_queue(f, &q);
	}
	weft_vec_free(waits);
}

void weft__slot_queue_find(struct weft__finder *f)
{
	weft__spans_vec waits = {0};
	gather_semaphore_waits(f, &waits);
	find_queues(f, &waits, false);
	gather_pool_waits(f, &waits);
	find_queues(f, &waits, true);
}
