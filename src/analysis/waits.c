/* waits.c: who waits for whom at a moment.  SPDX-License-Identifier: ISC */
#include "analysis/waits.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/ties.h"
#include "base/vec.h"

struct finder {
	const struct weft_model *m;
	struct weft_ties ties;
	int64_t time_ns;
	uint32_t *at;   /* by promise: what it was then */
	uint32_t *told; /* by promise: the last one that was found to wait for it */
	WEFT_VEC(struct weft_wait) waits;
	uint32_t *begin; /* by promise: its waits are [begin[p], begin[p + 1]) */
	WEFT_VEC(struct weft_wait_node) nodes;
	size_t cycles;
};

static bool is_pending(const struct finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->m->promises[p];
	if (p == WEFT_SYSTEM || promise->start_ns > f->time_ns)
		return false;
	bool over = weft_has_ended(promise) || promise->end == WEFT_END_BECAME;
	return !over || promise->end_ns > f->time_ns;
}

static bool add_wait(struct finder *f, uint32_t from, uint32_t to, int64_t since_ns)
{
	to = f->at[to];
	if (since_ns > f->time_ns || !is_pending(f, to))
		return true;
	if (f->told[to] == from)
		return true;
	f->told[to] = from;
	struct weft_wait *added = weft_vec_push(&f->waits);
	if (added)
		*added = (struct weft_wait){from, to, since_ns, false};
	return added;
}

/* The awaits of p that hold then.  Once it ran and awaited something else, those from before hold no more, but where it gathers
 * several. */
static bool find_waits(struct finder *f, uint32_t p)
{
	const struct weft_model *m = f->m;
	bool gathers = weft_kind_has(m->promises[p].kind, WEFT_TRAIT_GATHERS);
	uint32_t begin = f->ties.out_begin[p], end = f->ties.out_begin[p + 1], mid = begin;
	while (mid < end && m->links[f->ties.out[mid]].time_ns <= f->time_ns)
		mid++;
	int64_t since_ns = m->promises[p].start_ns;
	uint32_t last_run = weft_run_before(m, p, f->time_ns);
	if (last_run != WEFT_NONE && m->runs[last_run].end_ns > since_ns)
		since_ns = m->runs[last_run].end_ns; /* it ran until then */
	if (mid > begin && m->links[f->ties.out[mid - 1]].time_ns > since_ns)
		since_ns = m->links[f->ties.out[mid - 1]].time_ns;
	uint32_t last_await = mid;
	while (last_await > begin && m->links[f->ties.out[last_await - 1]].kind != WEFT_LINK_AWAIT)
		last_await--;
	uint32_t turn = last_await > begin ? weft_run_before(m, p, m->links[f->ties.out[last_await - 1]].time_ns) : WEFT_NONE;
	for (uint32_t i = begin; i < last_await; i++) {
		const struct weft_link *link = &m->links[f->ties.out[i]];
		if (link->kind != WEFT_LINK_AWAIT || (!gathers && weft_run_before(m, p, link->time_ns) != turn))
			continue;
		if (!add_wait(f, p, link->to, link->time_ns))
			return false;
	}
	/* What it reads next it has been waiting for, also where the model dropped that. */
	if (mid < end && m->links[f->ties.out[mid]].kind == WEFT_LINK_READ && since_ns <= f->time_ns) {
		uint32_t run = weft_run_before(m, p, m->links[f->ties.out[mid]].time_ns);
		if (run == last_run)
			return add_wait(f, p, m->links[f->ties.out[mid]].to, since_ns);
	}
	return true;
}

/* Marks the waits that go round in circles (Tarjan's strongly connected parts, without recursion). */
static bool mark_cycles(struct finder *f)
{
	size_t n = f->m->promise_count, path_count = 0, stack_count = 0;
	uint32_t *seen = calloc(n, sizeof *seen), *low = malloc(n * sizeof *low), *next = malloc(n * sizeof *next);
	uint32_t *path = malloc(n * sizeof *path), *stack = malloc(n * sizeof *stack), *part = malloc(n * sizeof *part);
	uint32_t number = 0;
	bool ok = seen && low && next && path && stack && part;
	if (ok)
		memset(part, 0xff, n * sizeof *part);
	for (uint32_t start = 1; ok && start < n; start++) {
		if (seen[start] || f->begin[start] == f->begin[start + 1])
			continue;
		for (uint32_t enter = start;;) {
			if (enter != WEFT_NONE) {
				path[path_count++] = enter;
				seen[enter] = low[enter] = ++number;
				next[enter] = f->begin[enter];
				stack[stack_count++] = enter;
				enter = WEFT_NONE;
			}
			uint32_t p = path[path_count - 1];
			if (next[p] < f->begin[p + 1]) {
				uint32_t q = f->waits.items[next[p]++].to;
				if (seen[q] == 0)
					enter = q;
				else if (part[q] == WEFT_NONE && seen[q] < low[p])
					low[p] = seen[q];
				continue;
			}
			path_count--;
			if (path_count > 0 && low[p] < low[path[path_count - 1]])
				low[path[path_count - 1]] = low[p];
			if (low[p] == seen[p]) {
				size_t from = stack_count;
				do
					part[stack[--from]] = p;
				while (stack[from] != p);
				f->cycles += stack_count - from > 1;
				stack_count = from;
			}
			if (path_count == 0)
				break;
		}
	}
	for (size_t i = 0; ok && i < f->waits.count; i++) {
		struct weft_wait *wait = &f->waits.items[i];
		wait->in_cycle = part[wait->from] == part[wait->to];
		f->cycles += wait->from == wait->to;
	}
	free(seen);
	free(low);
	free(next);
	free(path);
	free(stack);
	free(part);
	return ok;
}

