/* root_causes.c: finds the last promise of the wait chain of each pending promise.  SPDX-License-Identifier: ISC */
#include "analysis/findings/root_causes.h"

#include <string.h>

#include "base/search.h"
#include "base/sort.h"

/* Returns how well a verdict explains a hang: a promise that waits for several others gets the verdict with the highest
 * value. */
static int get_badness(enum weft_verdict verdict)
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

/* Lists the promises that each condition created: they are the condition's waiters.  Called only if a promise may have missed a
 * signal. */
static bool list_condition_waiters(struct weft__root_causes *c)
{
	const struct weft_model *m = c->link_index->model;
	c->condition_waiters_begin = calloc(m->promise_count + 1, sizeof *c->condition_waiters_begin);
	c->condition_waiters = malloc((m->promise_count + 1) * sizeof *c->condition_waiters);
	c->lost_signals_begin = malloc(m->promise_count * sizeof *c->lost_signals_begin);
	if (!c->condition_waiters_begin || !c->condition_waiters || !c->lost_signals_begin)
		return false;
	memset(c->lost_signals_begin, 0xff, m->promise_count * sizeof *c->lost_signals_begin);
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (is_condition(m, m->promises[p].created_by))
			c->condition_waiters_begin[m->promises[p].created_by + 1]++;
	for (size_t p = 0; p < m->promise_count; p++)
		c->condition_waiters_begin[p + 1] += c->condition_waiters_begin[p];
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (is_condition(m, m->promises[p].created_by))
			c->condition_waiters[c->condition_waiters_begin[m->promises[p].created_by]++] = p;
	memmove(
	    c->condition_waiters_begin + 1, c->condition_waiters_begin, m->promise_count * sizeof *c->condition_waiters_begin);
	c->condition_waiters_begin[0] = 0;
	return true;
}

/* Lists the signals of a condition that woke no promise.  A signalled condition runs for a moment; if it neither resolves nor
 * creates a promise meanwhile, no promise waited for it.  The start of a wait is recorded as a signal too, because the
 * condition creates its waiter at that time. */
static bool list_lost_signals(struct weft__root_causes *c, uint32_t condition)
{
	const struct weft_model *m = c->link_index->model;
	const struct weft_link_index *link_index = c->link_index;
	size_t count_at = c->lost_signals.count;
	uint32_t *count = weft_vec_push(&c->lost_signals);
	if (!count)
		return false;
	*count = 0;
	c->lost_signals_begin[condition] = (uint32_t)count_at;
	uint32_t out = link_index->out_begin[condition], out_end = link_index->out_begin[condition + 1];
	uint32_t waiter = c->condition_waiters_begin[condition], waiters_end = c->condition_waiters_begin[condition + 1];
	for (uint32_t i = link_index->in_begin[condition]; i < link_index->in_begin[condition + 1]; i++) {
		const struct weft_link *signal = &m->links[link_index->in[i]];
		if (signal->kind != WEFT_LINK_SIGNAL)
			continue;
		uint32_t run = weft_run_before(m, condition, signal->time_ns + 1);
		int64_t until_ns =
		    run != WEFT_NONE && m->runs[run].start_ns == signal->time_ns ? m->runs[run].end_ns : signal->time_ns;
		while (out < out_end && m->links[link_index->out[out]].time_ns < signal->time_ns)
			out++;
		while (waiter < waiters_end && m->promises[c->condition_waiters[waiter]].start_ns < signal->time_ns)
			waiter++;
		bool resolves = false;
		for (uint32_t o = out; o < out_end && m->links[link_index->out[o]].time_ns <= until_ns && !resolves; o++)
			resolves = m->links[link_index->out[o]].kind == WEFT_LINK_RESOLVE;
		bool waits = waiter < waiters_end && m->promises[c->condition_waiters[waiter]].start_ns <= until_ns;
		if (resolves || waits)
			continue;
		uint32_t *added = weft_vec_push(&c->lost_signals);
		if (!added)
			return false;
		*added = link_index->in[i];
		c->lost_signals.items[count_at]++;
	}
	return true;
}

/* Makes the list of lost signals of the condition for which p waits, if there is one; returns false on lack of memory. */
static bool find_lost_signals(struct weft__root_causes *c, uint32_t p)
{
	uint32_t condition = c->link_index->model->promises[p].created_by;
	if (!is_condition(c->link_index->model, condition))
		return true;
	return (c->lost_signals_begin || list_condition_waiters(c)) &&
	       (c->lost_signals_begin[condition] != WEFT_NONE || list_lost_signals(c, condition));
}

