/* focus.c: finds the promises that belong to one promise: what it created, in one walk over all promises, and what these waited
 * for, in one walk over the links.  If these promises include sockets that may be pooled, an earlier walk finds out which other
 * promises use these sockets.  SPDX-License-Identifier: ISC */
#include "layout/focus.h"

#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "base/vec.h"

enum {
	/* Traits of promises at which many unrelated promises meet, such as locks; following their own waits would lead to most
	 * of the program. */
	TRAITS_SHARED = WEFT_TRAIT_LOCK | WEFT_TRAIT_QUEUE | WEFT_TRAIT_POOL | WEFT_TRAIT_CONDITION,
	/* Traits of promises that serve many promises; the search does not follow them, unless the promise in focus created
	 * them. */
	TRAITS_SERVES = WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD | WEFT_TRAIT_CONNECTION
};

struct search {
	const struct weft_model *model;
	uint64_t *bits, *pooled;     /* pooled: bits of sockets that other promises use too; NULL: none */
	uint32_t *found;             /* promises whose bits are set; the waits of the first `done` of them have been followed */
	size_t count, done, created; /* the first `created` promises are those that the promise in focus created */
};

static bool get_bit(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static void set_bit(uint64_t *bits, uint32_t i)
{
	bits[i / 64] |= 1ull << i % 64;
}

static bool may_add(const struct search *s, uint32_t promise)
{
	return promise != WEFT_NONE && promise != WEFT_SYSTEM && !get_bit(s->bits, promise);
}

static void add_promise(struct search *s, uint32_t promise)
{
	if (!may_add(s, promise))
		return;
	set_bit(s->bits, promise);
	s->found[s->count++] = promise;
}

/* Adds a promise that has not been added yet, if `is_it`.  The function has no branch, because a branch predictor would often be
 * wrong here. */
static inline void add_if(struct search *s, uint32_t promise, bool is_it)
{
	s->bits[promise / 64] |= (uint64_t)is_it << promise % 64;
	s->found[s->count] = promise;
	s->count += is_it;
}

static bool is_in_track(const struct weft_layout *layout, uint32_t t, uint32_t track)
{
	while (t != WEFT_NONE && t != track)
		t = layout->tracks[t].around;
	return t == track;
}

/* Adds all promises of a track and of the tracks nested in it, except the track's actor.  Returns false without memory. */
static bool add_track(struct search *s, const struct weft_layout *layout, uint32_t promise, uint32_t track)
{
	bool *is_in = malloc(layout->track_count * sizeof *is_in);
	for (uint32_t t = 0; is_in && t < layout->track_count; t++)
		is_in[t] = is_in_track(layout, t, track);
	for (uint32_t i = 1; is_in && i < s->model->promise_count; i++)
		if (i != promise)
			add_if(s, i, layout->track_of[i] != WEFT_NONE && is_in[layout->track_of[i]]);
	free(is_in);
	return is_in;
}

static bool add_created(struct search *s, const struct weft_layout *layout, uint32_t promise)
{
	const struct weft_promise *promises = s->model->promises;
	const struct weft_track *track = weft_layout_track(layout, promise);
	add_promise(s, promise);
	if (track)
		return add_track(s, layout, promise, (uint32_t)(track - layout->tracks));
	for (uint32_t i = promise + 1; i < s->model->promise_count; i++) {
		const uint32_t by = promises[i].created_by; /* always smaller than i */
		const bool is_created = by != WEFT_NONE && get_bit(s->bits, by);
		add_if(s, i, (int)is_created & (int)(promises[i].start_ns < promises[promise].end_ns));
	}
	return true;
}

/* ---- Pooled sockets ---- */

static bool is_wait(const struct weft_link *link)
{
	return link->kind == WEFT_LINK_AWAIT || link->kind == WEFT_LINK_READ;
}

/* Returns whether a promise is a socket that the program itself connected.  A socket that the program accepted serves only its
 * peer. */
static bool is_connected(const struct weft_promise *p)
{
	return weft_kind_has(p->kind, WEFT_TRAIT_CONNECTION) && p->flags & WEFT_PROMISE_CONNECTED;
}

static uint32_t actor_of(const struct weft_layout *layout, uint32_t promise)
{
	uint32_t track = layout->track_of[promise];
	return weft_layout_track(layout, promise) || track == WEFT_NONE ? promise : layout->tracks[track].actor;
}

/* Returns whether a promise was not created by the promise in focus and works for itself; loops and threads wait for all
 * promises, so they do not count. */
static bool is_outside(const struct search *s, uint32_t promise)
{
	return may_add(s, promise) &&
	       !(weft_kind_traits(s->model->promises[promise].kind) & (WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD | TRAITS_SHARED));
}

/* Marks the socket of a wait as pooled, if the wait shows that others use the socket: its code waits for input or output that
 * others began, or others wait for what its code began. */
static void mark_pooled(struct search *s, const struct weft_layout *layout, const struct weft_link *link, uint32_t promise)
{
	const struct weft_promise *promises = s->model->promises, *to = &promises[link->to];
	const uint32_t actor = actor_of(layout, link->to);
	if (link->from != promise && is_connected(&promises[link->from]) && get_bit(s->bits, link->from) &&
	    weft_kind_has(to->kind, WEFT_TRAIT_OUTSIDE) && may_add(s, link->to) && is_outside(s, to->created_by))
		set_bit(s->pooled, link->from);
	if (actor != promise && is_connected(&promises[actor]) && get_bit(s->bits, actor) && is_outside(s, link->from))
		set_bit(s->pooled, actor);
}

static bool is_in_pooled(const struct search *s, const struct weft_layout *layout, uint32_t promise)
{
	uint32_t t = layout->track_of[promise];
	while (t != WEFT_NONE && !get_bit(s->pooled, layout->tracks[t].actor))
		t = layout->tracks[t].around;
	return t != WEFT_NONE;
}

/* Removes the promises that the code of pooled sockets created, because most of them are for others.  Returns false without
 * memory. */
static bool leave_out_pooled(struct search *s, const struct weft_layout *layout, uint32_t promise)
{
	const struct weft_model *m = s->model;
	size_t i = 0, kept = 0;
	while (i < s->count && (s->found[i] == promise || !is_connected(&m->promises[s->found[i]])))
		i++;
	if (i == s->count)
		return true;
	s->pooled = calloc(m->promise_count / 64 + 1, sizeof *s->pooled);
	for (i = 0; s->pooled && i < m->link_count; i++)
		if (is_wait(&m->links[i]))
			mark_pooled(s, layout, &m->links[i], promise);
	for (i = 0; s->pooled && i < s->count; i++)
		if (is_in_pooled(s, layout, s->found[i]))
			s->bits[s->found[i] / 64] &= ~(1ull << s->found[i] % 64);
		else
			s->found[kept++] = s->found[i];
	if (s->pooled)
		s->count = kept;
	return s->pooled;
}

/* ---- Waits ---- */

/* Returns whether many other promises use a found promise, so that the search stops at it. */
static bool is_shared(const struct search *s, size_t found, uint32_t promise)
{
	const uint32_t p = s->found[found], traits = weft_kind_traits(s->model->promises[p].kind);
	if (p == promise)
		return false;
	return traits & TRAITS_SHARED || (traits & TRAITS_SERVES && found >= s->created) || (s->pooled && get_bit(s->pooled, p));
}

/* A promise that was awaited or read, and the index in waits.items of the same waiter's previous wait. */
struct wait {
	uint32_t to, before;
};

/* The waits up to a time, without waits for promises that have already been added. */
struct waits {
	uint32_t *last; /* for each promise: index in `items` of its latest wait, or WEFT_NONE */
	WEFT_VEC(struct wait) items;
	WEFT_VEC(uint32_t) readers; /* promises that await or read the promise in focus */
};

/* Lists all waits in one walk over the links, because the links are far larger than the CPU's cache. */
static bool list_waits(struct waits *w, const struct search *s, uint32_t promise, int64_t until_ns)
{
	const struct weft_model *m = s->model;
	memset(w->last, 0xff, m->promise_count * sizeof *w->last); /* WEFT_NONE */
	for (size_t i = 0; i < m->link_count; i++) {
		const struct weft_link *link = &m->links[i];
		if (!is_wait(link))
			continue;
		if (link->to == promise) {
			uint32_t *reader = weft_vec_push(&w->readers);
			if (!reader)
				return false;
			*reader = link->from;
		}
		if (link->time_ns > until_ns || !may_add(s, link->to))
			continue;
		struct wait *wait = weft_vec_push(&w->items);
		if (!wait)
			return false;
		*wait = (struct wait){link->to, w->last[link->from]};
		w->last[link->from] = (uint32_t)(wait - w->items.items);
	}
	return true;
}

int weft_focus_find(uint64_t **out, size_t *count, const struct weft_model *m, const struct weft_layout *layout, uint32_t promise,
    struct weft_error *err)
{
	struct search s = {.model = m};
	struct waits waits = {0};
	s.bits = calloc(m->promise_count / 64 + 1, sizeof *s.bits);
	s.found = weft_large_alloc(m->promise_count + 1, sizeof *s.found);
	waits.last = weft_large_alloc(m->promise_count + 1, sizeof *waits.last);
	bool done = s.bits && s.found && waits.last && add_created(&s, layout, promise) && leave_out_pooled(&s, layout, promise);
	s.created = s.count;
	if (done) {
		const struct weft_track *track = weft_layout_track(layout, promise);
		done = list_waits(&waits, &s, promise, track ? track->end_ns : weft_layout_end(layout, m, promise));
	}
	for (; done && s.done < s.count; s.done++)
		for (uint32_t i = is_shared(&s, s.done, promise) ? WEFT_NONE : waits.last[s.found[s.done]]; i != WEFT_NONE;
		     i = waits.items.items[i].before)
			add_promise(&s, waits.items.items[i].to);
	/* These promises are added last, so that their other waits are not followed. */
	for (size_t i = 0; done && i < waits.readers.count; i++)
		add_promise(&s, waits.readers.items[i]);
	if (done && count)
		*count = s.count;
	if (done)
		*out = s.bits;
	else
		free(s.bits);
	free(s.pooled);
	free(s.found);
	free(waits.last);
	weft_vec_free(&waits.items);
	weft_vec_free(&waits.readers);
	return done ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "no memory to find the promises that belong to one promise");
}
