/* pack.c: the innermost tracks first, each on rows of its own from 0 on; a track then stands in the one around it as a block.
 *
 * In a track, promises come in the order of their starts, and take the first row that is free from their anchor on: that is the
 * first of those under which they are drawn that lives as long as they do.  So what is called stands below who calls, and what
 * goes on after its creator, as a loop does whose turns create each other, stays where the first one stood.
 * SPDX-License-Identifier: ISC */
#include "layout/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "layout/rows.h"

enum {
	STEPS = 64,          /* of ancestors that are looked at for an anchor */
	TRIES = 64,          /* of places that are looked at for a block */
	LEAST_MOMENTS = 256, /* at which the promises of a band that are alive are counted */
	MOST_MOMENTS = 65536,
	ALL = UINT8_MAX,
	OUTERMOST = 1,
	NONE = 0
};

struct pack {
	const struct weft_model *model;
	struct weft_layout *layout;
	const uint32_t *order;
	size_t count, groups;
	uint32_t *opens;            /* by promise: the track whose actor it is */
	uint32_t *anchor;           /* by promise */
	uint32_t *group;            /* by promise: the track in whose block it stands, or behind the tracks its band */
	uint32_t *items, *begin;    /* by group, then by start; where each group's begin */
	uint32_t *depth, *by_depth; /* of tracks; the outermost first */
	uint32_t *band;             /* of tracks */
	uint8_t *levels;            /* by band: tracks of less depth are blocks */
	uint64_t *bounds;           /* by band: how many rows it may have */
	size_t *band_begin;         /* by band: its first in `order` */
	struct weft__rows rows;
};

/* How long a row is taken, which for an actor is as long as its track. */
static int64_t start_of(const struct pack *p, uint32_t promise)
{
	uint32_t track = p->opens[promise];
	return track == WEFT_NONE ? p->model->promises[promise].start_ns : p->layout->tracks[track].start_ns;
}

static int64_t end_of(const struct pack *p, uint32_t promise)
{
	uint32_t track = p->opens[promise];
	return track == WEFT_NONE ? weft_layout_end(p->layout, p->model, promise) : p->layout->tracks[track].end_ns;
}

static bool is_block(const struct pack *p, uint32_t track)
{
	return track != WEFT_NONE && p->depth[track] < p->levels[p->band[track]];
}

static uint32_t band_of(const struct pack *p, uint32_t promise)
{
	uint16_t stream = p->model->promises[promise].stream;
	const struct weft_layout *l = p->layout;
	return (uint32_t)WEFT_FIRST(i, 0, l->band_count, l->bands[i].stream >= stream);
}

static bool list_bands(struct pack *p)
{
	struct weft_layout *l = p->layout;
	const struct weft_promise *promises = p->model->promises;
	size_t bands = 0;
	for (size_t i = 0; i < p->count; i++)
		bands += i == 0 || promises[p->order[i]].stream != promises[p->order[i - 1]].stream;
	l->bands = calloc(bands + 1, sizeof *l->bands);
	p->band_begin = calloc(bands + 1, sizeof *p->band_begin);
	p->levels = malloc(bands + 1);
	p->bounds = malloc((bands + 1) * sizeof *p->bounds);
	if (!l->bands || !p->bounds || !p->band_begin || !p->levels)
		return false;
	memset(p->levels, l->track_count ? ALL : NONE, bands + 1);
	for (size_t i = 0; i < p->count; i++)
		if (i == 0 || promises[p->order[i]].stream != promises[p->order[i - 1]].stream) {
			p->band_begin[l->band_count] = i;
			l->bands[l->band_count++].stream = promises[p->order[i]].stream;
		}
	p->band_begin[bands] = p->count;
	p->groups = l->track_count + bands;
	return true;
}

