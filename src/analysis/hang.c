/* hang.c: promises that wait for ever: for each other, or for what does not come.
 *
 * At the end of the trace, who waits for whom is a graph.  Its strongly connected parts are found in one walk (Tarjan's, without
 * recursion), and on the way back, for each promise, the worst that it waits for.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/finding.h"

struct graph {
	struct weft__finder *f;
	uint32_t *part;       /* by promise: number of its part; parts that are waited for come first */
	uint32_t *next;       /* by promise: the one to look at: the worst that it waits for; WEFT_NONE: it is a root */
	uint32_t *root;       /* by promise: the end of that chain; in a circle its first member */
	uint8_t *verdict;     /* by promise: the chain's */
	bool *in_cycle;       /* by promise */
	uint32_t *kids_begin; /* by promise, of conditions only: what they created, which is who waits there */
	uint32_t *kids;
	uint32_t
	    *unheard_of; /* by promise: of a condition that was looked at: where its list in `unheard` begins, or WEFT_NONE */
	WEFT_VEC(uint32_t) unheard; /* signals that met nobody, numbers of links: [count, link...] each */
	bool no_memory;
};

/* How much a verdict explains: of several that a promise waits for, the worst is told. */
static int badness(enum weft_verdict verdict)
{
	static const int order[WEFT_VERDICTS_COUNT] = {[WEFT_VERDICT_CYCLE] = 7,
	    [WEFT_VERDICT_LOST_WAKEUP] = 6,
	    [WEFT_VERDICT_CREATOR_FAILED] = 5,
	    [WEFT_VERDICT_NOT_RUN] = 4,
	    [WEFT_VERDICT_NEVER_TRIED] = 3,
	    [WEFT_VERDICT_OUTSIDE] = 2,
	    [WEFT_VERDICT_UNKNOWN] = 1};
	return order[verdict];
}

static bool takes_the_first(const struct weft__finder *f, uint32_t p)
{
	return weft_kind_has(f->model->promises[p].kind, WEFT_TRAIT_FIRST) && f->awaits_begin[p + 1] - f->awaits_begin[p] > 1;
}

/* ---- Conditions ---- */

static bool sort_kids(struct graph *g)
{
	const struct weft_model *m = g->f->model;
	g->kids_begin = calloc(m->promise_count + 1, sizeof *g->kids_begin);
	g->kids = malloc((m->promise_count + 1) * sizeof *g->kids);
	if (!g->kids_begin || !g->kids)
		return false;
	if (!g->f->has_conditions)
		return true;
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (weft_kind_has(m->promises[m->promises[p].created_by].kind, WEFT_TRAIT_CONDITION))
			g->kids_begin[m->promises[p].created_by + 1]++;
	for (size_t p = 0; p < m->promise_count; p++)
		g->kids_begin[p + 1] += g->kids_begin[p];
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (weft_kind_has(m->promises[m->promises[p].created_by].kind, WEFT_TRAIT_CONDITION))
			g->kids[g->kids_begin[m->promises[p].created_by]++] = p;
	memmove(g->kids_begin + 1, g->kids_begin, m->promise_count * sizeof *g->kids_begin);
	g->kids_begin[0] = 0;
	return true;
}

/* A condition that is signalled runs for a moment.  If it neither resolves nor creates anything then, nobody waited there; to
 * wait is a signal too, at which it creates who waits. */
