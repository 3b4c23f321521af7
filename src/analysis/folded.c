/* folded.c: see folded.h.  SPDX-License-Identifier: ISC */
#include "analysis/folded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names.h"
#include "analysis/shapes.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/utf8.h"

enum { MOST_FRAMES = 64 };

/* A frame below others; the first node is nothing, below which the outermost stand. */
struct node {
	uint32_t above, frame;
	int64_t sum_ns;
};

struct folding {
	const struct weft_model *model;
	struct weft_intern names; /* of frames */
	WEFT_VEC(char *) owned;
	uint32_t *frame_of;        /* by promise */
	uint32_t *above;           /* by promise: who stands above it, or WEFT_NONE */
	uint64_t *waits;           /* bits by promise: it waits for another */
	struct weft_idmap numbers; /* of nodes, by the node above and the frame */
	WEFT_VEC(struct node) nodes;
};

/* ---- Frames ---- */

/* What a promise is called among those of its sort. */
static void name_frame(const struct weft_model *m, uint32_t promise, char out[WEFT_NAME_BYTES])
{
	const uint32_t text = weft_model_name_text(m, promise);
	const struct weft_promise *p = &m->promises[promise];
	char whole[WEFT_NAME_BYTES], place[WEFT_NAME_BYTES];
	if (promise == WEFT_SYSTEM) {
		snprintf(out, WEFT_NAME_BYTES, "the system");
	} else if (text != WEFT_NONE) {
		weft_name_text(m, text, whole, sizeof whole);
		weft__shape(out, WEFT_NAME_BYTES, (struct weft_str){whole, (uint32_t)strlen(whole)});
	} else {
		const char *kind = weft_model_kind_name(m, p->kind);
		*place = 0;
		if (p->site != WEFT_NONE)
			weft_site_format(&m->trace->sites[p->site], place, sizeof place);
		snprintf(out, WEFT_NAME_BYTES, "%.60s%s%.120s", kind, *place ? " at " : "", place);
	}
	for (char *c = out; *c; c++)
		*c = *c == ';' ? ',' : *c;
	weft_utf8_tame(out);
}

static uint32_t frame_of_name(struct folding *f, const char *name)
{
	const size_t known = f->names.texts.count;
	const uint32_t length = (uint32_t)strlen(name);
	char **slot = weft_vec_push(&f->owned), *copy = slot ? strdup(name) : NULL;
	if (slot)
		*slot = copy;
	const uint32_t number = copy ? weft_intern(&f->names, (struct weft_str){copy, length}) : WEFT_INTERN_FAILED;
	if (slot && (number < known || !copy)) {
		free(copy);
		f->owned.count--;
	}
	return number;
}

static bool find_frames(struct folding *f)
{
	const struct weft_model *m = f->model;
	char name[WEFT_NAME_BYTES];
	struct weft_idmap known = {0}; /* by name's text, or site and kind: most promises are called as one before */
	bool done = true;
	for (uint32_t p = 0; p < m->promise_count && done; p++) {
		const uint32_t text = weft_model_name_text(m, p);
		const struct weft_promise *promise = &m->promises[p];
		const int64_t key = p == WEFT_SYSTEM ? -1
				    : text != WEFT_NONE
					? (int64_t)text
					: (int64_t)((uint64_t)promise->kind << 40 | UINT64_C(1) << 60 | promise->site);
		uint32_t frame = weft_idmap_get(&known, key);
		if (frame == WEFT_IDMAP_NONE) {
			name_frame(m, p, name);
			frame = frame_of_name(f, name);
			done = frame != WEFT_INTERN_FAILED && weft_idmap_set(&known, key, frame);
		}
		f->frame_of[p] = frame;
	}
	weft_idmap_finish(&known);
	return done;
}

/* ---- Stacks ---- */

static bool find_node(struct folding *f, uint32_t above, uint32_t frame, uint32_t *out)
{
	const int64_t key = (int64_t)((uint64_t)above << 32 | frame);
	*out = weft_idmap_get(&f->numbers, key);
	if (*out != WEFT_IDMAP_NONE)
		return true;
	struct node *slot = weft_vec_push(&f->nodes);
	if (!slot || !weft_idmap_set(&f->numbers, key, (uint32_t)f->nodes.count - 1))
		return false;
	*slot = (struct node){above, frame, 0};
	*out = (uint32_t)f->nodes.count - 1;
	return true;
}