/* How deep tracks are nested, and so in which order they are packed. */
static bool sort_tracks(struct pack *p)
{
	const struct weft_track *tracks = p->layout->tracks;
	size_t n = p->layout->track_count;
	uint32_t deepest = 0;
	memset(p->depth, 0xff, n * sizeof *p->depth);
	for (uint32_t t = 0; t < n; t++) {
		uint32_t above = t, steps = 0;
		for (; above != WEFT_NONE && p->depth[above] == WEFT_NONE; above = tracks[above].around)
			steps++;
		uint32_t depth = above == WEFT_NONE ? steps : p->depth[above] + 1 + steps;
		for (above = t; steps > 0; above = tracks[above].around, steps--)
			p->depth[above] = --depth;
		deepest = p->depth[t] > deepest ? p->depth[t] : deepest;
		p->band[t] = band_of(p, tracks[t].actor);
	}
	uint32_t *next = calloc((size_t)deepest + 2, sizeof *next);
	if (!next)
		return false;
	for (uint32_t t = 0; t < n; t++)
		next[p->depth[t] + 1]++;
	for (uint32_t d = 0; d < deepest; d++)
		next[d + 1] += next[d];
	for (uint32_t t = 0; t < n; t++)
		p->by_depth[next[p->depth[t]]++] = t;
	free(next);
	return true;
}

static void stretch(struct weft_track *track, int64_t start_ns, int64_t end_ns)
{
	track->start_ns = start_ns < track->start_ns ? start_ns : track->start_ns;
	track->end_ns = end_ns > track->end_ns ? end_ns : track->end_ns;
}

static void measure_tracks(struct pack *p)
{
	struct weft_layout *l = p->layout;
	memset(p->opens, 0xff, p->model->promise_count * sizeof *p->opens);
	if (l->track_count == 0)
		return;
	for (size_t t = 0; t < l->track_count; t++) {
		l->tracks[t].start_ns = p->model->promises[l->tracks[t].actor].start_ns;
		l->tracks[t].end_ns = weft_layout_end(l, p->model, l->tracks[t].actor);
	}
	for (size_t i = 0; i < p->count; i++) {
		uint32_t track = l->track_of[p->order[i]];
		if (track != WEFT_NONE)
			stretch(&l->tracks[track], start_of(p, p->order[i]), end_of(p, p->order[i]));
	}
	for (size_t i = l->track_count; i-- > 0;) {
		const struct weft_track *track = &l->tracks[p->by_depth[i]];
		if (track->around != WEFT_NONE)
			stretch(&l->tracks[track->around], track->start_ns, track->end_ns);
	}
	for (uint32_t t = 0; t < l->track_count; t++)
		p->opens[l->tracks[t].actor] = t;
}

static uint32_t group_of(const struct pack *p, size_t band, uint32_t promise)
{
	const struct weft_layout *l = p->layout;
	uint32_t group = l->track_of[promise];
	while (group != WEFT_NONE && !is_block(p, group))
		group = l->tracks[group].around;
	return group == WEFT_NONE ? (uint32_t)(l->track_count + band) : group;
}

static void sort_into_groups(struct pack *p)
{
	uint32_t *next = p->begin + 1; /* where the next of a group goes; in the end, where the next group begins */
	if (p->layout->track_count == 0) {
		for (size_t b = 0; b <= p->groups; b++)
			p->begin[b] = (uint32_t)p->band_begin[b];
		memcpy(p->items, p->order, p->count * sizeof *p->items);
	} else {
		memset(p->begin, 0, (p->groups + 2) * sizeof *p->begin);
	}
	for (size_t b = 0; b < p->layout->band_count; b++)
		for (size_t i = p->band_begin[b]; i < p->band_begin[b + 1]; i++) {
			uint32_t promise = p->order[i];
			p->group[promise] = p->layout->track_count ? group_of(p, b, promise) : (uint32_t)b;
			if (p->layout->track_count)
				next[p->group[promise] + 1]++;
		}
	if (p->layout->track_count == 0)
		return;
	for (size_t g = 0; g < p->groups; g++)
		next[g + 1] += next[g];
	for (size_t i = 0; i < p->count; i++)
		p->items[next[p->group[p->order[i]]]++] = p->order[i];
}