static void list_unheard(struct graph *g, uint32_t condition)
{
	const struct weft_model *m = g->f->model;
	const struct weft_ties *ties = &g->f->ties;
	g->unheard_of[condition] = (uint32_t)g->unheard.count;
	uint32_t *count = weft_vec_push(&g->unheard);
	if (!count) {
		g->no_memory = true;
		g->unheard_of[condition] = WEFT_NONE;
		return;
	}
	size_t count_at = g->unheard.count - 1;
	*count = 0;
	uint32_t out = ties->out_begin[condition], kid = g->kids_begin[condition];
	for (uint32_t i = ties->in_begin[condition]; i < ties->in_begin[condition + 1]; i++) {
		const struct weft_link *signal = &m->links[ties->in[i]];
		if (signal->kind != WEFT_LINK_SIGNAL)
			continue;
		uint32_t run = weft_run_before(m, condition, signal->time_ns + 1);
		int64_t until_ns =
		    run != WEFT_NONE && m->runs[run].start_ns == signal->time_ns ? m->runs[run].end_ns : signal->time_ns;
		while (out < ties->out_begin[condition + 1] && m->links[ties->out[out]].time_ns < signal->time_ns)
			out++;
		while (kid < g->kids_begin[condition + 1] && m->promises[g->kids[kid]].start_ns < signal->time_ns)
			kid++;
		bool resolves = false;
		for (uint32_t o = out; o < ties->out_begin[condition + 1] && m->links[ties->out[o]].time_ns <= until_ns; o++)
			if ((resolves = m->links[ties->out[o]].kind == WEFT_LINK_RESOLVE))
				break;
		bool waits = kid < g->kids_begin[condition + 1] && m->promises[g->kids[kid]].start_ns <= until_ns;
		if (resolves || waits)
			continue;
		uint32_t *added = weft_vec_push(&g->unheard);
		if (!added) {
			g->no_memory = true;
			return;
		}
		*added = ties->in[i];
		g->unheard.items[count_at]++;
	}
}

