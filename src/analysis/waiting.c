/* waiting.c: who waits for whom at a moment.  SPDX-License-Identifier: ISC */
#include "analysis/waiting.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"

/* ---- The waits ---- */

struct collector {
	struct weft__waiting *w;
	const struct weft_ties *ties;
	const uint32_t *at;       /* by promise: what it was at that time */
	uint32_t *seen_by, *seen; /* by promise: who was last found to wait for it; which wait that is */
	bool ahead, back;         /* a promise waits for a higher number, for a lower one; for itself is both */
	WEFT_VEC(struct weft__wait) waits;
};

bool weft__waiting_is_pending(const struct weft_model *m, uint32_t p, int64_t time_ns)
{
	const struct weft_promise *promise = &m->promises[p];
	if (p == WEFT_SYSTEM || promise->start_ns > time_ns)
		return false;
	bool over = weft_has_ended(promise) || promise->end == WEFT_END_BECAME;
	return !over || promise->end_ns > time_ns;
}

/* The same at the collector's time.  That in the end most have ended is told without a look at them. */
static bool is_pending(const struct collector *c, uint32_t p)
{
	return (c->w->time_ns != INT64_MAX || c->ties->ended_ns[p] == WEFT_NEVER) &&
	       weft__waiting_is_pending(c->w->model, p, c->w->time_ns);
}

enum { FEW = 8 };

static size_t look_for(const struct collector *c, size_t first, uint32_t to)
{
	while (first < c->waits.count && c->waits.items[first].to != to)
		first++;
	return first;
}

/* Where among the waits of p, which begin at `first`, that for `to` is; their count if it is not there; SIZE_MAX when out of
 * memory. Few are looked at one by one. */
static size_t find_wait(struct collector *c, uint32_t p, size_t first, uint32_t to)
{
	const size_t count = c->waits.count, n = c->w->model->promise_count;
	if (count - first < FEW)
		return look_for(c, first, to);
	if (!c->seen_by) {
		c->seen_by = calloc(n, sizeof *c->seen_by);
		c->seen = malloc(n * sizeof *c->seen);
		if (!c->seen_by || !c->seen)
			return SIZE_MAX;
	}
	if (count - first == FEW)
		for (size_t i = first; i < count; i++) {
			c->seen_by[c->waits.items[i].to] = p;
			c->seen[c->waits.items[i].to] = (uint32_t)i;
		}
	if (c->seen_by[to] == p)
		return c->seen[to];
	c->seen_by[to] = p;
	return c->seen[to] = (uint32_t)count;
}

/* Links come the latest first: a wait began with the first of its awaits. */
static bool put_wait(struct collector *c, size_t at, uint32_t p, struct weft__wait wait)
{
	if (at < c->waits.count) {
		c->waits.items[at].link = wait.link;
		return true;
	}
	c->ahead |= wait.to >= p;
	c->back |= wait.to <= p;
	struct weft__wait *added = at == c->waits.count ? weft_vec_push(&c->waits) : NULL;
	if (added)
		*added = wait;
	return added;
}

static bool add_pending(struct weft__waiting *w, uint32_t p)
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

/* Whether another OS thread, which waits for a lock, said later that p has it: p waits no longer, though the end of its own OS
 * thread is missing, where it said so. */
static bool has_taken(const struct collector *c, uint32_t p, const struct weft_link *await)
{
	const struct weft_model *m = c->w->model;
	const uint32_t end = c->ties->out_begin[await->to + 1];
	if (!weft_kind_has(m->promises[await->to].kind, WEFT_TRAIT_LOCK) || end == c->ties->out_begin[await->to])
		return false;
	const struct weft_link *held = &m->links[c->ties->out[end - 1]];
	return held->to == p && held->stream != await->stream && held->time_ns > await->time_ns && held->time_ns <= c->w->time_ns;
}

static bool find_waits(struct collector *c, uint32_t p)
{
	const struct weft_model *m = c->w->model;
	const uint32_t *out = c->ties->out;
	bool gathers = weft_kind_has(m->promises[p].kind, WEFT_TRAIT_GATHERS);
	uint32_t begin = c->ties->out_begin[p], end = c->ties->out_begin[p + 1];
	const struct weft_link *last = NULL;
	size_t count = c->waits.count, then = end;
	if (c->w->time_ns < m->end_ns)
		then = WEFT_FIRST(i, begin, end, m->links[out[i]].time_ns > c->w->time_ns);
	for (size_t i = then; i-- > begin;) {
		const struct weft_link *link = &m->links[out[i]];
		if (link->kind != WEFT_LINK_AWAIT)
			continue;
		if (!gathers && last && weft_run_before(m, p, link->time_ns) != weft_run_before(m, p, last->time_ns))
			break; /* it ran in between: it waits for something else by now */
		last = link;
		struct weft__wait wait = {c->at[link->to], out[i]};
		if (!is_pending(c, wait.to) || has_taken(c, p, link))
			continue;
		int64_t over_ns = weft_model_await_end(m, link);
		if ((over_ns == INT64_MAX || over_ns > c->w->time_ns) && !put_wait(c, find_wait(c, p, count, wait.to), p, wait))
			return false;
	}
	for (size_t low = count, high = c->waits.count; low + 1 < high; low++, high--) {
		struct weft__wait swap = c->waits.items[low];
		c->waits.items[low] = c->waits.items[high - 1];
		c->waits.items[high - 1] = swap;
	}
	/* What it reads next it has been waiting for, also where the model dropped that await. */
	if (then == end || m->links[out[then]].kind != WEFT_LINK_READ)
		return true;
	uint32_t run = weft_run_before(m, p, c->w->time_ns);
	if ((run != WEFT_NONE && m->runs[run].end_ns > c->w->time_ns) ||
	    run != weft_run_before(m, p, m->links[out[then]].time_ns))
		return true;
	struct weft__wait wait = {c->at[m->links[out[then]].to], out[then]};
	return !is_pending(c, wait.to) || put_wait(c, look_for(c, count, wait.to), p, wait);
}

