/* track.c: assigns promises to actors in one walk in the order of their numbers, in which a creator comes before the promises
 * that it creates.
 *
 * Each promise has a scope, which is the actor that owns the promises it creates.  The scope of an actor is the actor itself;
 * the scope of another promise is that promise's owner.  A connection or a request may be only a mark: its server creates and
 * ends it, while the server's own promises do all the work.  If a promise creates such a mark, the mark is the promise's scope
 * while the mark is pending.  An internal promise (model/roles.h) is no actor: the handle in which uvloop runs all tasks would
 * hide these tasks among the internals.
 *
 * Marks, promises with unknown creators, and folds are rare; for traces without them, the walks that they need are skipped.
 * SPDX-License-Identifier: ISC */
#include "layout/track.h"

#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "model/roles.h"

enum { MAX_DEPTH = 8, MAX_ANCESTORS = 64, TRAITS_MARK = WEFT_TRAIT_CONNECTION | WEFT_TRAIT_REQUEST };

struct search {
	const struct weft_model *model;
	const struct weft_roles *roles;
	struct weft_layout *layout;
	/* For each promise: the actor to which it belongs, or WEFT_NONE; the same array as layout->track_of. */
	uint32_t *owner;
	uint32_t *scope; /* by promise */
	uint8_t *depth;  /* for each actor: number of tracks around it */
	/* Bits of promises that have created a promise, and of promises that have created two marks of one kind that were
	 * pending at once. */
	uint64_t *creates, *shares;
	/* For each promise, only if some creators are unknown: its first known ancestor; for such an ancestor, the actor that
	 * waits for it. */
	uint32_t *root, *waiter;
};

static void set_bit(uint64_t *bits, uint32_t i)
{
	bits[i / 64] |= 1ull << i % 64;
}

