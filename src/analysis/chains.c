/* chains.c: what pending promises wait for in the end.  SPDX-License-Identifier: ISC */
#include "analysis/chains.h"

#include <string.h>

#include "base/search.h"
#include "base/sort.h"

/* How much a verdict explains: of several that a promise waits for, the worst is told. */
static int badness(enum weft_verdict verdict)
{
	static const int order[WEFT_VERDICTS_COUNT] = {[WEFT_VERDICT_CYCLE] = 7,
	    [WEFT_VERDICT_LOST_WAKEUP] = 6,
	    [WEFT_VERDICT_NOT_RELEASED] = 6,
	    [WEFT_VERDICT_NOT_HANDED_ON] = 6,
	    [WEFT_VERDICT_CREATOR_FAILED] = 5,
	    [WEFT_VERDICT_NOT_RUN] = 4,
	    [WEFT_VERDICT_NEVER_TRIED] = 3,
	    [WEFT_VERDICT_OUTSIDE] = 2,
	    [WEFT_VERDICT_UNKNOWN] = 1};
	return order[verdict];
}

static bool is_condition(const struct weft_model *m, uint32_t p)
{
	return p != WEFT_NONE && weft_kind_has(m->promises[p].kind, WEFT_TRAIT_CONDITION);
}

/* ---- Conditions ---- */

/* Who was created by conditions: only where a condition may have been missed. */
static bool list_kids(struct weft__chains *c)
{
	const struct weft_model *m = c->ties->model;
	c->kids_begin = calloc(m->promise_count + 1, sizeof *c->kids_begin);
	c->kids = malloc((m->promise_count + 1) * sizeof *c->kids);
	c->unheard_of = malloc(m->promise_count * sizeof *c->unheard_of);
	if (!c->kids_begin || !c->kids || !c->unheard_of)
		return false;
	memset(c->unheard_of, 0xff, m->promise_count * sizeof *c->unheard_of);
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (is_condition(m, m->promises[p].created_by))
			c->kids_begin[m->promises[p].created_by + 1]++;
	for (size_t p = 0; p < m->promise_count; p++)
		c->kids_begin[p + 1] += c->kids_begin[p];
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (is_condition(m, m->promises[p].created_by))
			c->kids[c->kids_begin[m->promises[p].created_by]++] = p;
	memmove(c->kids_begin + 1, c->kids_begin, m->promise_count * sizeof *c->kids_begin);
	c->kids_begin[0] = 0;
	return true;
}

/* A condition that is signalled runs for a moment.  If it neither resolves nor creates anything then, nobody waited there; to
 * wait is a signal too, at which it creates who waits. */
static bool list_unheard(struct weft__chains *c, uint32_t condition)
{
	const struct weft_model *m = c->ties->model;
	const struct weft_ties *ties = c->ties;
	size_t count_at = c->unheard.count;
	uint32_t *count = weft_vec_push(&c->unheard);
	if (!count)
		return false;
	*count = 0;
	c->unheard_of[condition] = (uint32_t)count_at;
	uint32_t out = ties->out_begin[condition], out_end = ties->out_begin[condition + 1];
	uint32_t kid = c->kids_begin[condition], kids_end = c->kids_begin[condition + 1];
	for (uint32_t i = ties->in_begin[condition]; i < ties->in_begin[condition + 1]; i++) {
		const struct weft_link *signal = &m->links[ties->in[i]];
		if (signal->kind != WEFT_LINK_SIGNAL)
			continue;
		uint32_t run = weft_run_before(m, condition, signal->time_ns + 1);
		int64_t until_ns =
		    run != WEFT_NONE && m->runs[run].start_ns == signal->time_ns ? m->runs[run].end_ns : signal->time_ns;
		while (out < out_end && m->links[ties->out[out]].time_ns < signal->time_ns)
			out++;
		while (kid < kids_end && m->promises[c->kids[kid]].start_ns < signal->time_ns)
			kid++;
		bool resolves = false;
		for (uint32_t o = out; o < out_end && m->links[ties->out[o]].time_ns <= until_ns && !resolves; o++)
			resolves = m->links[ties->out[o]].kind == WEFT_LINK_RESOLVE;
		bool waits = kid < kids_end && m->promises[c->kids[kid]].start_ns <= until_ns;
		if (resolves || waits)
			continue;
		uint32_t *added = weft_vec_push(&c->unheard);
		if (!added)
			return false;
		*added = ties->in[i];
		c->unheard.items[count_at]++;
	}
	return true;
}

/* Makes the list of what p's condition missed, if p has one; false when out of memory. */
static bool hear_condition(struct weft__chains *c, uint32_t p)
{
	uint32_t condition = c->ties->model->promises[p].created_by;
	if (!is_condition(c->ties->model, condition))
		return true;
	return (c->unheard_of || list_kids(c)) && (c->unheard_of[condition] != WEFT_NONE || list_unheard(c, condition));
}