size_t weft__root_causes_lost_signals(const struct weft__root_causes *c, uint32_t p, const uint32_t **links)
{
	const struct weft_model *m = c->link_index->model;
	uint32_t condition = m->promises[p].created_by;
	if (!is_condition(m, condition) || !c->lost_signals_begin || c->lost_signals_begin[condition] == WEFT_NONE)
		return 0;
	const uint32_t *list = &c->lost_signals.items[c->lost_signals_begin[condition]];
	*links = list + 1;
	return WEFT_FIND_FIRST(i, 0, list[0], m->links[list[1 + i]].time_ns >= m->promises[p].start_ns);
}

/* ---- Roots ---- */

uint32_t weft__root_causes_ready_input(const struct weft__root_causes *c, uint32_t p)
{
	const struct weft_link_index *link_index = c->link_index;
	const struct weft_model *m = link_index->model;
	if (link_index->out_begin[p] == link_index->out_begin[p + 1])
		return WEFT_NONE;
	const struct weft_link *last = &m->links[link_index->out[link_index->out_begin[p + 1] - 1]];
	if (last->kind != WEFT_LINK_AWAIT || link_index->ended_ns[last->to] == WEFT_NEVER)
		return WEFT_NONE;
	uint32_t run = weft_run_before(m, p, INT64_MAX);
	if (run != WEFT_NONE && m->runs[run].end_ns > link_index->ended_ns[last->to])
		return WEFT_NONE;
	return link_index->final[last->to];
}

uint32_t weft__root_causes_last_hold(const struct weft__root_causes *c, uint32_t lock)
{
	const struct weft_link_index *link_index = c->link_index;
	for (uint32_t i = link_index->out_begin[lock + 1]; i-- > link_index->out_begin[lock];)
		if (link_index->model->links[link_index->out[i]].kind == WEFT_LINK_AWAIT)
			return link_index->out[i];
	return WEFT_NONE;
}

/* Returns the verdict for a lock or a pool without a known pending holder. */
static enum weft_verdict get_lock_verdict(const struct weft__root_causes *c, uint32_t lock)
{
	const struct weft_model *m = c->link_index->model;
	uint32_t hold = weft__root_causes_last_hold(c, lock);
	if (hold == WEFT_NONE || !weft__has_complete_history(c->completeness, m, lock))
		return WEFT_VERDICT_UNKNOWN;
	return weft_model_await_end(m, &m->links[hold]) == INT64_MAX ? WEFT_VERDICT_NOT_RELEASED : WEFT_VERDICT_NOT_HANDED_ON;
}

/* Returns whether the promise is resolved from outside the program.  A call to another process is resolved from outside if the
 * trace does not contain its server.
 */
static bool is_from_outside(const struct weft_promise *promise)
{
	return weft_kind_has(promise->kind, WEFT_TRAIT_OUTSIDE) ||
	       (weft_kind_has(promise->kind, WEFT_TRAIT_REQUEST) && promise->flags & WEFT_PROMISE_SENT);
}

/* Returns the verdict for a pending promise that is not known to wait for another promise. */
static enum weft_verdict get_root_verdict(const struct weft__root_causes *c, uint32_t p)
{
	const struct weft_model *m = c->link_index->model;
	const struct weft_promise *promise = &m->promises[p], *creator = &m->promises[promise->created_by];
	const uint32_t *missed;
	if (weft_kind_has(promise->kind, WEFT_TRAIT_LOCK | WEFT_TRAIT_POOL))
		return get_lock_verdict(c, p);
	if (weft__root_causes_ready_input(c, p) != WEFT_NONE)
		return WEFT_VERDICT_NOT_RUN;
	/* another process waits for the connection, and the messages between the processes explain why */
	if (weft__remote_connection_end(m, p))
		return WEFT_VERDICT_OUTSIDE;
	if (weft_kind_has(promise->kind, WEFT_TRAIT_INPUTS))
		return WEFT_VERDICT_UNKNOWN;
	/* A promise that is resolved from outside needs no signal: for example, a timer that a signalled callback started. */
	if (!is_from_outside(promise) && weft__root_causes_lost_signals(c, p, &missed) > 0)
		return WEFT_VERDICT_LOST_WAKEUP;
	/* A creator that is older than the trace may be a condition that was signalled before the trace began. */
	bool may_be_condition = is_condition(m, promise->created_by) || creator->kind == WEFT_KIND_PREEXISTING;
	if (!weft__has_complete_history(c->completeness, m, p) ||
	    (may_be_condition && !weft__has_complete_history(c->completeness, m, promise->created_by)))
		return WEFT_VERDICT_UNKNOWN;
	if (creator->end == WEFT_END_FAILED && weft_has_ended(creator) && creator->end_ns > promise->start_ns)
		return WEFT_VERDICT_CREATOR_FAILED;
	return is_from_outside(promise) ? WEFT_VERDICT_OUTSIDE : WEFT_VERDICT_NEVER_TRIED;
}

