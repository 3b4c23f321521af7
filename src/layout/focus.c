/* focus.c: what a promise made is found in one walk over the promises, what that waited for in a walk along links.
 * SPDX-License-Identifier: ISC */
#include "layout/focus.h"

#include <stdlib.h>

#include "base/search.h"

struct search {
	const struct weft_model *model;
	uint64_t *bits;
	uint32_t *found; /* those whose bits are set; `done` of them were asked what they waited for */
	size_t count, done;
};

static void add(struct search *s, uint32_t promise)
{
	if (promise == WEFT_NONE || promise == WEFT_SYSTEM || s->bits[promise / 64] >> promise % 64 & 1)
		return;
	s->bits[promise / 64] |= 1ull << promise % 64;
	s->found[s->count++] = promise;
}

static bool is_in_track(const struct weft_layout *layout, uint32_t t, uint32_t track)
{
	while (t != WEFT_NONE && t != track)
		t = layout->tracks[t].around;
	return t == track;
}

/* Of all that belongs to a track or to one in it; false when out of memory. */
static bool add_track(struct search *s, const struct weft_layout *layout, uint32_t track)
{
	bool *is_in = malloc(layout->track_count * sizeof *is_in);
	for (uint32_t t = 0; is_in && t < layout->track_count; t++)
		is_in[t] = is_in_track(layout, t, track);
	for (uint32_t i = 1; is_in && i < s->model->promise_count; i++)
		if (layout->track_of[i] != WEFT_NONE && is_in[layout->track_of[i]])
			add(s, i);
	free(is_in);
	return is_in;
}

static bool add_made(struct search *s, const struct weft_layout *layout, uint32_t promise)
{
	const struct weft_promise *promises = s->model->promises;
	const struct weft_track *track = weft_layout_track(layout, promise);
	add(s, promise);
	if (track)
		return add_track(s, layout, (uint32_t)(track - layout->tracks));
	for (uint32_t i = promise + 1; i < s->model->promise_count; i++) {
		uint32_t by = promises[i].created_by; /* a smaller number */
		if (by != WEFT_NONE && s->bits[by / 64] >> by % 64 & 1 && promises[i].start_ns < promises[promise].end_ns)
			add(s, i);
	}
	return true;
}

static bool is_wait(const struct weft_link *link)
{
	return link->kind == WEFT_LINK_AWAIT || link->kind == WEFT_LINK_READ;
}

/* Lists for each promise the links by which it waited or read until then. */
static void list_waits(const struct weft_model *m, int64_t until_ns, uint32_t *begin, uint32_t *waits)
{
	const size_t count = WEFT_FIRST(i, 0, m->link_count, m->links[i].time_ns > until_ns);
	uint32_t *next = begin + 1; /* where the next of a promise goes; in the end, where the next promise's begin */
	for (size_t i = 0; i < count; i++)
		if (is_wait(&m->links[i]))
			next[m->links[i].from + 1]++;
	for (size_t p = 0; p < m->promise_count; p++)
		next[p + 1] += next[p];
	for (size_t i = 0; i < count; i++)
		if (is_wait(&m->links[i]))
			waits[next[m->links[i].from]++] = (uint32_t)i;
}

int weft_focus_find(uint64_t **out, size_t *count, const struct weft_model *m, const struct weft_layout *layout, uint32_t promise,
    struct weft_error *err)
{
	struct search s = {.model = m};
	s.bits = calloc(m->promise_count / 64 + 1, sizeof *s.bits);
	s.found = malloc((m->promise_count + 1) * sizeof *s.found);
	uint32_t *begin = calloc(m->promise_count + 2, sizeof *begin);
	uint32_t *waits = malloc((m->link_count + 1) * sizeof *waits);
	bool done = s.bits && s.found && begin && waits && add_made(&s, layout, promise);
	if (done) {
		int64_t until = weft_layout_track(layout, promise) ? weft_layout_track(layout, promise)->end_ns
								   : weft_layout_end(layout, m, promise);
		list_waits(m, until, begin, waits);
		for (; s.done < s.count; s.done++) {
			uint32_t p = s.found[s.done];
			for (uint32_t i = begin[p]; i < begin[p + 1]; i++)
				add(&s, m->links[waits[i]].to);
		}
		/* Last, since nobody asks what else they waited for. */
		for (size_t i = 0; i < m->link_count; i++)
			if (is_wait(&m->links[i]) && m->links[i].to == promise)
				add(&s, m->links[i].from);
		*out = s.bits;
		if (count)
			*count = s.count;
	} else {
		free(s.bits);
	}
	free(s.found);
	free(begin);
	free(waits);
	return done ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "no memory to find what belongs to a promise");
}