/* The last signal to p's condition that met nobody, before p waited there: a link, or WEFT_NONE. */
static uint32_t missed_signal(struct graph *g, uint32_t p)
{
	const struct weft_model *m = g->f->model;
	uint32_t condition = m->promises[p].created_by;
	if (condition == WEFT_NONE || !weft_kind_has(m->promises[condition].kind, WEFT_TRAIT_CONDITION))
		return WEFT_NONE;
	if (g->unheard_of[condition] == WEFT_NONE)
		list_unheard(g, condition);
	if (g->unheard_of[condition] == WEFT_NONE)
		return WEFT_NONE;
	const uint32_t *list = &g->unheard.items[g->unheard_of[condition]];
	uint32_t low = 0, high = list[0];
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (m->links[list[1 + middle]].time_ns < m->promises[p].start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? list[low] : WEFT_NONE;
}

/* ---- Roots ---- */

/* What p awaited last, if that has ended and p neither read it nor ran since; else WEFT_NONE. */
static uint32_t ready_input(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	uint32_t begin = f->ties.out_begin[p], end = f->ties.out_begin[p + 1];
	if (begin == end)
		return WEFT_NONE;
	const struct weft_link *last = &m->links[f->ties.out[end - 1]];
	if (last->kind != WEFT_LINK_AWAIT || f->ties.ended_ns[last->to] == WEFT_NEVER)
		return WEFT_NONE;
	uint32_t run = weft_run_before(m, p, INT64_MAX);
	if (run != WEFT_NONE && m->runs[run].end_ns > f->ties.ended_ns[last->to])
		return WEFT_NONE;
	return f->ties.now[last->to];
}

/* Of a pending promise that, as far as is known, waits for nobody. */
static enum weft_verdict root_verdict(struct graph *g, uint32_t p)
{
	const struct weft__finder *f = g->f;
	const struct weft_promise *promise = &f->model->promises[p], *creator = &f->model->promises[promise->created_by];
	if (ready_input(f, p) != WEFT_NONE)
		return WEFT_VERDICT_NOT_RUN;
	if (weft_kind_has(promise->kind, WEFT_TRAIT_INPUTS))
		return WEFT_VERDICT_UNKNOWN;
	if (missed_signal(g, p) != WEFT_NONE)
		return WEFT_VERDICT_LOST_WAKEUP;
	/* A creator of whom nothing is known may be a condition that was signalled before. */
	bool may_be_condition = weft_kind_has(creator->kind, WEFT_TRAIT_CONDITION) || creator->kind == WEFT_KIND_PREEXISTING;
	if (!weft__is_whole(f, p) || (may_be_condition && !weft__is_whole(f, promise->created_by)))
		return WEFT_VERDICT_UNKNOWN;
	if (creator->end == WEFT_END_FAILED && weft_has_ended(creator) && creator->end_ns > promise->start_ns)
		return WEFT_VERDICT_CREATOR_FAILED;
	return weft_kind_has(promise->kind, WEFT_TRAIT_OUTSIDE) ? WEFT_VERDICT_OUTSIDE : WEFT_VERDICT_NEVER_TRIED;
}

/* ---- The walk ---- */

/* All members of a part are known: what each of them is to look at. */
static void settle(struct graph *g, const uint32_t *members, size_t count, uint32_t part)
{
	const struct weft__finder *f = g->f;
	bool cycle = count > 1;
	for (size_t i = 0; i < count; i++) {
		uint32_t p = members[i];
		g->part[p] = part;
		cycle &= !takes_the_first(f, p);
		for (uint32_t a = f->awaits_begin[p]; count == 1 && a < f->awaits_begin[p + 1]; a++)
			cycle |= f->awaits[a] == p && !takes_the_first(f, p);
	}
	uint32_t first = members[0];
	for (size_t i = 1; i < count; i++)
		first = members[i] < first ? members[i] : first;
	for (size_t i = 0; i < count; i++) {
		uint32_t p = members[i];
		if ((g->in_cycle[p] = cycle)) {
			g->root[p] = first;
			g->verdict[p] = WEFT_VERDICT_CYCLE;
			continue;
		}
		bool least = takes_the_first(f, p);
		uint32_t best = WEFT_NONE;
		for (uint32_t a = f->awaits_begin[p]; a < f->awaits_begin[p + 1]; a++) {
			uint32_t q = f->awaits[a];
			if (g->part[q] == part)
				continue;
			int order = best == WEFT_NONE ? 0 : badness(g->verdict[q]) - badness(g->verdict[best]);
			if (best == WEFT_NONE || (least ? order < 0 : order > 0))
				best = q;
		}
		g->next[p] = best;
		g->root[p] = best == WEFT_NONE ? p : g->root[best];
		g->verdict[p] = (uint8_t)(best != WEFT_NONE                             ? g->verdict[best]
					  : f->awaits_begin[p] < f->awaits_begin[p + 1] ? WEFT_VERDICT_UNKNOWN
											: root_verdict(g, p));
	}
}

static bool walk(struct graph *g)
{
	const struct weft__finder *f = g->f;
	size_t n = f->model->promise_count;
	enum { UNSEEN = 0 };
	uint32_t *seen = calloc(n, sizeof *seen), *low = malloc(n * sizeof *low), *at = malloc(n * sizeof *at);
	uint32_t *path = malloc(n * sizeof *path), *stack = malloc(n * sizeof *stack);
	uint32_t number = 0, parts = 0;
	size_t path_count = 0, stack_count = 0;
	bool ok = seen && low && at && path && stack;
	for (uint32_t start = 1; ok && start < n; start++) {
		const struct weft_promise *promise = &f->model->promises[start];
		if (seen[start] || weft_has_ended(promise) || promise->end == WEFT_END_BECAME)
			continue;
		path[path_count++] = start;
		seen[start] = low[start] = ++number;
		at[start] = f->awaits_begin[start];
		stack[stack_count++] = start;
		while (path_count > 0) {
			uint32_t p = path[path_count - 1];
			if (at[p] < f->awaits_begin[p + 1]) {
				uint32_t q = f->awaits[at[p]++];
				if (seen[q] == UNSEEN) {
					path[path_count++] = q;
					seen[q] = low[q] = ++number;
					at[q] = f->awaits_begin[q];
					stack[stack_count++] = q;
				} else if (g->part[q] == WEFT_NONE && seen[q] < low[p]) {
					low[p] = seen[q];
				}
				continue;
			}
			path_count--;
			if (path_count > 0 && low[p] < low[path[path_count - 1]])
				low[path[path_count - 1]] = low[p];
			if (low[p] != seen[p])
				continue;
			size_t from = stack_count;
			while (stack[--from] != p)
				;
			settle(g, &stack[from], stack_count - from, parts++);
			stack_count = from;
		}
	}
	free(seen);
	free(low);
	free(at);
	free(path);
	free(stack);
	return ok && !g->no_memory;
}

static void graph_finish(struct graph *g)
{
	free(g->part);
	free(g->next);
	free(g->root);
	free(g->verdict);
	free(g->in_cycle);
	free(g->kids_begin);
	free(g->kids);
	free(g->unheard_of);
	weft_vec_free(&g->unheard);
}

static bool graph_init(struct graph *g, struct weft__finder *f)
{
	size_t n = f->model->promise_count;
	*g = (struct graph){.f = f,
	    .part = malloc(n * sizeof *g->part),
	    .next = malloc(n * sizeof *g->next),
	    .root = malloc(n * sizeof *g->root),
	    .verdict = calloc(n, sizeof *g->verdict),
	    .in_cycle = calloc(n, sizeof *g->in_cycle),
	    .unheard_of = malloc(n * sizeof *g->unheard_of)};
	if (!g->part || !g->next || !g->root || !g->verdict || !g->in_cycle || !g->unheard_of || !sort_kids(g))
		return false;
	memset(g->part, 0xff, n * sizeof *g->part);
	memset(g->next, 0xff, n * sizeof *g->next);
	memset(g->root, 0xff, n * sizeof *g->root);
	memset(g->unheard_of, 0xff, n * sizeof *g->unheard_of);
	return walk(g);
}

/* ---- Saying it ---- */

/* One line of a chain. */
static void show_link(struct weft__finder *f, uint32_t p, const char *then)
{
	char name[WEFT__NAME], place[WEFT__NAME];
	weft__place(f, p, place);
	weft__show(f, WEFT_EVIDENCE_CHAIN, f->model->promises[p].start_ns, p, "%s%s%s%s", weft__name(f, p, name),
	    *place ? "  at " : "", place, then);
}

/* From p down to the root, or to the first that is in a circle; the middle of a long one is left out. */
static void show_chain(struct graph *g, uint32_t p)
{
	struct weft__finder *f = g->f;
	size_t length = 1, at = 0;
	for (uint32_t q = p; g->next[q] != WEFT_NONE; q = g->next[q])
		length++;
	for (uint32_t q = p; q != WEFT_NONE; q = g->next[q], at++) {
		if (at < WEFT__LINES_KEPT || at + WEFT__LINES_KEPT >= length)
			show_link(f, q, g->next[q] != WEFT_NONE ? "  waits for" : "");
		else if (at == WEFT__LINES_KEPT)
			weft__show(f, WEFT_EVIDENCE_CHAIN, WEFT_NO_TIME, WEFT_NONE, "... and so on, %zu more ...",
			    length - 2 * WEFT__LINES_KEPT);
	}
}

/* How others of its sort were resolved. */
static void show_peers(struct weft__finder *f, uint32_t p)
{
	const struct weft__sort *sort = &f->sorts.items[f->sort_of[p]];
	const struct weft_model *m = f->model;
	if (!sort->named || sort->resolved == 0)
		return;
	char name[WEFT__NAME], sort_name[WEFT__NAME], place[WEFT__NAME], by_text[2 * WEFT__NAME + 16] = "";
	uint32_t other = sort->last_resolved;
	for (uint32_t i = f->ties.in_begin[other]; i < f->ties.in_begin[other + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind != WEFT_LINK_RESOLVE)
			continue;
		if (link->from == WEFT_SYSTEM)
			snprintf(by_text, sizeof by_text, " by a callback from outside");
		else
			snprintf(by_text, sizeof by_text, " by %s%s%s", weft__name(f, link->from, name),
			    *weft__place(f, link->from, place) ? " at " : "", place);
	}
	weft__show(f, WEFT_EVIDENCE_NOTE, m->promises[other].end_ns, other,
	    "%" PRIu32 " other%s of its sort (%s) resolved, the last%s", sort->resolved, sort->resolved == 1 ? "" : "s",
	    weft__sort_name(f, p, sort_name), by_text);
}

static void show_creation(struct weft__finder *f, uint32_t p)
{
	char name[WEFT__NAME], creator[WEFT__NAME];
	const struct weft_promise *promise = &f->model->promises[p];
	if (promise->flags & WEFT_PROMISE_START_UNKNOWN || promise->created_by == WEFT_NONE)
		return;
	weft__show(f, WEFT_EVIDENCE_CAUSE, promise->start_ns, promise->created_by, "%s was created by %s", weft__name(f, p, name),
	    weft__name(f, promise->created_by, creator));
}

static const char *span(char buf[WEFT_DURATION_BYTES], int64_t ns)
{
	weft_duration_format(buf, WEFT_DURATION_BYTES, ns);
	return buf;
}

static void say_lost_wakeup(struct graph *g, struct weft_finding *finding, const char *what)
{
	struct weft__finder *f = g->f;
	const struct weft_model *m = f->model;
	uint32_t root = finding->root, condition = m->promises[root].created_by, missed = missed_signal(g, root);
	const struct weft_link *signal = &m->links[missed], *wait = NULL;
	char name[WEFT__NAME], by[WEFT__NAME], place[WEFT__NAME], gap[WEFT_DURATION_BYTES];
	size_t before = 0, after = 0;
	for (uint32_t i = f->ties.in_begin[condition]; i < f->ties.in_begin[condition + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind != WEFT_LINK_SIGNAL)
			continue;
		if (link->time_ns <= m->promises[root].start_ns)
			wait = link; /* the last one up to its creation is its own */
	}
	const uint32_t *unheard = &g->unheard.items[g->unheard_of[condition]];
	for (uint32_t i = 1; i <= unheard[0]; i++)
		before += m->links[unheard[i]].time_ns < m->promises[root].start_ns;
	for (uint32_t i = f->ties.out_begin[condition]; i < f->ties.out_begin[condition + 1]; i++)
		after += m->links[f->ties.out[i]].kind == WEFT_LINK_RESOLVE &&
			 m->links[f->ties.out[i]].time_ns > m->promises[root].start_ns;
	finding->start_ns = signal->time_ns;
	finding->end_ns = m->promises[root].start_ns;
	finding->title = weft__text(f, "%s: lost wake-up of %s, signalled %s before %s waited for it", what,
	    weft__name(f, condition, name), span(gap, m->promises[root].start_ns - signal->time_ns),
	    wait && wait->from != WEFT_SYSTEM ? weft__name(f, wait->from, by) : "anybody");
	weft__show(f, WEFT_EVIDENCE_CAUSE, signal->time_ns, signal->from, "%s%s%s signals %s: nobody waits for it",
	    weft__name(f, signal->from, by), *weft__place(f, signal->from, place) ? " at " : "", place, name);
	weft__place(f, root, place);
	weft__show(f, WEFT_EVIDENCE_CAUSE, m->promises[root].start_ns, root, "%s%s%s begins to wait for it, as %s: %s too late",
	    wait ? weft__name(f, wait->from, by) : "somebody", *place ? " at " : "", place, weft__name(f, root, name), gap);
	if (after)
		weft__show(
		    f, WEFT_EVIDENCE_CAUSE, WEFT_NO_TIME, condition, "signals after that woke %zu others, not this one", after);
	else
		weft__show(f, WEFT_EVIDENCE_CAUSE, m->end_ns, condition, "the trace ends; it was not signalled again");
	if (before > 1)
		weft__show(
		    f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, condition, "%zu signals in all met nobody before the wait", before);
	finding->next = weft__text(f,
	    "who waits must first look whether what the condition tells of has happened, and await nothing between look and "
	    "wait%s%s",
	    *place ? ": " : "", place);
}

/* The title and evidence of a chain that ends at finding->root; `what` is the beginning of the sentence. */
static void say_root(struct graph *g, struct weft_finding *finding, const char *what)
{
	struct weft__finder *f = g->f;
	const struct weft_model *m = f->model;
	uint32_t root = finding->root;
	const struct weft_promise *promise = &m->promises[root];
	char name[WEFT__NAME], other[WEFT__NAME], place[WEFT__NAME], text[160];
	bool self = root == finding->promise;
	const char *waits = self ? "" : ", for which it waits";
	weft__name(f, root, name);
	weft__place(f, root, place);
	const char *it = self ? "it" : name;
	const char *at = *place ? " at " : "";
	switch (finding->verdict) {
	case WEFT_VERDICT_LOST_WAKEUP: say_lost_wakeup(g, finding, what); break;
	case WEFT_VERDICT_CREATOR_FAILED:
		finding->title = weft__text(f, "%s: %s, which created %s, failed before it was resolved", what,
		    weft__name(f, promise->created_by, other), it);
		show_creation(f, root);
		weft__show(f, WEFT_EVIDENCE_CAUSE, m->promises[promise->created_by].end_ns, promise->created_by, "%s failed: %s",
		    other,
		    m->promises[promise->created_by].failure == WEFT_NONE
			? "no reason is told"
			: weft__clean(f, m->promises[promise->created_by].failure, text, sizeof text));
		show_peers(f, root);
		finding->next = weft__text(f, "%s must be resolved or failed also where its creator fails%s%s", name, at, place);
		break;
	case WEFT_VERDICT_NOT_RUN: {
		uint32_t input = ready_input(f, root);
		finding->title = weft__text(f, "%s: %s has what it waited for, and never ran again", what, it);
		weft__show(f, WEFT_EVIDENCE_CAUSE, f->ties.ended_ns[input], input,
		    "%s came to its end; %s did not run after that", weft__name(f, input, other), name);
		finding->next = "whoever resolves must see to it that those who wait are run";
		break;
	}
	case WEFT_VERDICT_NEVER_TRIED:
		finding->title = weft__text(f, "%s: nobody ever tried to resolve %s%s", what, it, waits);
		show_creation(f, root);
		show_peers(f, root);
		finding->next =
		    weft__text(f, "look for who was to resolve %s%s%s: it was dropped, or never called", name, at, place);
		break;
	case WEFT_VERDICT_OUTSIDE:
		finding->title = weft__text(f, "%s: %s%s did not end: nothing came from outside", what, it, waits);
		show_creation(f, root);
		show_peers(f, root);
		finding->next = weft__text(f, "look at the other side of %s%s%s; a timeout would tell", name, at, place);
		break;
	default:
		finding->verdict = WEFT_VERDICT_UNKNOWN;
		finding->sure = false;
		finding->doubt = f->doubt ? f->doubt : "the trace does not tell what it waits for";
		finding->title = weft__text(f, "%s: what %s waits for is not in the trace", what, it);
		finding->next = promise->flags & WEFT_PROMISE_START_UNKNOWN
				    ? "a larger ring would hold its beginning; a state dump tells what is pending"
				    : "its recorder does not tell who waits for whom here";
		break;
	}
}

static struct weft_finding *last_finding(struct weft__finder *f)
{
	return &f->findings.items[f->findings.count - 1];
}

/* The circle that the part of `first` goes round in, which is told from its first member on. */
static bool say_cycle(struct graph *g, uint32_t first, const uint32_t *blocked, size_t blocked_count, uint32_t *mark)
{
	struct weft__finder *f = g->f;
	char name[WEFT__NAME], place[WEFT__NAME];
	/* Walks within the part until somebody comes twice: from there on it is the circle. */
	uint32_t p = first, length = 0;
	while (mark[p] == 0) {
		mark[p] = ++length;
		for (uint32_t a = f->awaits_begin[p]; a < f->awaits_begin[p + 1]; a++)
			if (g->part[f->awaits[a]] == g->part[p]) {
				p = f->awaits[a];
				break;
			}
	}
	uint32_t start = p;
	length = length - mark[p] + 1;
	struct weft_finding *finding =
	    weft__find(f, WEFT_FINDING_CYCLE, start, f->model->promises[start].start_ns, f->model->end_ns);
	if (!finding)
		return false;
	finding->verdict = WEFT_VERDICT_CYCLE;
	finding->weight = 1 + blocked_count;
	finding->sure = !f->lost;
	if (length == 1)
		finding->title = weft__text(f, "%s waits for itself", weft__name(f, start, name));
	else
		finding->title =
		    weft__text(f, "%" PRIu32 " promises wait for each other in a circle: %s waits, in the end, for itself",
			length, weft__name(f, start, name));
	weft__place(f, start, place);
	finding->next = weft__text(f, "one of them must not wait for the next; begin where the last of them joined in%s%s",
	    *place ? ", or at " : "", place);
	for (uint32_t i = 0; i < length; i++) {
		if (i < WEFT__LINES_KEPT || i + WEFT__LINES_KEPT >= length)
			show_link(f, p, i + 1 < length ? "  waits for" : "  waits for the first of these");
		else if (i == WEFT__LINES_KEPT)
			weft__show(f, WEFT_EVIDENCE_CHAIN, WEFT_NO_TIME, WEFT_NONE, "... and so on, %" PRIu32 " more ...",
			    length - 2 * WEFT__LINES_KEPT);
		if (f->model->promises[p].start_ns > last_finding(f)->start_ns)
			last_finding(f)->start_ns = f->model->promises[p].start_ns;
		for (uint32_t a = f->awaits_begin[p]; a < f->awaits_begin[p + 1]; a++)
			if (g->part[f->awaits[a]] == g->part[p]) {
				p = f->awaits[a];
				break;
			}
	}
	for (size_t i = 0; i < blocked_count && i < WEFT__LINES_KEPT; i++)
		weft__show(f, WEFT_EVIDENCE_VICTIM, f->model->promises[blocked[i]].start_ns, blocked[i],
		    "%s should resolve, and %s", weft__name(f, blocked[i], name),
		    g->in_cycle[blocked[i]] ? "is one of them" : "waits for them");
	if (blocked_count > WEFT__LINES_KEPT)
		weft__show(f, WEFT_EVIDENCE_VICTIM, WEFT_NO_TIME, WEFT_NONE, "and %zu more that should resolve",
		    blocked_count - WEFT__LINES_KEPT);
	if (!finding->sure && !finding->doubt)
		finding->doubt = f->doubt;
	return true;
}

/* All of `blocked` should resolve, and wait for one root. */
static void say_hang(struct graph *g, const uint32_t *blocked, size_t count)
{
	struct weft__finder *f = g->f;
	uint32_t p = blocked[0];
	char name[WEFT__NAME], what[WEFT__NAME + 96];
	struct weft_finding *finding = weft__find(f, WEFT_FINDING_HANG, p, f->model->promises[p].start_ns, f->model->end_ns);
	if (!finding)
		return;
	finding->root = g->root[p];
	finding->verdict = g->verdict[p];
	finding->weight = count;
	finding->sure = !f->lost && !f->cut;
	const char *never =
	    finding->sure ? "should resolve and never did" : "should resolve and did not, as far as the trace goes";
	if (count == 1)
		snprintf(what, sizeof what, "%s %s", weft__name(f, p, name), never);
	else
		snprintf(what, sizeof what, "%s and %zu more %s", weft__name(f, p, name), count - 1, never);
	show_chain(g, p);
	say_root(g, finding, what);
	for (size_t i = 1; i < count && i <= WEFT__LINES_KEPT; i++)
		weft__show(f, WEFT_EVIDENCE_VICTIM, f->model->promises[blocked[i]].start_ns, blocked[i],
		    "%s should resolve too, and waits for the same", weft__name(f, blocked[i], name));
	if (count > WEFT__LINES_KEPT + 1)
		weft__show(f, WEFT_EVIDENCE_VICTIM, WEFT_NO_TIME, WEFT_NONE, "and %zu more", count - 1 - WEFT__LINES_KEPT);
	if (!finding->sure && !finding->doubt)
		finding->doubt = f->doubt;
}

/* Of those that should resolve and never did, the ones with the same root stand side by side. */
static bool sort_blocked(struct graph *g, uint32_t **out, uint32_t *begin)
{
	const struct weft_model *m = g->f->model;
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (m->promises[p].flags & WEFT_PROMISE_NEVER_RESOLVED)
			begin[g->root[p] + 1]++;
	for (size_t p = 0; p < m->promise_count; p++)
		begin[p + 1] += begin[p];
	uint32_t *blocked = malloc((begin[m->promise_count] + 1) * sizeof *blocked);
	if (!blocked)
		return false;
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (m->promises[p].flags & WEFT_PROMISE_NEVER_RESOLVED)
			blocked[begin[g->root[p]]++] = p;
	memmove(begin + 1, begin, m->promise_count * sizeof *begin);
	begin[0] = 0;
	*out = blocked;
	return true;
}

bool weft__find_hangs(struct weft__finder *f)
{
	struct graph g;
	size_t n = f->model->promise_count, cycles = 0, hangs = 0;
	uint32_t *blocked = NULL, *begin = calloc(n + 1, sizeof *begin), *mark = calloc(n, sizeof *mark);
	f->told = calloc(n, sizeof *f->told);
	bool ok = graph_init(&g, f) && begin && mark && f->told && sort_blocked(&g, &blocked, begin);
	for (uint32_t root = 1; ok && root < n; root++) {
		size_t count = begin[root + 1] - begin[root];
		f->told[root] = g.in_cycle[root] || count > 0;
		if (g.in_cycle[root] && g.root[root] == root) {
			if (cycles++ < WEFT__FINDINGS_KEPT)
				ok = say_cycle(&g, root, &blocked[begin[root]], count, mark);
			else
				f->left_out++;
		} else if (count > 0 && !g.in_cycle[root]) {
			if (hangs++ < WEFT__FINDINGS_KEPT)
				say_hang(&g, &blocked[begin[root]], count);
			else
				f->left_out++;
		}
	}
	free(begin);
	free(mark);
	free(blocked);
	f->root = g.root;
	f->verdict = g.verdict;
	g.root = NULL;
	g.verdict = NULL;
	graph_finish(&g);
	return ok;
}

/* ---- One promise ---- */

static void say_end(struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	uint32_t last = f->ties.now[p];
	const struct weft_promise *promise = &m->promises[last];
	char name[WEFT__NAME], other[WEFT__NAME], text[160], life[WEFT_DURATION_BYTES];
	struct weft_finding *finding = weft__find(f, WEFT_FINDING_ANSWER, p, m->promises[p].start_ns, f->ties.ended_ns[p]);
	if (!finding)
		return;
	finding->root = last;
	finding->title = weft__text(f, "%s %s, %s after its creation", weft__name(f, p, name),
	    promise->end == WEFT_END_FAILED ? "failed" : "resolved", span(life, promise->end_ns - m->promises[p].start_ns));
	for (uint32_t q = p, left = 2 * WEFT__LINES_KEPT; q != last && left > 0; q = m->promises[q].became, left--)
		weft__show(f, WEFT_EVIDENCE_CHAIN, m->promises[q].end_ns, q, "%s became %s", weft__name(f, q, name),
		    weft__name(f, m->promises[q].became, other));
	for (uint32_t i = f->ties.in_begin[last]; i < f->ties.in_begin[last + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind == WEFT_LINK_RESOLVE && link->time_ns == promise->end_ns)
			weft__show(f, WEFT_EVIDENCE_CAUSE, link->time_ns, link->from, "%s was %s by %s%s%s",
			    weft__name(f, last, name), promise->end == WEFT_END_FAILED ? "failed" : "resolved",
			    link->from == WEFT_SYSTEM ? "a callback from outside" : weft__name(f, link->from, other),
			    promise->failure == WEFT_NONE ? "" : ": ",
			    promise->failure == WEFT_NONE ? "" : weft__clean(f, promise->failure, text, sizeof text));
	}
	size_t readers = 0;
	for (uint32_t i = f->ties.in_begin[last]; i < f->ties.in_begin[last + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind == WEFT_LINK_READ && readers++ < WEFT__LINES_KEPT)
			weft__show(
			    f, WEFT_EVIDENCE_NOTE, link->time_ns, link->from, "%s read it", weft__name(f, link->from, name));
	}
	if (readers == 0)
		weft__show(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE, "nobody read it");
}

bool weft__why(struct weft__finder *f, uint32_t promise)
{
	uint32_t p = f->ties.now[promise];
	if (promise == WEFT_SYSTEM || f->ties.ended_ns[p] != WEFT_NEVER) {
		say_end(f, promise);
		return true;
	}
	struct graph g;
	uint32_t *mark = calloc(f->model->promise_count, sizeof *mark);
	bool ok = graph_init(&g, f) && mark;
	if (ok && g.in_cycle[p]) {
		ok = say_cycle(&g, g.root[p], NULL, 0, mark);
	} else if (ok) {
		bool should = f->model->promises[p].flags & WEFT_PROMISE_NEVER_RESOLVED;
		char name[WEFT__NAME], what[WEFT__NAME + 64];
		struct weft_finding *finding = weft__find(f, should ? WEFT_FINDING_HANG : WEFT_FINDING_ANSWER, promise,
		    f->model->promises[promise].start_ns, f->model->end_ns);
		if (finding) {
			finding->root = g.root[p];
			finding->verdict = g.verdict[p];
			finding->sure = !f->lost && !f->cut;
			snprintf(what, sizeof what, "%s %s", weft__name(f, promise, name),
			    should ? "should resolve and never did" : "is pending at the end");
			show_chain(&g, p);
			if (finding->verdict == WEFT_VERDICT_CYCLE) {
				finding->title =
				    weft__text(f, "%s: it waits for promises that wait for each other in a circle", what);
				finding->next = "weft explain without --promise tells of the circle";
			} else {
				say_root(&g, finding, what);
			}
			if (!finding->sure && !finding->doubt)
				finding->doubt = f->doubt;
		}
	}
	free(mark);
	graph_finish(&g);
	return ok;
}
