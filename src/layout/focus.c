/* focus.c: finds the promises that one promise created in one walk over all promises, and their waits in one walk over the
 * links.
 * SPDX-License-Identifier: ISC */
#include "layout/focus.h"

#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "base/vec.h"

struct search {
	const struct weft_model *model;
	uint64_t *bits;
	uint32_t *found; /* promises with their bits set; the waits of the first `done` of them have been followed */
	size_t count, done;
};

static bool may_add(const struct search *s, uint32_t promise)
{
	return promise != WEFT_NONE && promise != WEFT_SYSTEM && !(s->bits[promise / 64] >> promise % 64 & 1);
}

static void add_promise(struct search *s, uint32_t promise)
{
	if (!may_add(s, promise))
		return;
	s->bits[promise / 64] |= 1ull << promise % 64;
	s->found[s->count++] = promise;
}

/* Adds a promise that is not added yet.  Has no branch: a branch predictor would often be wrong here. */
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

/* Adds all promises of a track and of the tracks in it, except the track's actor.  Returns false when out of memory. */
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
		const bool is_created = by != WEFT_NONE && s->bits[by / 64] >> by % 64 & 1;
		add_if(s, i, (int)is_created & (int)(promises[i].start_ns < promises[promise].end_ns));
	}
	return true;
}

static bool is_wait(const struct weft_link *link)
{
	return link->kind == WEFT_LINK_AWAIT || link->kind == WEFT_LINK_READ;
}

/* A promise that was awaited or read, and the index in waits.items of the previous wait of the same waiter. */
struct wait {
	uint32_t to, before;
};

/* The waits up to a time, without those for promises that are already added. */
struct waits {
	uint32_t *last; /* by promise: index in `items` of its latest wait, or WEFT_NONE */
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
	bool done = s.bits && s.found && waits.last && add_created(&s, layout, promise);
	if (done) {
		const struct weft_track *track = weft_layout_track(layout, promise);
		done = list_waits(&waits, &s, promise, track ? track->end_ns : weft_layout_end(layout, m, promise));
	}
	for (; done && s.done < s.count; s.done++)
		for (uint32_t i = waits.last[s.found[s.done]]; i != WEFT_NONE; i = waits.items.items[i].before)
			add_promise(&s, waits.items.items[i].to);
	/* Added last: the other waits of these promises are not followed. */
	for (size_t i = 0; done && i < waits.readers.count; i++)
		add_promise(&s, waits.readers.items[i]);
	if (done && count)
		*count = s.count;
	if (done)
		*out = s.bits;
	else
		free(s.bits);
	free(s.found);
	free(waits.last);
	weft_vec_free(&waits.items);
	weft_vec_free(&waits.readers);
	return done ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "no memory to find the promises that belong to one promise");
}
