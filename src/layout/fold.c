/* fold.c: collects idle promises, sorts them by the properties that a fold's promises share, and starts a new fold at each
 * moment at which none of them is alive.
 * SPDX-License-Identifier: ISC */
#include "layout/fold.h"

#include <stdlib.h>

#include "base/sort.h"
#include "layout/track.h"
#include "model/roles.h"

struct idler {
	int64_t start_ns, end_ns;
	uint32_t promise, parent;
	uint16_t stream, kind;
};

static int compare_idlers(const void *a, const void *b)
{
	const struct idler *x = a, *y = b;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->parent, y->parent) ?: WEFT_ORDER(x->kind, y->kind) ?:
	       WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->promise, y->promise);
}

static int compare_folds(const void *a, const void *b)
{
	const struct weft_fold *x = a, *y = b;
	return WEFT_ORDER(x->leader, y->leader);
}

/* Returns whether the promise itself does nothing, so that it may be folded.  A run after the promise's end does not count,
 * because a handle then runs its close callback. */
static bool may_fold(const struct weft_model *m, uint32_t promise)
{
	const struct weft_promise *p = &m->promises[promise];
	return weft_kind_has(p->kind, WEFT_TRAIT_FOLDS) && p->end <= WEFT_END_RESOLVED &&
	       !(p->flags & WEFT_PROMISE_NEVER_RESOLVED) && (p->runs == p[1].runs || m->runs[p->runs].start_ns >= p->end_ns);
}

static void set_bit(uint64_t *bits, uint32_t promise)
{
	if (promise != WEFT_NONE)
		bits[promise / 64] |= 1ull << promise % 64;
}

/* Returns whether a link is no reason to draw its target on a line of its own: the link that ends the target, and a loop's wait
 * for the target. */
static bool is_unimportant_link(const struct weft_model *m, const struct weft_link *link)
{
	return link->kind == WEFT_LINK_RESOLVE ||
	       (link->kind == WEFT_LINK_AWAIT && weft_kind_has(m->promises[link->from].kind, WEFT_TRAIT_LOOP));
}

/* Sets the bits of promises to which other promises or links refer. */
static void find_named(const struct weft_model *m, uint64_t *named)
{
	for (uint32_t p = 0; p < m->promise_count; p++) {
		set_bit(named, m->promises[p].created_by);
		set_bit(named, m->promises[p].parent);
		set_bit(named, m->promises[p].became);
	}
	for (size_t i = 0; i < m->link_count; i++) {
		set_bit(named, m->links[i].from);
		if (!is_unimportant_link(m, &m->links[i]))
			set_bit(named, m->links[i].to);
	}
}

static void cut_into_folds(struct weft_layout *layout, const struct idler *idlers, size_t count)
{
	uint32_t folded = 0;
	for (size_t i = 0, end; i < count; i = end) {
		const struct idler *first = &idlers[i];
		struct weft_fold fold = {.end_ns = first->end_ns, .first = folded, .count = 1, .leader = first->promise};
		for (end = i + 1; end < count && idlers[end].stream == first->stream && idlers[end].parent == first->parent &&
				  idlers[end].kind == first->kind && idlers[end].start_ns < fold.end_ns;
		     end++) {
			fold.end_ns = idlers[end].end_ns > fold.end_ns ? idlers[end].end_ns : fold.end_ns;
			fold.count++;
		}
		if (fold.count == 1)
			continue;
		for (; i < end; i++)
			layout->folded[folded++] = idlers[i].promise;
		layout->folds[layout->fold_count++] = fold;
	}
	if (layout->fold_count > 0)
		weft_sort(layout->folds, layout->fold_count, sizeof *layout->folds, compare_folds);
}

