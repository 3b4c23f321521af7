/* wait_graph.c: builds the graph of waits between promises at a moment, and finds its cycles.  SPDX-License-Identifier: ISC */
#include "analysis/index/wait_graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/index/signallers.h"
#include "base/search.h"
#include "base/vec.h"

/* ---- The waits ---- */

struct collector {
	struct weft__wait_graph *w;
	const struct weft_link_index *link_index;
	const uint32_t *at;       /* by promise: the promise that it had become at that time */
	uint32_t *seen_by, *seen; /* by promise: the waiter whose wait for it was found last; index of that wait */
	/* true if some promise waits for a promise with a higher number; with a lower number; a promise that waits for itself
	 * sets both */
	bool ahead, back;
	WEFT_VEC(struct weft__wait_edge) waits;
};

bool weft__wait_graph_is_pending(const struct weft_model *m, uint32_t p, int64_t time_ns)
{
	const struct weft_promise *promise = &m->promises[p];
	if (p == WEFT_SYSTEM || promise->start_ns > time_ns)
		return false;
	bool over = weft_has_ended(promise) || promise->end == WEFT_END_BECAME;
	return !over || promise->end_ns > time_ns;
}

/* Returns whether p was pending at the time of the collector.  At the end of the trace most promises have ended, which the
 * index shows quickly. */
static bool is_pending(const struct collector *c, uint32_t p)
{
	return (c->w->time_ns != INT64_MAX || c->link_index->ended_ns[p] == WEFT_NEVER) &&
	       weft__wait_graph_is_pending(c->w->model, p, c->w->time_ns);
}

enum { MAX_LINEAR_SCAN = 8 };

static size_t scan_for_wait(const struct collector *c, size_t first, uint32_t to)
{
	while (first < c->waits.count && c->waits.items[first].to != to)
		first++;
	return first;
}

/* Returns the index of p's wait for `to`; c->waits.count if there is none; SIZE_MAX when out of memory.  `first` is the index of
 * p's first wait.  A few waits are scanned one by one; for many waits the function uses an array. */
static size_t find_wait(struct collector *c, uint32_t p, size_t first, uint32_t to)
{
	const size_t count = c->waits.count, n = c->w->model->promise_count;
	if (count - first < MAX_LINEAR_SCAN)
		return scan_for_wait(c, first, to);
	if (!c->seen_by) {
		c->seen_by = calloc(n, sizeof *c->seen_by);
		c->seen = malloc(n * sizeof *c->seen);
		if (!c->seen_by || !c->seen)
			return SIZE_MAX;
	}
	if (count - first == MAX_LINEAR_SCAN)
		for (size_t i = first; i < count; i++) {
			c->seen_by[c->waits.items[i].to] = p;
			c->seen[c->waits.items[i].to] = (uint32_t)i;
		}
	if (c->seen_by[to] == p)
		return c->seen[to];
	c->seen_by[to] = p;
	return c->seen[to] = (uint32_t)count;
}

/* Adds a wait, or moves the start of a known wait to an earlier await: links come in reverse order of time. */
static bool record_wait(struct collector *c, size_t at, uint32_t p, struct weft__wait_edge wait)
{
	if (at < c->waits.count) {
		c->waits.items[at].link = wait.link;
		return true;
	}
	c->ahead |= wait.to >= p;
	c->back |= wait.to <= p;
	struct weft__wait_edge *added = at == c->waits.count ? weft_vec_push(&c->waits) : NULL;
	if (added)
		*added = wait;
	return added;
}

static bool add_pending(struct weft__wait_graph *w, uint32_t p)
{
	const struct weft_promise *promise = &w->model->promises[p];
	const bool should_end = promise->flags & WEFT_PROMISE_NEVER_RESOLVED;
	uint32_t *added = weft_vec_push(&w->pending), *listed = should_end ? weft_vec_push(&w->should_end) : NULL;
	w->kinds |= 1ull << promise->kind % 64;
	if (added)
		*added = p;
	if (listed)
		*listed = p;
	return added && (listed || !should_end);
}