int64_t weft__waiting_since(const struct weft__waiting *w, uint32_t p, const struct weft__wait *wait)
{
	const struct weft_model *m = w->model;
	if (wait->link == WEFT_NONE) {
		const struct weft__across *all = w->across.all.items;
		const size_t count = w->across.all.count;
		const size_t at = WEFT_FIRST(i, 0, count, all[i].from > p || (all[i].from == p && all[i].to >= wait->to));
		return at < count ? all[at].since_ns : w->model->promises[p].start_ns;
	}
	if (m->links[wait->link].kind == WEFT_LINK_AWAIT)
		return m->links[wait->link].time_ns;
	/* The await was dropped: it awaited at the end of its last run. */
	uint32_t run = weft_run_before(m, p, w->time_ns);
	int64_t since_ns = m->promises[p].start_ns;
	return run != WEFT_NONE && m->runs[run].end_ns > since_ns ? m->runs[run].end_ns : since_ns;
}

/* Into other processes. */
static bool find_across(struct collector *c, uint32_t p, size_t *next)
{
	const size_t begin = c->w->begin[p];
	const struct weft__across *all = c->w->across.all.items;
	bool has_memory = true;
	while (*next < c->w->across.all.count && all[*next].from < p)
		++*next;
	for (; *next < c->w->across.all.count && all[*next].from == p && has_memory; ++*next) {
		const struct weft__wait wait = {all[*next].to, WEFT_NONE};
		if (look_for(c, begin, wait.to) == c->waits.count)
			has_memory = put_wait(c, c->waits.count, p, wait);
	}
	return has_memory;
}

/* *ahead: a promise waits for one with a higher number. */
static bool collect(struct weft__waiting *w, const struct weft_ties *ties, bool *ahead, struct weft__watch *watch)
{
	const struct weft_model *m = w->model;
	struct collector c = {.w = w, .ties = ties, .at = ties->now};
	uint32_t *at = w->time_ns == INT64_MAX ? NULL : malloc(m->promise_count * sizeof *at);
	w->begin = calloc(m->promise_count + 1, sizeof *w->begin);
	bool ok = w->begin && (at || w->time_ns == INT64_MAX);
	if (ok && at) {
		ok = weft_ties_follow(m, w->time_ns, at, watch);
		c.at = at;
	}
	size_t next = 0;
	ok = ok && weft__across_find(&w->across, ties, w->time_ns);
	for (uint32_t p = 0; ok && p < m->promise_count; p++) {
		w->begin[p] = (uint32_t)c.waits.count;
		ok = weft__watch_goes_on(watch, p, m->promise_count) &&
		     (!is_pending(&c, p) || (add_pending(w, p) && find_waits(&c, p) && find_across(&c, p, &next)));
	}
	if (ok)
		w->begin[m->promise_count] = (uint32_t)c.waits.count;
	w->waits = c.waits.items;
	w->circles = c.ahead && c.back;
	*ahead = c.ahead;
	free(at);
	free(c.seen_by);
	free(c.seen);
	return ok;
}

/* ---- Parts ---- */

/* Where all waits lead to higher numbers, or all to lower ones, there is no circle, and the numbers are the order. */
static void order_by_number(struct weft__waiting *w, bool ahead)
{
	size_t count = w->pending.count;
	for (size_t i = 0; i < count; i++) {
		uint32_t p = w->pending.items[ahead ? count - 1 - i : i];
		w->order[i] = p;
		w->part[p] = (uint32_t)i + 1;
	}
}

/* Tarjan's strongly connected components, without recursion. */
struct walk {
	struct weft__waiting *w;
	uint32_t *seen, *low, *next, *path, *stack;
	uint32_t number, parts;
	size_t path_count, stack_count, order_count;
	bool circles; /* there may be one */
	size_t turns;
	struct weft__watch *watch;
};

/* A promise that can end by another of its inputs is not held up by one that is stuck. */
static bool counts(const struct weft__waiting *w, uint32_t p, uint32_t to)
{
	return !w->stuck[to] || w->stuck[p];
}

/* Most wait for nobody, and are a part alone. */
static bool place_alone(struct walk *k, uint32_t p)
{
	if (weft__waiting_count(k->w, p) > 0)
		return false;
	k->seen[p] = ++k->number;
	k->w->part[p] = ++k->parts;
	k->w->order[k->order_count++] = p;
	return true;
}