struct place {
	uint32_t next, promise;
};

/* The tree below a root; what was shown is not shown again. */
static bool add_tree(struct finder *f, uint32_t root, bool *shown, struct place *stack)
{
	size_t depth = 0;
	uint32_t promise = root, wait = WEFT_NONE;
	for (;;) {
		struct weft_wait_node *node = weft_vec_push(&f->nodes);
		if (!node)
			return false;
		bool again = shown[promise] && f->begin[promise] < f->begin[promise + 1];
		bool last = wait == WEFT_NONE || wait + 1 == f->begin[f->waits.items[wait].from + 1];
		*node = (struct weft_wait_node){promise, wait, (uint32_t)depth, again, last};
		if (!shown[promise]) {
			shown[promise] = true;
			stack[depth++] = (struct place){f->begin[promise], promise};
		}
		while (depth > 0 && stack[depth - 1].next == f->begin[stack[depth - 1].promise + 1])
			depth--;
		if (depth == 0)
			return true;
		wait = stack[depth - 1].next++;
		promise = f->waits.items[wait].to;
	}
}

static bool build_forest(struct finder *f)
{
	size_t n = f->m->promise_count;
	bool *awaited = calloc(n, sizeof *awaited), *shown = calloc(n, sizeof *shown);
	struct place *stack = malloc((n + 1) * sizeof *stack);
	bool ok = awaited && shown && stack;
	for (size_t i = 0; ok && i < f->waits.count; i++)
		awaited[f->waits.items[i].to] = true;
	/* First those for whom nobody waits, then what is in circles that nobody leads to. */
	for (uint32_t p = 1; ok && p < n; p++)
		if (!awaited[p] && f->begin[p] < f->begin[p + 1])
			ok = add_tree(f, p, shown, stack);
	for (uint32_t p = 1; ok && p < n; p++)
		if (!shown[p] && f->begin[p] < f->begin[p + 1])
			ok = add_tree(f, p, shown, stack);
	free(awaited);
	free(shown);
	free(stack);
	return ok;
}

int weft_waits_create(struct weft_waits **out, const struct weft_model *model, int64_t time_ns, struct weft_error *err)
{
	struct finder f = {.m = model, .time_ns = time_ns};
	struct weft_waits *waits = malloc(sizeof *waits);
	f.at = malloc(model->promise_count * sizeof *f.at);
	f.told = calloc(model->promise_count, sizeof *f.told);
	f.begin = calloc(model->promise_count + 1, sizeof *f.begin);
	bool ok = waits && f.at && f.told && f.begin && weft_ties_init(&f.ties, model) == WEFT_OK;
	if (ok)
		weft_ties_follow(model, time_ns, f.at);
	for (uint32_t p = 0; ok && p < model->promise_count; p++) {
		f.begin[p] = (uint32_t)f.waits.count;
		ok = !is_pending(&f, p) || find_waits(&f, p);
		f.begin[p + 1] = (uint32_t)f.waits.count;
	}
	ok = ok && mark_cycles(&f) && build_forest(&f);
	weft_ties_finish(&f.ties);
	free(f.at);
	free(f.told);
	free(f.begin);
	if (!ok) {
		weft_vec_free(&f.waits);
		weft_vec_free(&f.nodes);
		free(waits);
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	*waits = (struct weft_waits){f.waits.items, f.waits.count, f.nodes.items, f.nodes.count, f.cycles};
	*out = waits;
	return WEFT_OK;
}

void weft_waits_destroy(struct weft_waits *waits)
{
	if (!waits)
		return;
	free(waits->waits);
	free(waits->nodes);
	free(waits);
}