static bool get_bit(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static bool is_promise(uint32_t p)
{
	return p != WEFT_NONE && p != WEFT_SYSTEM;
}

bool weft__is_actor(const struct weft_promise *p)
{
	uint32_t traits = weft_kind_traits(p->kind);
	return traits & WEFT_TRAIT_ACTOR || (traits & WEFT_TRAIT_OUTSIDE && p[1].runs - p->runs >= 2);
}

static bool is_mark(const struct search *s, uint32_t promise)
{
	const struct weft_promise *p = &s->model->promises[promise];
	return s->creates && weft_kind_traits(p->kind) & TRAITS_MARK && is_promise(p->created_by) &&
	       !get_bit(s->creates, promise);
}

static bool is_orphan(const struct weft_promise *p)
{
	return (p->flags & WEFT_PROMISE_START_UNKNOWN) && !is_promise(p->created_by);
}

/* Finds the promises that create marks.  If a server has several marks pending at once, the trace does not show for which of
 * them the server works. */
static bool find_marks(struct search *s)
{
	const struct weft_promise *promises = s->model->promises;
	const uint32_t n = (uint32_t)s->model->promise_count;
	uint32_t first = 1, *last = s->scope; /* for each creator: its latest mark */
	s->creates = calloc(n / 64 + 1, sizeof *s->creates);
	s->shares = calloc(n / 64 + 1, sizeof *s->shares);
	if (!s->creates || !s->shares)
		return false;
	while (first < n && !(weft_kind_traits(promises[first].kind) & TRAITS_MARK))
		first++;
	for (uint32_t i = first; i < n; i++)
		if (is_promise(promises[i].created_by))
			set_bit(s->creates, promises[i].created_by);
	memset(last, 0xff, n * sizeof *last);
	for (uint32_t i = first; i < n; i++) {
		if (!is_mark(s, i))
			continue;
		uint32_t creator = promises[i].created_by, before = last[creator];
		if (before != WEFT_NONE && promises[before].kind == promises[i].kind &&
		    promises[before].end_ns > promises[i].start_ns)
			set_bit(s->shares, creator);
		last[creator] = i;
	}
	return true;
}

/* Returns the first ancestor of a promise; if an actor waits for that ancestor, continues with the first ancestor of the actor,
 * and so on. */
static uint32_t first_of(struct search *s, uint32_t promise)
{
	uint32_t r = s->root[promise];
	while (s->waiter[r] != WEFT_NONE) {
		uint32_t next = s->root[s->waiter[r]];
		if (s->waiter[next] != WEFT_NONE)
			s->root[s->waiter[r]] = s->root[s->waiter[next]];
		r = next;
	}
	return r;
}

static uint32_t actor_above(const struct search *s, uint32_t promise)
{
	const struct weft_promise *promises = s->model->promises;
	for (int i = 0; i < MAX_ANCESTORS && is_promise(promise); i++, promise = promises[promise].created_by)
		if (weft__is_actor(&promises[promise]))
			return promise;
	return WEFT_NONE;
}

/* Gives a promise whose creator was overwritten in the ring to the actor that waits for it or for a promise that it created.
 */
static bool adopt_orphans(struct search *s)
{
	const struct weft_model *m = s->model;
	uint32_t first = 1;
	while (first < m->promise_count && !is_orphan(&m->promises[first]))
		first++;
	if (first >= m->promise_count)
		return true;
	s->root = malloc(m->promise_count * sizeof *s->root);
	s->waiter = malloc(m->promise_count * sizeof *s->waiter);
	if (!s->root || !s->waiter)
		return false;
	memset(s->waiter, 0xff, m->promise_count * sizeof *s->waiter);
	/* The waiter may have a larger number than the promise, so owners and depths are not known yet. */
	memset(s->owner, 0xff, m->promise_count * sizeof *s->owner);
	memset(s->depth, 0, m->promise_count);
	for (uint32_t i = 0; i < m->promise_count; i++)
		s->root[i] = is_promise(m->promises[i].created_by) ? s->root[m->promises[i].created_by] : i;
	for (size_t i = 0; i < m->link_count; i++) {
		const struct weft_link *link = &m->links[i];
		if (link->kind != WEFT_LINK_AWAIT || !is_promise(link->to) || !is_promise(link->from))
			continue;
		uint32_t root = first_of(s, link->to), actor;
		if (!is_orphan(&m->promises[root]) || weft__is_actor(&m->promises[root]) || first_of(s, link->from) == root)
			continue;
		if ((actor = actor_above(s, link->from)) != WEFT_NONE)
			s->waiter[root] = actor;
	}
	return true;
}

static bool is_in_pool(const struct search *s, const struct weft_promise *p)
{
	const struct weft_model *m = s->model;
	return weft_kind_has(p->kind, WEFT_TRAIT_THREAD) && m->run_streams && p->runs < p[1].runs && s->roles->pool_of &&
	       s->roles->pool_of[m->run_streams[p->runs]] > 0;
}

/* Returns the actor to which a promise belongs.  If the creator's actor has ended before the promise starts, the promise belongs
 * to the actor around that actor.  A thread of a pool belongs to no request, although a request made the pool start the thread.
 * A track never has promises of two streams. */
static uint32_t owner_of(const struct search *s, uint32_t promise)
{
	const struct weft_promise *promises = s->model->promises, *p = &promises[promise];
	uint32_t owner = is_promise(p->created_by) ? s->scope[p->created_by] : s->waiter ? s->waiter[promise] : WEFT_NONE;
	const bool serves_all = is_in_pool(s, p);
	while (owner != WEFT_NONE &&
	       (promises[owner].end_ns <= p->start_ns || (serves_all && !weft_kind_has(promises[owner].kind, WEFT_TRAIT_THREAD))))
		owner = s->owner[owner];
	return owner != WEFT_NONE && promises[owner].stream == p->stream ? owner : WEFT_NONE;
}

/* Returns whether a promise is in the fold of another promise, so that it gets no row of its own: drop_followers() of layout.c.
 */
static bool is_follower(const struct weft_layout *layout, uint32_t promise)
{
	return layout->fold_count > 0 && layout->rows[promise] != WEFT_NONE;
}

/* Gives promises whose actor has no row of its own to the nearest actor around that has one. */
static void skip_followers(const struct weft_layout *layout, uint32_t *owner, uint32_t count)
{
	for (uint32_t i = 1; i < count && layout->fold_count > 0; i++)
		while (owner[i] != WEFT_NONE && is_follower(layout, owner[i]))
			owner[i] = owner[owner[i]];
}

/* Gives the promises of a fold to the owner of the fold's leader. */
static void follow_leaders(const struct weft_layout *layout, uint32_t *owner)
{
	for (size_t i = 0; i < layout->fold_count; i++)
		for (uint32_t k = 1; k < layout->folds[i].count; k++)
			owner[layout->folded[layout->folds[i].first + k]] = owner[layout->folds[i].leader];
}

static void find_owners(struct search *s)
{
	const struct weft_promise *promises = s->model->promises;
	s->owner[WEFT_SYSTEM] = s->scope[WEFT_SYSTEM] = WEFT_NONE;
	for (uint32_t i = 1; i < s->model->promise_count; i++) {
		uint32_t owner = owner_of(s, i);
		s->owner[i] = s->scope[i] = owner;
		if (!weft__is_actor(&promises[i]) || weft_is_internal(s->roles, i))
			continue;
		s->depth[i] = owner == WEFT_NONE ? 0 : s->depth[owner] < MAX_DEPTH ? s->depth[owner] + 1 : MAX_DEPTH;
		if (s->depth[i] == MAX_DEPTH)
			continue;
		s->scope[i] = i;
		if (is_mark(s, i) && !get_bit(s->shares, promises[i].created_by))
			s->scope[promises[i].created_by] = i;
	}
	skip_followers(s->layout, s->owner, (uint32_t)s->model->promise_count);
	follow_leaders(s->layout, s->owner);
}

/* Creates tracks for the actors whose bits are set. */
static bool list_actors(struct weft_layout *layout, uint32_t words)
{
	uint32_t count = 0;
	layout->actors_before = malloc(words * sizeof *layout->actors_before);
	if (!layout->actors_before)
		return false;
	for (uint32_t w = 0; w < words; w++) {
		layout->actors_before[w] = count;
		count += (uint32_t)__builtin_popcountll(layout->actors[w]);
	}
	layout->tracks = calloc((size_t)count + 1, sizeof *layout->tracks);
	if (!layout->tracks)
		return false;
	for (uint32_t w = 0; w < words; w++)
		for (uint64_t left = layout->actors[w]; left; left &= left - 1)
			layout->tracks[layout->track_count++] =
			    (struct weft_track){.actor = w * 64 + (uint32_t)__builtin_ctzll(left)};
	return true;
}

static void nest_tracks(struct weft_layout *layout)
{
	for (size_t t = 0; t < layout->track_count; t++)
		layout->tracks[t].around = layout->track_of[layout->tracks[t].actor];
}

/* Creates tracks for those actors that own promises. */
static bool list_tracks(struct search *s)
{
	struct weft_layout *layout = s->layout;
	const uint32_t n = (uint32_t)s->model->promise_count, words = n / 64 + 1;
	uint32_t *track = s->scope; /* for each actor: its track; the array uses the memory of s->scope */
	layout->actors = calloc(words, sizeof *layout->actors);
	if (!layout->actors)
		return false;
	for (uint32_t i = 1; i < n; i++)
		if (s->owner[i] != WEFT_NONE)
			set_bit(layout->actors, s->owner[i]);
	if (!list_actors(layout, words))
		return false;
	for (uint32_t t = 0; t < layout->track_count; t++)
		track[layout->tracks[t].actor] = t;
	for (uint32_t i = 1; i < n; i++)
		if (s->owner[i] != WEFT_NONE)
			layout->track_of[i] = track[s->owner[i]];
	nest_tracks(layout);
	return true;
}

bool weft__tracks_find(struct weft_layout *layout, const struct weft_model *model, const struct weft__census *census)
{
	const size_t n = model->promise_count;
	struct search s = {.model = model, .layout = layout};
	s.owner = layout->track_of = malloc(n * sizeof *s.owner);
	if (!s.owner)
		return false;
	if (!(census->traits & (WEFT_TRAIT_ACTOR | WEFT_TRAIT_OUTSIDE))) {
		memset(s.owner, 0xff, n * sizeof *s.owner);
		return true;
	}
	s.depth = malloc(n);
	s.scope = malloc(n * sizeof *s.scope);
	bool done = s.depth && s.scope && weft_model_roles(model, &s.roles) == WEFT_OK;
	if (census->traits & TRAITS_MARK)
		done = done && find_marks(&s);
	if (census->flags & WEFT_PROMISE_START_UNKNOWN)
		done = done && adopt_orphans(&s);
	if (done) {
		find_owners(&s);
		done = list_tracks(&s);
	}
	free(s.depth);
	free(s.scope);
	free(s.creates);
	free(s.shares);
	free(s.root);
	free(s.waiter);
	return done;
}

/* A promise whose actor is left out, or is folded into the line of another promise, belongs to the actor around it. */
bool weft__tracks_restrict(
    struct weft_layout *layout, const struct weft_model *model, const struct weft_layout *whole, const uint64_t *only)
{
	const uint32_t n = (uint32_t)model->promise_count;
	uint32_t *track_of = layout->track_of = weft_large_alloc(n, sizeof *track_of);
	if (!track_of)
		return false;
	memset(track_of, 0xff, n * sizeof *track_of);
	if (whole->track_count == 0)
		return true;
	uint32_t *near = malloc(
	    /* For each track of the whole layout: the nearest kept track around it, or the track itself. */
	    whole->track_count * sizeof *near);
	layout->actors = calloc(n / 64 + 1, sizeof *layout->actors);
	bool done = near && layout->actors;
	for (uint32_t i = 0; done && i < whole->track_count; i++) {
		near[i] = i;
		while (near[i] != WEFT_NONE &&
		       (!get_bit(only, whole->tracks[near[i]].actor) || is_follower(layout, whole->tracks[near[i]].actor)))
			near[i] = whole->tracks[near[i]].around;
	}
	/* Until the new tracks are listed, track_of has the track numbers of the whole layout. */
	for (uint32_t w = 0; done && w <= n / 64; w++)
		for (uint64_t left = only[w]; left; left &= left - 1) {
			uint32_t promise = w * 64 + (uint32_t)__builtin_ctzll(left), t = whole->track_of[promise];
			track_of[promise] = t == WEFT_NONE ? t : near[t];
		}
	if (done)
		follow_leaders(layout, track_of);
	for (uint32_t w = 0; done && w <= n / 64; w++)
		for (uint64_t left = only[w]; left; left &= left - 1) {
			uint32_t t = track_of[w * 64 + (uint32_t)__builtin_ctzll(left)];
			if (t != WEFT_NONE)
				set_bit(layout->actors, whole->tracks[t].actor);
		}
	done = done && list_actors(layout, n / 64 + 1);
	uint32_t *number = near;
	for (uint32_t i = 0, t = 0; done && t < layout->track_count; i++)
		if (whole->tracks[i].actor == layout->tracks[t].actor)
			number[i] = t++;
	for (uint32_t w = 0; done && w <= n / 64; w++)
		for (uint64_t left = only[w]; left; left &= left - 1) {
			uint32_t promise = w * 64 + (uint32_t)__builtin_ctzll(left);
			if (track_of[promise] != WEFT_NONE)
				track_of[promise] = number[track_of[promise]];
		}
	if (done)
		nest_tracks(layout);
	free(near);
	return done;
}