/* Who stands above a promise as long as it lives, in the same block. */
static uint32_t anchor_of(const struct pack *p, uint32_t promise)
{
	uint32_t above = p->model->promises[promise].parent;
	int64_t end = end_of(p, promise);
	for (int i = 0; i < STEPS; i++, above = p->anchor[above]) {
		if (above == WEFT_NONE || above == WEFT_SYSTEM || p->layout->rows[above] == WEFT_NONE ||
		    p->group[above] != p->group[promise])
			break;
		if (end_of(p, above) >= end)
			return above;
	}
	return WEFT_NONE;
}

static uint32_t height_of(const struct pack *p, uint32_t promise)
{
	return is_block(p, p->opens[promise]) ? p->layout->tracks[p->opens[promise]].row_count : 1;
}

/* Finds rows for a promise or, if it is the actor of one, for its block. */
static bool place(struct pack *p, uint32_t promise)
{
	uint32_t height = height_of(p, promise), from = 0, row = UINT32_MAX, anchor = anchor_of(p, promise);
	int64_t start = start_of(p, promise), end = end_of(p, promise);
	p->anchor[promise] = anchor;
	if (anchor != WEFT_NONE)
		from = p->layout->rows[anchor] + height_of(p, anchor);
	if (from > 0)
		row = weft__rows_first_of(&p->rows, from, height, start, TRIES);
	if (row == UINT32_MAX)
		row = weft__rows_first_of(&p->rows, 0, height, start, TRIES);
	if (row == UINT32_MAX)
		row = weft__rows_count(&p->rows);
	p->layout->rows[promise] = row;
	for (uint32_t i = 0; i < height; i++)
		if (!weft__rows_take(&p->rows, row + i, end))
			return false;
	return true;
}

/* 1; 0: the band has too many rows; WEFT_ENOMEM. */
static int pack_group(struct pack *p, uint32_t group)
{
	struct weft_layout *l = p->layout;
	bool is_track = group < l->track_count;
	uint32_t band = is_track ? p->band[group] : group - (uint32_t)l->track_count;
	if (is_track && !is_block(p, group))
		return 1;
	weft__rows_clear(&p->rows);
	if (is_track && !weft__rows_take(&p->rows, 0, INT64_MAX)) /* the actor's */
		return WEFT_ENOMEM;
	for (uint32_t i = p->begin[group]; i < p->begin[group + 1]; i++) {
		if (!place(p, p->items[i]))
			return WEFT_ENOMEM;
		if (p->levels[band] != NONE && weft__rows_count(&p->rows) > p->bounds[band]) {
			p->levels[band] = p->levels[band] == ALL ? OUTERMOST : NONE;
			return 0;
		}
	}
	*(is_track ? &l->tracks[group].row_count : &l->bands[band].row_count) = weft__rows_count(&p->rows);
	return 1;
}

/* As pack_group().  Rows are those in a block. */
static int pack_all(struct pack *p)
{
	struct weft_layout *l = p->layout;
	int status = 1;
	memset(l->rows, 0xff, p->model->promise_count * sizeof *l->rows);
	for (size_t t = 0; t < l->track_count; t++)
		l->tracks[t].row_count = 0;
	sort_into_groups(p);
	for (size_t i = l->track_count; i-- > 0 && status > 0;)
		status = pack_group(p, p->by_depth[i]);
	for (size_t b = 0; b < l->band_count && status > 0; b++)
		status = pack_group(p, (uint32_t)(l->track_count + b));
	return status;
}

/* What a band may have at a moment at which so many promises and tracks are alive. */
static uint64_t bound_at(uint64_t promises, uint64_t tracks)
{
	return promises + promises / 2 + tracks;
}