bool weft__folds_find(struct weft_layout *layout, const struct weft_model *m)
{
	size_t max_count = 0, count = 0;
	for (uint32_t p = WEFT_SYSTEM + 1; p < m->promise_count; p++)
		max_count += may_fold(m, p);
	if (max_count < 2)
		return true;
	struct idler *idlers = malloc(max_count * sizeof *idlers);
	uint64_t *named = calloc(m->promise_count / 64 + 1, sizeof *named);
	layout->folds = malloc(max_count / 2 * sizeof *layout->folds);
	layout->folded = malloc(max_count * sizeof *layout->folded);
	bool done = idlers && named && layout->folds && layout->folded;
	if (done) {
		find_named(m, named);
		for (uint32_t i = WEFT_SYSTEM + 1; i < m->promise_count; i++) {
			const struct weft_promise *p = &m->promises[i];
			if (!(named[i / 64] >> i % 64 & 1) && may_fold(m, i))
				idlers[count++] = (struct idler){.start_ns = p->start_ns,
				    .end_ns = p->end_ns > p->start_ns ? p->end_ns : p->start_ns,
				    .promise = i,
				    .parent = p->parent,
				    .stream = p->stream,
				    .kind = p->kind};
		}
		if (count > 1)
			weft_sort(idlers, count, sizeof *idlers, compare_idlers);
		cut_into_folds(layout, idlers, count);
	}
	free(idlers);
	free(named);
	return done;
}

static bool is_in(const uint64_t *only, uint32_t promise)
{
	return !only || only[promise / 64] >> promise % 64 & 1;
}

static void list_folds(struct weft_layout *layout, const struct weft_model *m, const struct weft_roles *roles, uint32_t *counts)
{
	uint32_t folded = 0;
	for (uint32_t p = 0; p < m->promise_count; p++) {
		if (counts[p] == 0)
			continue;
		const struct weft_promise *leader = &m->promises[p];
		bool is_track = layout->rows_by == WEFT_ROWS_BY_THREAD && weft__is_actor(leader) && !weft_is_internal(roles, p);
		layout->folds[layout->fold_count] =
		    (struct weft_fold){.end_ns = leader->end_ns > leader->start_ns ? leader->end_ns : leader->start_ns,
			.first = folded,
			.count = counts[p] + 1,
			.leader = p,
			.is_track = is_track,
			.is_group = !is_track};
		layout->folded[folded] = p;
		folded += counts[p] + 1;
		counts[p] = (uint32_t)layout->fold_count++;
	}
}

bool weft__folds_from_leaders(
    struct weft_layout *layout, const struct weft_model *m, const uint64_t *only, const uint32_t *leader_of)
{
	size_t members = 0, leaders = 0;
	uint32_t *counts =
	    /* For each leader: number of its followers, later the index of its fold. */
	    calloc(m->promise_count + 1, sizeof *counts);
	if (!counts)
		return false;
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (leader_of[p] != WEFT_NONE && is_in(only, p)) {
			leaders += counts[leader_of[p]]++ == 0;
			members++;
		}
	layout->folds = calloc(leaders + 1, sizeof *layout->folds);
	layout->folded = malloc((members + leaders + 1) * sizeof *layout->folded);
	uint32_t *next = malloc((leaders + 1) * sizeof *next);
	const struct weft_roles *roles;
	bool done = layout->folds && layout->folded && next && weft_model_roles(m, &roles) == WEFT_OK;
	if (done) {
		list_folds(layout, m, roles, counts);
		for (size_t i = 0; i < layout->fold_count; i++)
			next[i] = layout->folds[i].first + 1;
	}
	for (uint32_t p = 1; done && p < m->promise_count; p++)
		if (leader_of[p] != WEFT_NONE && is_in(only, p)) {
			struct weft_fold *fold = &layout->folds[counts[leader_of[p]]];
			fold->end_ns = m->promises[p].end_ns > fold->end_ns ? m->promises[p].end_ns : fold->end_ns;
			layout->folded[next[fold - layout->folds]++] = p;
		}
	free(counts);
	free(next);
	return done;
}