/* Sets next, root and verdict of p; the promises for which p waits must already have theirs.  Returns false on lack of
 * memory. */
static bool find_cause(struct weft__root_causes *c, uint32_t p)
{
	const struct weft__wait_graph *w = c->wait_graph;
	bool least = weft_kind_has(c->link_index->model->promises[p].kind, WEFT_TRAIT_FIRST);
	uint32_t best = WEFT_NONE;
	for (uint32_t i = w->begin[p]; i < w->begin[p + 1]; i++) {
		uint32_t q = w->waits[i].to;
		if (w->component[q] == w->component[p] || (w->deadlocked[q] && !w->deadlocked[p]))
			continue;
		int order = best == WEFT_NONE ? 0 : get_badness(c->verdict[q]) - get_badness(c->verdict[best]);
		if (best == WEFT_NONE || (least ? order < 0 : order > 0))
			best = q;
	}
	c->next[p] = best;
	c->root[p] = best == WEFT_NONE ? p : c->root[best];
	if (best != WEFT_NONE)
		c->verdict[p] = c->verdict[best];
	else if (weft__wait_graph_count(w, p) > 0)
		c->verdict[p] = WEFT_VERDICT_UNKNOWN;
	else if (!find_lost_signals(c, p))
		return false;
	else
		c->verdict[p] = get_root_verdict(c, p);
	return true;
}

/* Completes the strongly connected component order[begin] to order[end - 1], which can still make progress: a promise that
 * waits only for others of the component gets the root of one of them.  Promises that are more than STEPS away from a root keep
 * an unknown cause, so that the function takes linear time. */
static void propagate_in_component(struct weft__root_causes *c, size_t begin, size_t end)
{
	enum { STEPS = 16 };
	const struct weft__wait_graph *w = c->wait_graph;
	bool changed = end - begin > 1;
	for (int step = 0; step < STEPS && changed; step++) {
		changed = false;
		for (size_t k = begin; k < end; k++) {
			uint32_t p = w->order[k];
			for (uint32_t i = w->begin[p]; i < w->begin[p + 1] && c->next[p] == WEFT_NONE; i++) {
				uint32_t q = w->waits[i].to;
				if (w->component[q] != w->component[p] || c->next[q] == WEFT_NONE)
					continue;
				c->next[p] = q;
				c->root[p] = c->root[q];
				c->verdict[p] = c->verdict[q];
				changed = true;
			}
		}
	}
}

/* Computes the causes of all pending promises; returns false on lack of memory or if the caller cancelled.  The components of
 * the wait graph are sorted: each comes after the components for which it waits. */
static bool find_causes(struct weft__root_causes *c, struct weft__cancel_token *cancel)
{
	const struct weft__wait_graph *w = c->wait_graph;
	for (size_t i = 0, end, count = w->pending.count; i < count; i = end) {
		uint32_t first = w->order[i];
		for (end = i; end < count && w->component[w->order[end]] == w->component[w->order[i]]; end++)
			first = w->order[end] < first ? w->order[end] : first;
		bool circle = weft__wait_graph_in_cycle(w, first);
		for (size_t k = i; k < end; k++) {
			uint32_t p = w->order[k];
			if (!weft__cancel_token_may_continue(cancel, k, count))
				return false;
			if (circle) {
				c->next[p] = WEFT_NONE;
				c->root[p] = first;
				c->verdict[p] = WEFT_VERDICT_CYCLE;
			} else if (!find_cause(c, p)) {
				return false;
			}
		}
		if (!circle)
			propagate_in_component(c, i, end);
	}
	return true;
}