size_t weft__chains_missed_signals(const struct weft__chains *c, uint32_t p, const uint32_t **links)
{
	const struct weft_model *m = c->ties->model;
	uint32_t condition = m->promises[p].created_by;
	if (!is_condition(m, condition) || !c->unheard_of || c->unheard_of[condition] == WEFT_NONE)
		return 0;
	const uint32_t *list = &c->unheard.items[c->unheard_of[condition]];
	*links = list + 1;
	return WEFT_FIRST(i, 0, list[0], m->links[list[1 + i]].time_ns >= m->promises[p].start_ns);
}

/* ---- Roots ---- */

uint32_t weft__chains_ready_input(const struct weft__chains *c, uint32_t p)
{
	const struct weft_ties *ties = c->ties;
	const struct weft_model *m = ties->model;
	if (ties->out_begin[p] == ties->out_begin[p + 1])
		return WEFT_NONE;
	const struct weft_link *last = &m->links[ties->out[ties->out_begin[p + 1] - 1]];
	if (last->kind != WEFT_LINK_AWAIT || ties->ended_ns[last->to] == WEFT_NEVER)
		return WEFT_NONE;
	uint32_t run = weft_run_before(m, p, INT64_MAX);
	if (run != WEFT_NONE && m->runs[run].end_ns > ties->ended_ns[last->to])
		return WEFT_NONE;
	return ties->now[last->to];
}

uint32_t weft__chains_last_hold(const struct weft__chains *c, uint32_t lock)
{
	const struct weft_ties *ties = c->ties;
	for (uint32_t i = ties->out_begin[lock + 1]; i-- > ties->out_begin[lock];)
		if (ties->model->links[ties->out[i]].kind == WEFT_LINK_AWAIT)
			return ties->out[i];
	return WEFT_NONE;
}

/* Of a lock, or a pool, that, as far as is known, no pending promise holds. */
static enum weft_verdict lock_verdict(const struct weft__chains *c, uint32_t lock)
{
	const struct weft_model *m = c->ties->model;
	uint32_t hold = weft__chains_last_hold(c, lock);
	if (hold == WEFT_NONE || !weft__lacks_nothing_of(c->lacks, m, lock))
		return WEFT_VERDICT_UNKNOWN;
	return weft_model_await_end(m, &m->links[hold]) == INT64_MAX ? WEFT_VERDICT_NOT_RELEASED : WEFT_VERDICT_NOT_HANDED_ON;
}

/* What ends it comes from outside; a call of another process is answered there, if who serves it is not in the trace. */
static bool is_from_outside(const struct weft_promise *promise)
{
	return weft_kind_has(promise->kind, WEFT_TRAIT_OUTSIDE) ||
	       (weft_kind_has(promise->kind, WEFT_TRAIT_REQUEST) && promise->flags & WEFT_PROMISE_SENT);
}

/* Of a pending promise that, as far as is known, waits for nobody. */
static enum weft_verdict root_verdict(const struct weft__chains *c, uint32_t p)
{
	const struct weft_model *m = c->ties->model;
	const struct weft_promise *promise = &m->promises[p], *creator = &m->promises[promise->created_by];
	const uint32_t *missed;
	if (weft_kind_has(promise->kind, WEFT_TRAIT_LOCK | WEFT_TRAIT_POOL))
		return lock_verdict(c, p);
	if (weft__chains_ready_input(c, p) != WEFT_NONE)
		return WEFT_VERDICT_NOT_RUN;
	if (weft__across_end(m, p)) /* another process waits for it: what comes is for its peer to say */
		return WEFT_VERDICT_OUTSIDE;
	if (weft_kind_has(promise->kind, WEFT_TRAIT_INPUTS))
		return WEFT_VERDICT_UNKNOWN;
	/* What ends it from outside needs no signal, as a timer that a signalled callback set. */
	if (!is_from_outside(promise) && weft__chains_missed_signals(c, p, &missed) > 0)
		return WEFT_VERDICT_LOST_WAKEUP;
	/* A creator of whom nothing is known may be a condition that was signalled before. */
	bool may_be_condition = is_condition(m, promise->created_by) || creator->kind == WEFT_KIND_PREEXISTING;
	if (!weft__lacks_nothing_of(c->lacks, m, p) ||
	    (may_be_condition && !weft__lacks_nothing_of(c->lacks, m, promise->created_by)))
		return WEFT_VERDICT_UNKNOWN;
	if (creator->end == WEFT_END_FAILED && weft_has_ended(creator) && creator->end_ns > promise->start_ns)
		return WEFT_VERDICT_CREATOR_FAILED;
	return is_from_outside(promise) ? WEFT_VERDICT_OUTSIDE : WEFT_VERDICT_NEVER_TRIED;
}