/* Returns whether another thread that waits for the lock recorded later that p holds it.  If so, p no longer waits for the
 * lock, although the events of p's own thread that say so are missing. */
static bool has_acquired(const struct collector *c, uint32_t p, const struct weft_link *await)
{
	const struct weft_model *m = c->w->model;
	const uint32_t end = c->link_index->out_begin[await->to + 1];
	if (!weft_kind_has(m->promises[await->to].kind, WEFT_TRAIT_LOCK) || end == c->link_index->out_begin[await->to])
		return false;
	const struct weft_link *held = &m->links[c->link_index->out[end - 1]];
	return held->to == p && held->stream != await->stream && held->time_ns > await->time_ns && held->time_ns <= c->w->time_ns;
}

static bool find_waits(struct collector *c, uint32_t p)
{
	const struct weft_model *m = c->w->model;
	const uint32_t *out = c->link_index->out;
	bool gathers = weft_kind_has(m->promises[p].kind, WEFT_TRAIT_GATHERS);
	uint32_t begin = c->link_index->out_begin[p], end = c->link_index->out_begin[p + 1];
	const struct weft_link *last = NULL;
	size_t count = c->waits.count, then = end;
	if (c->w->time_ns < m->end_ns)
		then = WEFT_FIND_FIRST(i, begin, end, m->links[out[i]].time_ns > c->w->time_ns);
	for (size_t i = then; i-- > begin;) {
		const struct weft_link *link = &m->links[out[i]];
		if (link->kind != WEFT_LINK_AWAIT)
			continue;
		if (!gathers && last && weft_run_before(m, p, link->time_ns) != weft_run_before(m, p, last->time_ns))
			break; /* the promise ran since, so it no longer waits for earlier inputs */
		last = link;
		struct weft__wait_edge wait = {c->at[link->to], out[i]};
		if (!is_pending(c, wait.to) || has_acquired(c, p, link))
			continue;
		int64_t over_ns = weft_model_await_end(m, link);
		if ((over_ns == INT64_MAX || over_ns > c->w->time_ns) &&
		    !record_wait(c, find_wait(c, p, count, wait.to), p, wait))
			return false;
	}
	for (size_t low = count, high = c->waits.count; low + 1 < high; low++, high--) {
		struct weft__wait_edge swap = c->waits.items[low];
		c->waits.items[low] = c->waits.items[high - 1];
		c->waits.items[high - 1] = swap;
	}
	/* The promise waits for the input that it reads next, even if the model dropped that await. */
	if (then == end || m->links[out[then]].kind != WEFT_LINK_READ)
		return true;
	uint32_t run = weft_run_before(m, p, c->w->time_ns);
	if ((run != WEFT_NONE && m->runs[run].end_ns > c->w->time_ns) ||
	    run != weft_run_before(m, p, m->links[out[then]].time_ns))
		return true;
	struct weft__wait_edge wait = {c->at[m->links[out[then]].to], out[then]};
	return !is_pending(c, wait.to) || record_wait(c, scan_for_wait(c, count, wait.to), p, wait);
}

int64_t weft__wait_graph_since(const struct weft__wait_graph *w, uint32_t p, const struct weft__wait_edge *wait)
{
	const struct weft_model *m = w->model;
	if (wait->link == WEFT_NONE) {
		const struct weft__remote_wait *all = w->remote_waits.all.items;
		const size_t count = w->remote_waits.all.count;
		const size_t at = WEFT_FIND_FIRST(i, 0, count, all[i].from > p || (all[i].from == p && all[i].to >= wait->to));
		return at < count ? all[at].since_ns : w->model->promises[p].start_ns;
	}
	if (m->links[wait->link].kind == WEFT_LINK_AWAIT)
		return m->links[wait->link].time_ns;
	/* If the model dropped the await, the wait starts at the end of the promise's last run. */
	uint32_t run = weft_run_before(m, p, w->time_ns);
	int64_t since_ns = m->promises[p].start_ns;
	return run != WEFT_NONE && m->runs[run].end_ns > since_ns ? m->runs[run].end_ns : since_ns;
}