static void enter(struct walk *k, uint32_t p)
{
	k->path[k->path_count++] = p;
	k->seen[p] = k->low[p] = ++k->number;
	k->next[p] = k->w->begin[p];
	k->stack[k->stack_count++] = p;
}

static void leave(struct walk *k, uint32_t p)
{
	k->path_count--;
	if (k->path_count > 0 && k->low[p] < k->low[k->path[k->path_count - 1]])
		k->low[k->path[k->path_count - 1]] = k->low[p];
	if (k->low[p] != k->seen[p])
		return;
	size_t count = k->stack_count;
	uint32_t member;
	k->parts++;
	do {
		member = k->stack[--k->stack_count];
		k->w->part[member] = k->parts;
		k->w->order[k->order_count++] = member;
	} while (member != p);
	k->circles |= count - k->stack_count > 1;
}

static bool walk_from(struct walk *k, uint32_t start)
{
	const struct weft__waiting *w = k->w;
	assert(w->waits); /* who waits for nobody is no start */
	enter(k, start);
	while (k->path_count > 0) {
		uint32_t p = k->path[k->path_count - 1];
		if (!weft__watch_goes_on(k->watch, k->turns++, 2 * w->model->promise_count))
			return false;
		if (k->next[p] == w->begin[p + 1]) {
			leave(k, p);
			continue;
		}
		uint32_t to = w->waits[k->next[p]++].to;
		if (!counts(w, p, to))
			continue;
		k->circles |= to == p;
		if (k->seen[to] == 0) {
			if (!place_alone(k, to))
				enter(k, to);
		} else if (w->part[to] == 0 && k->seen[to] < k->low[p]) {
			k->low[p] = k->seen[to];
		}
	}
	return true;
}

static bool find_parts(struct weft__waiting *w, struct weft__watch *watch)
{
	size_t n = w->model->promise_count;
	struct walk k = {.w = w, .watch = watch};
	k.seen = calloc(n, sizeof *k.seen);
	k.low = malloc(n * sizeof *k.low);
	k.next = malloc(n * sizeof *k.next);
	k.path = malloc(n * sizeof *k.path);
	k.stack = malloc(n * sizeof *k.stack);
	bool ok = k.seen && k.low && k.next && k.path && k.stack;
	for (size_t i = 0; i < w->pending.count; i++)
		w->part[w->pending.items[i]] = 0;
	for (size_t i = 0; ok && i < w->pending.count; i++)
		if (k.seen[w->pending.items[i]] == 0 && !place_alone(&k, w->pending.items[i]))
			ok = walk_from(&k, w->pending.items[i]);
	free(k.seen);
	free(k.low);
	free(k.next);
	free(k.path);
	free(k.stack);
	w->circles = k.circles;
	return ok;
}

/* ---- Circles ---- */

/* Who can end: who waits for nobody, or for those only that can end; of one that takes the first of its inputs, any of them.  It
 * is found from the ends of all chains on; who is not reached is stuck. */
static bool find_stuck(struct weft__waiting *w)
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
		needed[p] = weft__waiting_count(w, p) == 0 ? 0 : first ? 1 : (uint32_t)weft__waiting_count(w, p);
		w->stuck[p] = needed[p] > 0;
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
				w->stuck[waiter] = false;
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

bool weft__waiting_in_circle(const struct weft__waiting *w, uint32_t p)
{
	return w->stuck[p] && weft__waiting_next_in_circle(w, p) != WEFT_NONE;
}

uint32_t weft__waiting_next_in_circle(const struct weft__waiting *w, uint32_t p)
{
	for (uint32_t i = w->begin[p]; i < w->begin[p + 1]; i++)
		if (w->part[w->waits[i].to] == w->part[p])
			return w->waits[i].to;
	return WEFT_NONE;
}

int weft__waiting_init(struct weft__waiting *w, const struct weft_ties *ties, int64_t time_ns, struct weft__watch *watch)
{
	size_t n = ties->model->promise_count;
	*w = (struct weft__waiting){.model = ties->model, .time_ns = time_ns};
	w->part = calloc(n, sizeof *w->part);
	w->order = malloc(n * sizeof *w->order);
	w->stuck = calloc(n, sizeof *w->stuck);
	bool ahead = false, ok = w->part && w->order && w->stuck && collect(w, ties, &ahead, watch);
	if (ok && !w->circles)
		order_by_number(w, ahead);
	/* Circles are rare: only where there may be one it is worth looking who can leave it. */
	else if (ok && (ok = find_parts(w, watch)) && w->circles)
		ok = find_stuck(w) && find_parts(w, watch);
	return ok ? WEFT_OK : watch && watch->called_off ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft__waiting_finish(struct weft__waiting *w)
{
	weft_vec_free(&w->pending);
	weft_vec_free(&w->should_end);
	weft__across_finish(&w->across);
	free(w->begin);
	free(w->waits);
	free(w->part);
	free(w->order);
	free(w->stuck);
	*w = (struct weft__waiting){0};
}