/* That of the busiest of some moments, so many that a busier one between them hardly differs; 0 when out of memory. */
static uint64_t bound_of(const struct pack *p, size_t band)
{
	size_t n = p->band_begin[band + 1] - p->band_begin[band];
	size_t moments = n < LEAST_MOMENTS / 4 ? LEAST_MOMENTS : n < MOST_MOMENTS / 4 ? 4 * n : MOST_MOMENTS;
	uint64_t step = (uint64_t)p->model->end_ns / moments + 1, bound = 1, promises_now = 0, tracks_now = 0;
	int32_t *promises = calloc(2 * (moments + 1), sizeof *promises);
	if (!promises)
		return 0;
	int32_t *tracks = promises + moments + 1;
	/* The first moment at or after a time. */
#define MOMENT(time_ns)                                                                                                          \
	((time_ns) <= 0                                         ? 0                                                              \
	    : ((uint64_t)(time_ns) + step - 1) / step < moments ? ((uint64_t)(time_ns) + step - 1) / step                        \
								: moments)
	for (size_t i = p->band_begin[band]; i < p->band_begin[band + 1]; i++) {
		uint32_t promise = p->order[i];
		promises[MOMENT(p->model->promises[promise].start_ns)]++;
		promises[MOMENT(weft_layout_end(p->layout, p->model, promise))]--;
		if (p->opens[promise] != WEFT_NONE) {
			tracks[MOMENT(start_of(p, promise))]++;
			tracks[MOMENT(end_of(p, promise))]--;
		}
	}
#undef MOMENT
	for (size_t k = 0; k < moments; k++) {
		uint64_t here = bound_at(promises_now += (uint64_t)promises[k], tracks_now += (uint64_t)tracks[k]);
		bound = here > bound ? here : bound;
	}
	free(promises);
	return bound;
}

static bool find_bounds(struct pack *p)
{
	for (size_t b = 0; b < p->layout->band_count; b++)
		if ((p->bounds[b] = bound_of(p, b)) == 0)
			return false;
	return true;
}

/* From rows in a block to rows of the picture. */
static void stand(struct pack *p)
{
	struct weft_layout *l = p->layout;
	for (size_t b = 0; b < l->band_count; b++) {
		l->bands[b].first_row = l->row_count;
		l->row_count += l->bands[b].row_count;
	}
#define BASE(g) (g < l->track_count ? l->tracks[g].first_row : l->bands[g - l->track_count].first_row)
	for (size_t i = 0; i < l->track_count; i++) {
		struct weft_track *track = &l->tracks[p->by_depth[i]];
		uint32_t group = p->group[track->actor];
		track->first_row = BASE(group) + l->rows[track->actor];
	}
	for (size_t i = 0; i < p->count; i++) {
		uint32_t group = p->group[p->order[i]];
		l->rows[p->order[i]] += BASE(group);
	}
#undef BASE
}

bool weft__rows_pack(struct weft_layout *layout, const struct weft_model *model, const uint32_t *order, size_t count)
{
	struct pack p = {.model = model, .layout = layout, .order = order, .count = count};
	size_t n = model->promise_count + 1, tracks = layout->track_count + 1;
	p.opens = malloc(n * sizeof *p.opens);
	p.anchor = malloc(n * sizeof *p.anchor);
	p.group = malloc(n * sizeof *p.group);
	p.items = malloc(n * sizeof *p.items);
	p.depth = malloc(tracks * sizeof *p.depth);
	p.by_depth = malloc(tracks * sizeof *p.by_depth);
	p.band = malloc(tracks * sizeof *p.band);
	bool done =
	    p.opens && p.anchor && p.group && p.items && p.depth && p.by_depth && p.band && list_bands(&p) && sort_tracks(&p);
	p.begin = done ? malloc((p.groups + 3) * sizeof *p.begin) : NULL;
	done = done && p.begin;
	if (done) {
		measure_tracks(&p);
		done = layout->track_count == 0 || find_bounds(&p);
	}
	int status = 0;
	while (done && (status = pack_all(&p)) == 0)
		continue;
	done = done && status > 0;
	if (done)
		stand(&p);
	free(p.opens);
	free(p.anchor);
	free(p.group);
	free(p.items);
	free(p.begin);
	free(p.depth);
	free(p.by_depth);
	free(p.band);
	free(p.levels);
	free(p.bounds);
	free(p.band_begin);
	weft__rows_finish(&p.rows);
	return done;
}