/* Adds waits of p that no event records; returns false when out of memory. */
static bool find_remote_waits(struct collector *c, uint32_t p, size_t *next)
{
	const size_t begin = c->w->begin[p];
	const struct weft__remote_wait *all = c->w->remote_waits.all.items;
	bool has_memory = true;
	while (*next < c->w->remote_waits.all.count && all[*next].from < p)
		++*next;
	for (; *next < c->w->remote_waits.all.count && all[*next].from == p && has_memory; ++*next) {
		const struct weft__wait_edge wait = {all[*next].to, WEFT_NONE};
		if (scan_for_wait(c, begin, wait.to) == c->waits.count)
			has_memory = record_wait(c, c->waits.count, p, wait);
	}
	return has_memory;
}

/* Collects the waits of all promises; returns false when out of memory or if cancelled. */
static bool collect_all(struct collector *c, struct weft__cancel_token *cancel)
{
	struct weft__wait_graph *w = c->w;
	const struct weft_model *m = w->model;
	size_t next = 0;
	bool ok = true;
	for (uint32_t p = 0; ok && p < m->promise_count; p++) {
		w->begin[p] = (uint32_t)c->waits.count;
		ok = weft__cancel_token_may_continue(cancel, p, m->promise_count) &&
		     (!is_pending(c, p) || (add_pending(w, p) && find_waits(c, p) && find_remote_waits(c, p, &next)));
	}
	if (ok)
		w->begin[m->promise_count] = (uint32_t)c->waits.count;
	w->waits = c->waits.items;
	return ok;
}

/* Collects all waits; sets *ahead if some promise waits for a promise with a higher number. */
static bool collect_waits(
    struct weft__wait_graph *w, const struct weft_link_index *link_index, bool *ahead, struct weft__cancel_token *cancel)
{
	const struct weft_model *m = w->model;
	struct collector c = {.w = w, .link_index = link_index, .at = link_index->final};
	uint32_t *at = w->time_ns == INT64_MAX ? NULL : malloc(m->promise_count * sizeof *at);
	w->begin = calloc(m->promise_count + 1, sizeof *w->begin);
	bool ok = w->begin && (at || w->time_ns == INT64_MAX);
	if (ok && at) {
		ok = weft_link_index_successors_at(m, w->time_ns, at, cancel);
		c.at = at;
	}
	bool has_new = false;
	ok = ok && weft__remote_waits_find(&w->remote_waits, link_index, w->time_ns) && collect_all(&c, cancel) &&
	     weft__signallers_find(w, link_index, &has_new);
	if (ok && has_new) {
		w->pending.count = w->should_end.count = c.waits.count = 0;
		if (c.seen_by)
			memset(c.seen_by, 0, m->promise_count * sizeof *c.seen_by);
		ok = collect_all(&c, cancel);
	}
	w->may_have_cycles = c.ahead && c.back;
	*ahead = c.ahead;
	free(at);
	free(c.seen_by);
	free(c.seen);
	return ok;
}

/* ---- Components ---- */

/* Orders the pending promises by number.  If all waits lead to promises with higher numbers, or all to lower ones, there is no
 * cycle, and the order by number is a valid order of the components. */
static void order_by_number(struct weft__wait_graph *w, bool ahead)
{
	size_t count = w->pending.count;
	for (size_t i = 0; i < count; i++) {
		uint32_t p = w->pending.items[ahead ? count - 1 - i : i];
		w->order[i] = p;
		w->component[p] = (uint32_t)i + 1;
	}
}

/* State of Tarjan's algorithm for strongly connected components, without recursion. */
struct walk {
	struct weft__wait_graph *w;
	uint32_t *seen, *low, *next, *path, *stack;
	uint32_t number, component_count;
	size_t path_count, stack_count, order_count;
	bool may_have_cycles;
	size_t iterations;
	struct weft__cancel_token *cancel;
};