static int compare_blocked(const void *a, const void *b)
{
	const struct weft__blocked_promise *x = a, *y = b;
	return WEFT_ORDER(x->root, y->root) ?: WEFT_ORDER(x->promise, y->promise);
}

uint32_t weft__root_causes_other_thread(const struct weft__root_causes *c, uint32_t p)
{
	const struct weft_link_index *x = c->link_index;
	const struct weft_model *m = x->model;
	const uint32_t input = weft__root_causes_ready_input(c, p), run = weft_run_before(m, p, INT64_MAX);
	if (input == WEFT_NONE || run == WEFT_NONE || !m->run_streams)
		return WEFT_NONE;
	for (uint32_t i = x->in_begin[input + 1]; i-- > x->in_begin[input];) {
		const struct weft_link *link = &m->links[x->in[i]];
		if (link->kind == WEFT_LINK_RESOLVE)
			return link->stream != m->run_streams[run] && link->from != WEFT_SYSTEM ? link->from : WEFT_NONE;
	}
	return WEFT_NONE;
}

/* Returns whether p waits for a task that is ready, and that the loop of another thread has left alone for long.  The loop runs
 * ready tasks whenever it wakes, so it has slept since the task became ready. */
static bool is_left_ready(const struct weft__root_causes *c, uint32_t p)
{
	enum { LONG_NS = 1000000000 };
	const struct weft_model *m = c->link_index->model;
	const uint32_t root = c->root[p];
	if (m->promises[p].kind != WEFT_KIND_TASK || m->promises[root].kind != WEFT_KIND_TASK ||
	    c->verdict[root] != WEFT_VERDICT_NOT_RUN || weft__root_causes_other_thread(c, root) == WEFT_NONE)
		return false;
	const int64_t ready_ns = c->link_index->ended_ns[weft__root_causes_ready_input(c, root)];
	return weft_model_until(m, root) - ready_ns >= LONG_NS;
}

static bool list_blocked(struct weft__root_causes *c)
{
	const struct weft__wait_graph *w = c->wait_graph;
	for (size_t i = 0; i < w->pending.count; i++) {
		const uint32_t p = w->pending.items[i];
		if (!(c->link_index->model->promises[p].flags & WEFT_PROMISE_NEVER_RESOLVED) && !is_left_ready(c, p))
			continue;
		struct weft__blocked_promise *added = weft_vec_push(&c->blocked);
		if (!added)
			return false;
		*added = (struct weft__blocked_promise){c->root[p], p};
	}
	weft_sort(c->blocked.items, c->blocked.count, sizeof *c->blocked.items, compare_blocked);
	return true;
}

size_t weft__root_causes_blocked(const struct weft__root_causes *c, uint32_t root, const struct weft__blocked_promise **first)
{
	const struct weft__blocked_promise *blocked = c->blocked.items;
	size_t begin = WEFT_FIND_FIRST(i, 0, c->blocked.count, blocked[i].root >= root), end = begin;
	while (end < c->blocked.count && blocked[end].root == root)
		end++;
	*first = end > begin ? &blocked[begin] : NULL;
	return end - begin;
}

int weft__root_causes_init(struct weft__root_causes *c, const struct weft_link_index *link_index,
    const struct weft__wait_graph *wait_graph, const struct weft__completeness *completeness, struct weft__cancel_token *cancel)
{
	size_t n = link_index->model->promise_count;
	*c = (struct weft__root_causes){.link_index = link_index, .wait_graph = wait_graph, .completeness = completeness};
	c->next = malloc(n * sizeof *c->next);
	c->root = malloc(n * sizeof *c->root);
	c->verdict = malloc(n * sizeof *c->verdict);
	bool ok = c->next && c->root && c->verdict && find_causes(c, cancel) && list_blocked(c);
	return ok ? WEFT_OK : cancel && cancel->was_cancelled ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft__root_causes_finish(struct weft__root_causes *c)
{
	free(c->next);
	free(c->root);
	free(c->verdict);
	weft_vec_free(&c->blocked);
	free(c->condition_waiters_begin);
	free(c->condition_waiters);
	free(c->lost_signals_begin);
	weft_vec_free(&c->lost_signals);
}