/* Those that p waits for are known. */
static bool follow_from(struct weft__chains *c, uint32_t p)
{
	const struct weft__waiting *w = c->waiting;
	bool least = weft_kind_has(c->ties->model->promises[p].kind, WEFT_TRAIT_FIRST);
	uint32_t best = WEFT_NONE;
	for (uint32_t i = w->begin[p]; i < w->begin[p + 1]; i++) {
		uint32_t q = w->waits[i].to;
		if (w->part[q] == w->part[p] || (w->stuck[q] && !w->stuck[p]))
			continue;
		int order = best == WEFT_NONE ? 0 : badness(c->verdict[q]) - badness(c->verdict[best]);
		if (best == WEFT_NONE || (least ? order < 0 : order > 0))
			best = q;
	}
	c->next[p] = best;
	c->root[p] = best == WEFT_NONE ? p : c->root[best];
	if (best != WEFT_NONE)
		c->verdict[p] = c->verdict[best];
	else if (weft__waiting_count(w, p) > 0)
		c->verdict[p] = WEFT_VERDICT_UNKNOWN;
	else if (!hear_condition(c, p))
		return false;
	else
		c->verdict[p] = root_verdict(c, p);
	return true;
}

/* In a part that something can still end, from order[begin] to order[end]: whoever waits for others of the part alone goes on
 * where they lead.  Most are near the way out: what is far from it stays unknown, so that this is linear. */
static void leave_part(struct weft__chains *c, size_t begin, size_t end)
{
	enum { STEPS = 16 };
	const struct weft__waiting *w = c->waiting;
	bool changed = end - begin > 1;
	for (int step = 0; step < STEPS && changed; step++) {
		changed = false;
		for (size_t k = begin; k < end; k++) {
			uint32_t p = w->order[k];
			for (uint32_t i = w->begin[p]; i < w->begin[p + 1] && c->next[p] == WEFT_NONE; i++) {
				uint32_t q = w->waits[i].to;
				if (w->part[q] != w->part[p] || c->next[q] == WEFT_NONE)
					continue;
				c->next[p] = q;
				c->root[p] = c->root[q];
				c->verdict[p] = c->verdict[q];
				changed = true;
			}
		}
	}
}

/* Part by part: what a part waits for stands before it. */
static bool follow(struct weft__chains *c, struct weft__watch *watch)
{
	const struct weft__waiting *w = c->waiting;
	for (size_t i = 0, end, count = w->pending.count; i < count; i = end) {
		uint32_t first = w->order[i];
		for (end = i; end < count && w->part[w->order[end]] == w->part[w->order[i]]; end++)
			first = w->order[end] < first ? w->order[end] : first;
		bool circle = weft__waiting_in_circle(w, first);
		for (size_t k = i; k < end; k++) {
			uint32_t p = w->order[k];
			if (!weft__watch_goes_on(watch, k, count))
				return false;
			if (circle) {
				c->next[p] = WEFT_NONE;
				c->root[p] = first;
				c->verdict[p] = WEFT_VERDICT_CYCLE;
			} else if (!follow_from(c, p)) {
				return false;
			}
		}
		if (!circle)
			leave_part(c, i, end);
	}
	return true;
}

static int compare_blocked(const void *a, const void *b)
{
	const struct weft__blocked *x = a, *y = b;
	return WEFT_ORDER(x->root, y->root) ?: WEFT_ORDER(x->promise, y->promise);
}

static bool list_blocked(struct weft__chains *c)
{
	for (size_t i = 0; i < c->waiting->should_end.count; i++) {
		uint32_t p = c->waiting->should_end.items[i];
		struct weft__blocked *added = weft_vec_push(&c->blocked);
		if (!added)
			return false;
		*added = (struct weft__blocked){c->root[p], p};
	}
	weft_sort(c->blocked.items, c->blocked.count, sizeof *c->blocked.items, compare_blocked);
	return true;
}

size_t weft__chains_blocked(const struct weft__chains *c, uint32_t root, const struct weft__blocked **first)
{
	const struct weft__blocked *blocked = c->blocked.items;
	size_t begin = WEFT_FIRST(i, 0, c->blocked.count, blocked[i].root >= root), end = begin;
	while (end < c->blocked.count && blocked[end].root == root)
		end++;
	*first = end > begin ? &blocked[begin] : NULL;
	return end - begin;
}

int weft__chains_init(struct weft__chains *c, const struct weft_ties *ties, const struct weft__waiting *waiting,
    const struct weft__lacks *lacks, struct weft__watch *watch)
{
	size_t n = ties->model->promise_count;
	*c = (struct weft__chains){.ties = ties, .waiting = waiting, .lacks = lacks};
	c->next = malloc(n * sizeof *c->next);
	c->root = malloc(n * sizeof *c->root);
	c->verdict = malloc(n * sizeof *c->verdict);
	bool ok = c->next && c->root && c->verdict && follow(c, watch) && list_blocked(c);
	return ok ? WEFT_OK : watch && watch->called_off ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft__chains_finish(struct weft__chains *c)
{
	free(c->next);
	free(c->root);
	free(c->verdict);
	weft_vec_free(&c->blocked);
	free(c->kids_begin);
	free(c->kids);
	free(c->unheard_of);
	weft_vec_free(&c->unheard);
}