/* Returns whether p's wait for `to` can be part of a cycle: a promise that can still end is not blocked by a deadlocked
 * input. */
static bool can_block(const struct weft__wait_graph *w, uint32_t p, uint32_t to)
{
	return !w->deadlocked[to] || w->deadlocked[p];
}

/* Makes p a component of its own if p waits for nothing, as most promises do; else returns false. */
static bool add_single_component(struct walk *k, uint32_t p)
{
	if (weft__wait_graph_count(k->w, p) > 0)
		return false;
	k->seen[p] = ++k->number;
	k->w->component[p] = ++k->component_count;
	k->w->order[k->order_count++] = p;
	return true;
}

static void enter_promise(struct walk *k, uint32_t p)
{
	k->path[k->path_count++] = p;
	k->seen[p] = k->low[p] = ++k->number;
	k->next[p] = k->w->begin[p];
	k->stack[k->stack_count++] = p;
}

static void leave_promise(struct walk *k, uint32_t p)
{
	k->path_count--;
	if (k->path_count > 0 && k->low[p] < k->low[k->path[k->path_count - 1]])
		k->low[k->path[k->path_count - 1]] = k->low[p];
	if (k->low[p] != k->seen[p])
		return;
	size_t count = k->stack_count;
	uint32_t member;
	k->component_count++;
	do {
		member = k->stack[--k->stack_count];
		k->w->component[member] = k->component_count;
		k->w->order[k->order_count++] = member;
	} while (member != p);
	k->may_have_cycles |= count - k->stack_count > 1;
}

static bool visit_from(struct walk *k, uint32_t start)
{
	const struct weft__wait_graph *w = k->w;
	assert(w->waits); /* the promise at which the walk starts waits for some promise */
	enter_promise(k, start);
	while (k->path_count > 0) {
		uint32_t p = k->path[k->path_count - 1];
		if (!weft__cancel_token_may_continue(k->cancel, k->iterations++, 2 * w->model->promise_count))
			return false;
		if (k->next[p] == w->begin[p + 1]) {
			leave_promise(k, p);
			continue;
		}
		uint32_t to = w->waits[k->next[p]++].to;
		if (!can_block(w, p, to))
			continue;
		k->may_have_cycles |= to == p;
		if (k->seen[to] == 0) {
			if (!add_single_component(k, to))
				enter_promise(k, to);
		} else if (w->component[to] == 0 && k->seen[to] < k->low[p]) {
			k->low[p] = k->seen[to];
		}
	}
	return true;
}

static bool find_components(struct weft__wait_graph *w, struct weft__cancel_token *cancel)
{
	size_t n = w->model->promise_count;
	struct walk k = {.w = w, .cancel = cancel};
	k.seen = calloc(n, sizeof *k.seen);
	k.low = malloc(n * sizeof *k.low);
	k.next = malloc(n * sizeof *k.next);
	k.path = malloc(n * sizeof *k.path);
	k.stack = malloc(n * sizeof *k.stack);
	bool ok = k.seen && k.low && k.next && k.path && k.stack;
	for (size_t i = 0; i < w->pending.count; i++)
		w->component[w->pending.items[i]] = 0;
	for (size_t i = 0; ok && i < w->pending.count; i++)
		if (k.seen[w->pending.items[i]] == 0 && !add_single_component(&k, w->pending.items[i]))
			ok = visit_from(&k, w->pending.items[i]);
	free(k.seen);
	free(k.low);
	free(k.next);
	free(k.path);
	free(k.stack);
	w->may_have_cycles = k.may_have_cycles;
	return ok;
}

/* ---- Cycles ---- */

/* Finds the promises that can never end.  A promise can end if it waits for nothing, or if all its inputs can end; a promise
 * that needs only the first of its inputs can end if any of them can.  The search starts at the ends of all wait chains;
 * promises that it does not reach are deadlocked. */