/* Adds to the stack of a promise.  Chains of those that wait may be circles. */
static bool add(struct folding *f, uint32_t promise, int64_t ns)
{
	uint32_t frames[MOST_FRAMES], count = 0, at = 0, node = 0;
	for (uint32_t p = promise; p != WEFT_NONE && p != WEFT_SYSTEM && count < MOST_FRAMES && at < 16 * MOST_FRAMES;
	     p = f->above[p], at++)
		if (!count || frames[count - 1] != f->frame_of[p])
			frames[count++] = f->frame_of[p];
	if (promise == WEFT_SYSTEM)
		frames[count++] = f->frame_of[WEFT_SYSTEM];
	while (count-- > 0)
		if (!find_node(f, node, frames[count], &node))
			return false;
	f->nodes.items[node].sum_ns += ns;
	return true;
}

static int64_t ran_ns(const struct weft_model *m, uint32_t promise)
{
	int64_t sum_ns = 0;
	for (uint32_t r = m->promises[promise].runs; r < m->promises[promise + 1].runs; r++)
		sum_ns += m->runs[r].end_ns - m->runs[r].start_ns;
	return sum_ns;
}

static void find_above(struct folding *f, enum weft_folded_by by)
{
	const struct weft_model *m = f->model;
	for (uint32_t p = 0; p < m->promise_count; p++)
		f->above[p] = by == WEFT_FOLDED_BY_RUN ? m->promises[p].created_by : WEFT_NONE;
	for (size_t i = 0; i < m->link_count && by == WEFT_FOLDED_BY_WAIT; i++) {
		const struct weft_link *link = &m->links[i];
		if ((link->kind != WEFT_LINK_AWAIT && link->kind != WEFT_LINK_READ) || link->from == link->to)
			continue;
		f->waits[link->from / 64] |= UINT64_C(1) << link->from % 64;
		if (f->above[link->to] == WEFT_NONE)
			f->above[link->to] = link->from;
	}
	/* Whom nobody waits for. */
	for (uint32_t p = 0; p < m->promise_count && by == WEFT_FOLDED_BY_WAIT; p++)
		if (f->above[p] == WEFT_NONE)
			f->above[p] = m->promises[p].created_by;
}

static bool sum_up(struct folding *f, enum weft_folded_by by)
{
	const struct weft_model *m = f->model;
	bool done = true;
	for (uint32_t p = 0; p < m->promise_count && done; p++) {
		int64_t ns = ran_ns(m, p);
		if (by == WEFT_FOLDED_BY_WAIT) {
			const struct weft_promise *promise = &m->promises[p];
			const int64_t end_ns = promise->end == WEFT_END_PENDING ? weft_model_until(m, p) : promise->end_ns;
			const bool is_leaf =
			    p != WEFT_SYSTEM && !(f->waits[p / 64] >> p % 64 & 1) && promise->end != WEFT_END_BECAME;
			ns = is_leaf ? end_ns - promise->start_ns - ns : 0;
		}
		done = ns <= 0 || add(f, p, ns);
	}
	return done;
}

static int tell(const struct folding *f, weft_folded_fn *each, void *ctx)
{
	const char *frames[MOST_FRAMES + 1];
	for (size_t i = 1; i < f->nodes.count; i++) {
		size_t at = MOST_FRAMES + 1;
		if (!f->nodes.items[i].sum_ns)
			continue;
		for (uint32_t node = (uint32_t)i; node; node = f->nodes.items[node].above)
			frames[--at] = f->names.texts.items[f->nodes.items[node].frame].ptr;
		if (each(ctx, frames + at, MOST_FRAMES + 1 - at, f->nodes.items[i].sum_ns))
			return WEFT_EIO;
	}
	return WEFT_OK;
}

int weft_folded(const struct weft_model *model, enum weft_folded_by by, weft_folded_fn *each, void *ctx, struct weft_error *err)
{
	const size_t count = model->promise_count;
	struct folding f = {.model = model,
	    .frame_of = malloc((count + 1) * sizeof *f.frame_of),
	    .above = malloc((count + 1) * sizeof *f.above),
	    .waits = calloc(count / 64 + 1, sizeof *f.waits)};
	int status = WEFT_ENOMEM;
	struct node *nothing = weft_vec_push(&f.nodes);
	if (nothing)
		*nothing = (struct node){0, 0, 0};
	if (nothing && f.frame_of && f.above && f.waits && find_frames(&f)) {
		find_above(&f, by);
		status = sum_up(&f, by) ? tell(&f, each, ctx) : WEFT_ENOMEM;
	}
	for (size_t i = 0; i < f.owned.count; i++)
		free(f.owned.items[i]);
	weft_vec_free(&f.owned);
	weft_vec_free(&f.nodes);
	weft_intern_finish(&f.names);
	weft_idmap_finish(&f.numbers);
	free(f.frame_of);
	free(f.above);
	free(f.waits);
	return status < 0 ? weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status)) : WEFT_OK;
}