static bool find_deadlocked(struct weft__wait_graph *w)
{
	size_t n = w->model->promise_count, count = w->begin[n], todo = 0;
	uint32_t *waiters_begin = calloc(n + 1, sizeof *waiters_begin), *waiters = calloc(count + 1, sizeof *waiters);
	uint32_t *needed = malloc(n * sizeof *needed), *list = malloc(n * sizeof *list);
	bool ok = waiters_begin && waiters && needed && list;
	for (size_t i = 0; ok && i < count; i++)
		waiters_begin[w->waits[i].to + 1]++;
	for (size_t p = 0; ok && p < n; p++)
		waiters_begin[p + 1] += waiters_begin[p];
	for (uint32_t p = 0; ok && p < n; p++) {
		for (uint32_t i = w->begin[p]; i < w->begin[p + 1]; i++)
			waiters[waiters_begin[w->waits[i].to]++] = p;
		bool first = weft_kind_has(w->model->promises[p].kind, WEFT_TRAIT_FIRST);
		needed[p] = weft__wait_graph_count(w, p) == 0 ? 0 : first ? 1 : (uint32_t)weft__wait_graph_count(w, p);
		w->deadlocked[p] = needed[p] > 0;
		if (needed[p] == 0)
			list[todo++] = p;
	}
	if (ok) {
		memmove(waiters_begin + 1, waiters_begin, n * sizeof *waiters_begin);
		waiters_begin[0] = 0;
	}
	while (ok && todo > 0) {
		uint32_t p = list[--todo];
		for (uint32_t i = waiters_begin[p]; i < waiters_begin[p + 1]; i++) {
			uint32_t waiter = waiters[i];
			if (needed[waiter] > 0 && --needed[waiter] == 0) {
				w->deadlocked[waiter] = false;
				list[todo++] = waiter;
			}
		}
	}
	free(waiters_begin);
	free(waiters);
	free(needed);
	free(list);
	return ok;
}

bool weft__wait_graph_in_cycle(const struct weft__wait_graph *w, uint32_t p)
{
	return w->deadlocked[p] && weft__wait_graph_next_in_cycle(w, p) != WEFT_NONE;
}

uint32_t weft__wait_graph_next_in_cycle(const struct weft__wait_graph *w, uint32_t p)
{
	for (uint32_t i = w->begin[p]; i < w->begin[p + 1]; i++)
		if (w->component[w->waits[i].to] == w->component[p])
			return w->waits[i].to;
	return WEFT_NONE;
}

int weft__wait_graph_init(
    struct weft__wait_graph *w, const struct weft_link_index *link_index, int64_t time_ns, struct weft__cancel_token *cancel)
{
	size_t n = link_index->model->promise_count;
	*w = (struct weft__wait_graph){.model = link_index->model, .time_ns = time_ns};
	w->component = calloc(n, sizeof *w->component);
	w->order = malloc(n * sizeof *w->order);
	w->deadlocked = calloc(n, sizeof *w->deadlocked);
	bool ahead = false, ok = w->component && w->order && w->deadlocked && collect_waits(w, link_index, &ahead, cancel);
	if (ok && !w->may_have_cycles)
		order_by_number(w, ahead);
	/* Cycles are rare, so deadlocked promises are searched only if there may be a cycle. */
	else if (ok && (ok = find_components(w, cancel)) && w->may_have_cycles)
		ok = find_deadlocked(w) && find_components(w, cancel);
	return ok ? WEFT_OK : cancel && cancel->was_cancelled ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft__wait_graph_finish(struct weft__wait_graph *w)
{
	weft_vec_free(&w->pending);
	weft_vec_free(&w->should_end);
	weft__remote_waits_finish(&w->remote_waits);
	free(w->begin);
	free(w->waits);
	free(w->component);
	free(w->order);
	free(w->deadlocked);
	*w = (struct weft__wait_graph){0};
}
