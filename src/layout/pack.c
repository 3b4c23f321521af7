/* pack.c: in each band the innermost tracks first, each on rows of its own from 0 on; a track then stands in the one around it as
 * a block.
 *
 * In a track, promises come in the order of their starts, and take the first row that is free from their anchor on: that is the
 * first of those under which they are drawn that lives as long as they do.  So what is called stands below who calls, and what
 * goes on after its creator, as a loop does whose turns create each other, stays where the first one stood.
 *
 * A group is what is packed together: the promises of a block, or those of a band that are in none.  Millions of promises are
 * walked through as seldom as possible.  SPDX-License-Identifier: ISC */
#include "layout/pack.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "base/meanwhile.h"
#include "base/search.h"
#include "base/sort.h"
#include "layout/rows.h"

enum {
	STEPS = 64,          /* of ancestors that are looked at for an anchor */
	TRIES = 64,          /* of places that are looked at for a block */
	LEAST_MOMENTS = 256, /* at which the promises of a band that are alive are counted */
	MOST_MOMENTS = 65536,
	NEAR_MOMENTS = 8,       /* are reached by steps, those further away by a division */
	FEW_TRACKS = 64,        /* have room enough in nearly all bands */
	MANY_PROMISES = 200000, /* promises are worth an OS thread */
	AHEAD = 12,
	ALL = UINT8_MAX, /* tracks of less depth are blocks */
	OUTERMOST = 1,
	LOOSE = 0
};

/* A promise that stands on its row, and has others drawn under it. */
struct placed {
	int64_t until_ns; /* the row is taken */
	uint32_t anchor;
	uint32_t turn; /* in which it was placed: each time that a group is packed is one */
};

struct pack {
	const struct weft_model *model;
	struct weft_layout *layout;
	const uint16_t *group_of;
	const struct weft__item *order;
	size_t count;
	const uint64_t *parents; /* bits by promise: others are drawn under it */
	size_t *band_begin;      /* by band: its first in `order` */
	struct placed *placed;   /* by promise whose bit is set */
	uint64_t *has_stood;
	uint32_t turn;
	uint32_t *places;       /* of a band, in `order`: by group, then by start; in place of layout->by_row */
	uint32_t *depth;        /* by track: in how many it stands */
	uint32_t *sorted;       /* tracks by band, the outermost first */
	uint32_t *own;          /* by track: how many promises belong to it */
	uint32_t *block;        /* by track: the one in whose block its promises stand, or WEFT_NONE: in none */
	uint32_t *outermost;    /* by track: which one it is in, itself if in none */
	uint32_t *items_end;    /* by track that is a block: where its items end */
	bool starts_meet;       /* two promises of a band that has tracks begin at the same time */
	bool begins_early;      /* a track of a band begins before its actor */
	atomic_bool is_in_vain; /* nobody wants what is packed */
	struct weft__rows rows;
};

/* A band that is being packed. */
struct packed {
	struct weft_band *band;
	size_t begin, end;              /* in `order` and `places` */
	const uint32_t *tracks;         /* its part of `sorted` */
	size_t track_count, loose_from; /* those from there on are in no block */
	uint64_t bound;                 /* of its rows, unless all are loose */
	bool bound_is_rough;            /* it may be higher */
	bool is_hopeless;               /* not even the outermost tracks can be blocks */
	unsigned level;
};

struct span {
	int64_t start_ns, end_ns;
};

static struct span span_of_actor(const struct pack *p, uint32_t promise)
{
	return (struct span){p->model->promises[promise].start_ns, weft_layout_end(p->layout, p->model, promise)};
}

static struct span alone(const struct weft__item *item)
{
	return (struct span){item->start_ns, item->end_ns};
}

/* How long a row is taken, which for an actor is as long as its track. */
static struct span span_of(const struct pack *p, const struct weft__item *item)
{
	const struct weft_track *track = weft_layout_track(p->layout, item->promise);
	return track ? (struct span){track->start_ns, track->end_ns} : alone(item);
}

static uint16_t stream_at(const struct pack *p, size_t i)
{
	return weft__band_key(p->model, p->group_of, p->order[i].promise);
}

static bool list_bands(struct pack *p)
{
	struct weft_layout *l = p->layout;
	WEFT_VEC(struct weft_band) bands = {0};
	WEFT_VEC(size_t) begins = {0};
	bool done = weft_vec_reserve(&begins, 1) && weft_vec_reserve(&bands, 1);
	for (size_t i = 0; i < p->count && done;) {
		size_t *begin = weft_vec_push(&begins);
		struct weft_band *band = weft_vec_push(&bands);
		if (begin && band) {
			*begin = i;
			*band = (struct weft_band){.stream = stream_at(p, i)};
			i = stream_at(p, p->count - 1) == band->stream
				? p->count
				: WEFT_FIRST(k, i, p->count, stream_at(p, k) > band->stream);
		}
		done = begin && band && weft_vec_reserve(&begins, 1);
	}
	if (done)
		begins.items[begins.count] = p->count;
	l->bands = bands.items;
	l->band_count = bands.count;
	p->band_begin = begins.items;
	return done;
}

static size_t band_of(const struct weft_layout *l, uint16_t stream)
{
	return WEFT_FIRST(i, 0, l->band_count, l->bands[i].stream >= stream);
}

static size_t band_of_track(const struct pack *p, uint32_t track)
{
	const struct weft_layout *l = p->layout;
	return l->band_count == 1 ? 0 : band_of(l, p->model->promises[l->tracks[track].actor].stream);
}

/* By band, then by depth. */
static size_t place_of(const struct pack *p, uint32_t track, uint32_t deepest)
{
	return band_of_track(p, track) * ((size_t)deepest + 1) + p->depth[track];
}

/* How deep tracks are nested, and so in which order they are packed. */
static bool sort_tracks(struct pack *p)
{
	const struct weft_track *tracks = p->layout->tracks;
	const size_t n = p->layout->track_count;
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
	}
	uint32_t *next = calloc(p->layout->band_count * ((size_t)deepest + 1) + 1, sizeof *next);
	if (!next)
		return false;
	for (uint32_t t = 0; t < n; t++)
		next[place_of(p, t, deepest) + 1]++;
	for (size_t i = 0; i < p->layout->band_count * ((size_t)deepest + 1); i++)
		next[i + 1] += next[i];
	for (uint32_t t = 0; t < n; t++)
		p->sorted[next[place_of(p, t, deepest)]++] = t;
	free(next);
	return true;
}

/* ---- How high a band may be ---- */

/* Moments are `step` apart, so many that a busier one between them hardly differs. */
struct moments {
	uint64_t step;
	size_t count;
};

/* The numbers of moments in a span are those from `first` on, before `end`. */
struct moments_in {
	uint32_t first, end;
};

static struct moments moments_of(const struct pack *p, const struct packed *b)
{
	size_t n = b->end - b->begin;
	size_t count = n < LEAST_MOMENTS / 4 ? LEAST_MOMENTS : n < MOST_MOMENTS / 4 ? 4 * n : MOST_MOMENTS;
	return (struct moments){(uint64_t)p->model->end_ns / count + 1, count};
}

/* The first at or after a time, which is none before `from`. */
static inline size_t moment_at(const struct moments *m, size_t from, int64_t time_ns)
{
	const uint64_t time = time_ns <= 0 ? 0 : (uint64_t)time_ns;
	uint64_t at = from * m->step;
	for (size_t k = from; k < from + NEAR_MOMENTS; k++, at += m->step)
		if (k >= m->count || at >= time)
			return k;
	size_t k = (size_t)(time / m->step + (time % m->step != 0));
	return k < m->count ? k : m->count;
}

static inline struct moments_in moments_in(const struct moments *m, size_t from, struct span span)
{
	size_t first = moment_at(m, from, span.start_ns);
	return (struct moments_in){(uint32_t)first, (uint32_t)moment_at(m, first, span.end_ns)};
}

/* What a band may have at a moment at which so many promises and tracks are alive. */
static uint64_t bound_at(uint64_t promises, uint64_t tracks)
{
	return promises + promises / 2 + tracks;
}

static void stretch(struct weft_track *track, struct span span)
{
	track->start_ns = span.start_ns < track->start_ns ? span.start_ns : track->start_ns;
	track->end_ns = span.end_ns > track->end_ns ? span.end_ns : track->end_ns;
}

/* The times of the tracks of a band, and how much belongs to each.  The bound at the moment in the middle, which is enough for
 * most bands. */
static void measure(struct pack *p, struct packed *b)
{
	struct weft_track *tracks = p->layout->tracks;
	const struct moments m = moments_of(p, b);
	const int64_t middle_ns = (int64_t)(m.count / 2 * m.step);
	int64_t latest_ns = INT64_MIN;
	uint64_t promises = 0, tracks_then = 0;
	p->begins_early = false;
	for (size_t i = 0; i < b->track_count; i++) {
		struct span span = span_of_actor(p, tracks[b->tracks[i]].actor);
		tracks[b->tracks[i]].start_ns = span.start_ns;
		tracks[b->tracks[i]].end_ns = span.end_ns;
		p->own[b->tracks[i]] = 0;
	}
	for (size_t i = b->begin; i < b->end; i++) {
		uint32_t track = p->layout->track_of[p->order[i].promise];
		const struct span span = alone(&p->order[i]);
		p->starts_meet |= span.start_ns == latest_ns;
		latest_ns = span.start_ns;
		promises += span.start_ns <= middle_ns && span.end_ns > middle_ns;
		if (track != WEFT_NONE) {
			stretch(&tracks[track], span);
			p->own[track]++;
		}
	}
	for (size_t i = b->track_count; i-- > 0;) {
		const struct weft_track *track = &tracks[b->tracks[i]];
		if (track->around != WEFT_NONE)
			stretch(&tracks[track->around], (struct span){track->start_ns, track->end_ns});
		p->begins_early |= track->start_ns < p->model->promises[track->actor].start_ns;
		tracks_then += track->start_ns <= middle_ns && track->end_ns > middle_ns;
	}
	b->bound = bound_at(promises, tracks_then);
	b->bound = b->bound > 1 ? b->bound : 1;
	b->bound_is_rough = true;
}

/* At each moment: how many more promises and tracks are alive than at the one before, and how many more rows are taken at least
 * where outermost tracks are blocks. */
struct change {
	int32_t promises, tracks, rows;
};

/* Of an outermost track: how many of its promises are alive, and were at once: so many rows its block takes at least. */
struct crowd {
	uint32_t alive, most;
};

/* Of a promise: when it is alive, and its outermost track; WEFT_NONE: it has none, or is alive at no moment. */
struct counted {
	struct moments_in in;
	uint32_t track;
};

/* What is counted by the moments of a band. */
struct counts {
	struct moments m;
	struct change *changes; /* by moment */
	struct crowd *crowds;   /* by track */
	struct counted *items;  /* by promise of the band */
	uint32_t *gone;         /* outermost tracks, once for each of their promises, by the moment at which that is gone */
	uint32_t *gone_begin;   /* by moment */
};

static bool allocate_counts(struct counts *c, const struct pack *p, const struct packed *b)
{
	const size_t n = b->end - b->begin;
	c->m = moments_of(p, b);
	c->changes = calloc(c->m.count + 1, sizeof *c->changes);
	c->crowds = calloc(p->layout->track_count, sizeof *c->crowds);
	c->items = weft_large_alloc(n, sizeof *c->items);
	c->gone = weft_large_alloc(n, sizeof *c->gone);
	c->gone_begin = calloc(c->m.count + 3, sizeof *c->gone_begin);
	return c->changes && c->crowds && c->items && c->gone && c->gone_begin;
}

static void free_counts(struct counts *c)
{
	free(c->changes);
	free(c->crowds);
	free(c->items);
	free(c->gone);
	free(c->gone_begin);
}

/* Those that are in a track and alive at any moment leave it at another. */
static void count_crowds(struct counts *c, size_t n)
{
	uint32_t *next = c->gone_begin + 1; /* where the next one of a moment goes; in the end, where the next moment's begin */
	for (size_t i = 0; i < n; i++)
		if (c->items[i].track != WEFT_NONE)
			next[c->items[i].in.end + 1]++;
	for (size_t k = 0; k <= c->m.count; k++)
		next[k + 1] += next[k];
	for (size_t i = 0; i < n; i++)
		if (c->items[i].track != WEFT_NONE)
			c->gone[next[c->items[i].in.end]++] = c->items[i].track;
	for (size_t i = 0, gone = 0; i < n; i++) {
		if (c->items[i].track == WEFT_NONE)
			continue;
		while (gone < c->gone_begin[c->items[i].in.first + 1])
			c->crowds[c->gone[gone++]].alive--;
		struct crowd *crowd = &c->crowds[c->items[i].track];
		crowd->alive++;
		crowd->most = crowd->alive > crowd->most ? crowd->alive : crowd->most;
	}
}

/* The bound: that of the busiest moment.  Where even the outermost tracks cannot be blocks, all are loose at once.  False when
 * out of memory. */
static bool find_bound(struct pack *p, struct packed *b)
{
	const struct weft_layout *l = p->layout;
	struct counts c = {0};
	struct change now = {0};
	const bool done = allocate_counts(&c, p, b);
	size_t from = 0;
	for (size_t i = 0; i < b->track_count && done; i++) {
		uint32_t t = b->tracks[i], around = l->tracks[t].around;
		p->outermost[t] = around == WEFT_NONE ? t : p->outermost[around];
	}
	for (size_t i = b->begin; i < b->end && done; i++) {
		const uint32_t promise = p->order[i].promise, track = l->track_of[promise];
		const struct moments_in in = moments_in(&c.m, from, alone(&p->order[i]));
		const bool is_loose = track == WEFT_NONE && !weft_layout_track(l, promise);
		c.changes[in.first].promises++;
		c.changes[in.end].promises--;
		c.changes[in.first].rows += is_loose;
		c.changes[in.end].rows -= is_loose;
		c.items[i - b->begin] =
		    (struct counted){in, track != WEFT_NONE && in.first < in.end ? p->outermost[track] : WEFT_NONE};
		from = in.first; /* no later one begins before */
	}
	if (done)
		count_crowds(&c, b->end - b->begin);
	for (size_t i = 0; i < b->track_count && done; i++) {
		const struct weft_track *track = &l->tracks[b->tracks[i]];
		const struct moments_in in = moments_in(&c.m, 0, (struct span){track->start_ns, track->end_ns});
		int32_t height = track->around == WEFT_NONE ? 1 + (int32_t)c.crowds[b->tracks[i]].most : 0;
		c.changes[in.first].tracks++;
		c.changes[in.end].tracks--;
		c.changes[in.first].rows += height;
		c.changes[in.end].rows -= height;
	}
	uint64_t most = 0;
	for (size_t k = 0; k < c.m.count && done; k++) {
		now.promises += c.changes[k].promises;
		now.tracks += c.changes[k].tracks;
		now.rows += c.changes[k].rows;
		uint64_t here = bound_at((uint64_t)now.promises, (uint64_t)now.tracks);
		b->bound = here > b->bound ? here : b->bound;
		most = (uint64_t)now.rows > most ? (uint64_t)now.rows : most;
	}
	free_counts(&c);
	b->bound_is_rough = false;
	b->is_hopeless = most > b->bound;
	return done;
}

/* ---- Packing ---- */

static uint32_t group_of(const struct pack *p, uint32_t promise)
{
	uint32_t track = p->layout->track_of[promise];
	return track == WEFT_NONE ? WEFT_NONE : p->block[track];
}

/* Whether a band's promises are packed in the order in which they begin, without `places`. */
static bool is_in_order(const struct pack *p, const struct packed *b)
{
	return b->track_count == 0 || (b->level == LOOSE && !p->begins_early);
}

/* Puts a band's promises in the order of its groups. */
static void sort_into_groups(struct pack *p, struct packed *b)
{
	size_t next = b->begin;
	for (size_t i = 0; i < b->track_count; i++) {
		uint32_t t = b->tracks[i], around = p->layout->tracks[t].around;
		p->block[t] = p->depth[t] < b->level ? t : around == WEFT_NONE ? WEFT_NONE : p->block[around];
		p->items_end[t] = 0;
	}
	if (is_in_order(p, b))
		return;
	for (size_t i = 0; i < b->track_count; i++)
		if (p->block[b->tracks[i]] != WEFT_NONE)
			p->items_end[p->block[b->tracks[i]]] += p->own[b->tracks[i]];
	for (size_t i = 0; i < b->track_count; i++) {
		uint32_t t = b->tracks[i], count = p->items_end[t];
		p->items_end[t] = (uint32_t)next; /* where the next one goes; in the end, where they end */
		next += count;
	}
	b->loose_from = next;
	for (size_t i = b->begin; i < b->end; i++) {
		uint32_t group = group_of(p, p->order[i].promise);
		p->places[group == WEFT_NONE ? next++ : p->items_end[group]++] = (uint32_t)i;
	}
}

/* In the group that is packed. */
static bool has_place(const struct pack *p, uint32_t promise)
{
	return p->has_stood[promise / 64] >> promise % 64 & 1 && p->placed[promise].turn == p->turn;
}

/* Who stands above a promise as long as it lives, in the same group; its parent is `above`. */
static uint32_t anchor_of(const struct pack *p, uint32_t above, int64_t end_ns)
{
	for (int i = 0; i < STEPS && above != WEFT_NONE && has_place(p, above); i++) {
		if (p->placed[above].until_ns >= end_ns)
			return above;
		above = p->placed[above].anchor;
	}
	return WEFT_NONE;
}

/* Of a promise that is the actor of a block, the block's; it is set by then. */
static uint32_t height_of(const struct pack *p, uint32_t promise)
{
	const struct weft_track *track = weft_layout_track(p->layout, promise);
	return track && track->row_count > 0 ? track->row_count : 1;
}

/* Finds rows for a promise or, if it is the actor of one, for its block. */
static bool place(struct pack *p, bool has_blocks, const struct weft__item *item)
{
	const uint32_t promise = item->promise;
	const struct span span = span_of(p, item);
	uint32_t height = has_blocks ? height_of(p, promise) : 1, from = 0, row = UINT32_MAX;
	uint32_t anchor = anchor_of(p, item->parent, span.end_ns);
	if (p->parents[promise / 64] >> promise % 64 & 1) {
		p->placed[promise] = (struct placed){span.end_ns, anchor, p->turn};
		p->has_stood[promise / 64] |= 1ull << promise % 64;
	}
	if (anchor != WEFT_NONE)
		from = p->layout->rows[anchor] + (has_blocks ? height_of(p, anchor) : 1);
	if (from > 0)
		row = weft__rows_first_of(&p->rows, from, height, span.start_ns, TRIES);
	if (row == UINT32_MAX)
		row = weft__rows_first_of(&p->rows, 0, height, span.start_ns, TRIES);
	if (row == UINT32_MAX)
		row = weft__rows_count(&p->rows);
	p->layout->rows[promise] = row;
	for (uint32_t i = 0; i < height; i++)
		if (!weft__rows_take(&p->rows, row + i, span.end_ns))
			return false;
	return true;
}

/* 1; 0: the rows are more than the band may have, or in vain; WEFT_ENOMEM. */
static int fits(struct pack *p, struct packed *b)
{
	if (b->level == LOOSE)
		return !atomic_load_explicit(&p->is_in_vain, memory_order_relaxed);
	if (weft__rows_count(&p->rows) <= b->bound)
		return 1;
	if (b->bound_is_rough && !find_bound(p, b))
		return WEFT_ENOMEM;
	return weft__rows_count(&p->rows) <= b->bound;
}

/* As fits(), and sets how many rows the group takes. */
static int pack_group(struct pack *p, struct packed *b, uint32_t group, size_t begin, size_t end, uint32_t *row_count)
{
	const uint32_t *places = is_in_order(p, b) ? NULL : p->places;
	int status;
	p->turn++;
	weft__rows_clear(&p->rows);
	if (group != WEFT_NONE && !weft__rows_take(&p->rows, 0, INT64_MAX)) /* the actor's */
		return WEFT_ENOMEM;
	for (size_t i = begin; i < end; i++) {
		/* Those of a group lie apart, and are many more than what is near the processor. */
		if (places)
			__builtin_prefetch(&p->order[places[i + AHEAD < end ? i + AHEAD : i]]);
		if (!place(p, b->level != LOOSE, &p->order[places ? places[i] : i]))
			return WEFT_ENOMEM;
		if ((status = fits(p, b)) <= 0)
			return status;
	}
	*row_count = weft__rows_count(&p->rows);
	return 1;
}

struct begin {
	int64_t start_ns;
	uint32_t rank, place;
};

static int compare_begins(const void *a, const void *b)
{
	const struct begin *x = a, *y = b;
	return WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->rank, y->rank);
}

/* Puts items in the order in which rows are taken, that of their tracks' starts: else the rows would be more than are ever taken
 * at once.  False when out of memory. */
static bool sort_by_tracks(struct pack *p, size_t begin, size_t end)
{
	struct begin *begins = malloc((end - begin + 1) * sizeof *begins);
	for (size_t i = begin; begins && i < end; i++)
		begins[i - begin] = (struct begin){span_of(p, &p->order[p->places[i]]).start_ns, (uint32_t)i, p->places[i]};
	if (begins)
		weft_sort(begins, end - begin, sizeof *begins, compare_begins);
	for (size_t i = begin; begins && i < end; i++)
		p->places[i] = begins[i - begin].place;
	free(begins);
	return begins;
}

/* As pack_group(), of all groups of a band.  Rows are those in a group. */
static int pack_groups(struct pack *p, struct packed *b)
{
	struct weft_track *tracks = p->layout->tracks;
	int status = 1;
	for (size_t i = 0; i < b->track_count; i++)
		tracks[b->tracks[i]].row_count = 0;
	b->loose_from = b->begin;
	if (b->track_count > 0)
		sort_into_groups(p, b);
	if (b->level == LOOSE && b->track_count > 0 && p->begins_early && !sort_by_tracks(p, b->begin, b->end))
		return WEFT_ENOMEM;
	for (size_t i = b->track_count; i-- > 0 && status > 0;) {
		uint32_t t = b->tracks[i];
		if (p->block[t] == t)
			status = pack_group(
			    p, b, t, i > 0 ? p->items_end[b->tracks[i - 1]] : b->begin, p->items_end[t], &tracks[t].row_count);
	}
	return status > 0 ? pack_group(p, b, WEFT_NONE, b->loose_from, b->end, &b->band->row_count) : status;
}

/* A band whose promises are packed loose while nobody knows yet whether they have to be. */
struct guess {
	struct pack *pack;
	struct packed band;
	int status;
};

static void pack_guess(void *ctx)
{
	struct guess *guess = ctx;
	if (!guess->pack->is_in_vain)
		guess->status = pack_groups(guess->pack, &guess->band);
}

/* Finds the bound; if the promises have to be loose, they are packed at once.  Otherwise as pack_groups(). */
static int pack_large(struct pack *p, struct packed *b)
{
	struct guess guess = {p, *b, 0};
	struct weft_meanwhile meanwhile = {.work = pack_guess, .ctx = &guess};
	guess.band.level = LOOSE;
	if (b->end - b->begin >= MANY_PROMISES)
		weft_meanwhile_begin(&meanwhile);
	const bool done = find_bound(p, b);
	p->is_in_vain = !done || !b->is_hopeless;
	weft_meanwhile_end(&meanwhile);
	p->is_in_vain = false;
	if (!done)
		return WEFT_ENOMEM;
	if (b->is_hopeless)
		b->level = LOOSE;
	return b->is_hopeless ? guess.status : pack_groups(p, b);
}

static bool pack_band(struct pack *p, struct packed *b)
{
	int status;
	b->level = b->track_count > 0 ? ALL : LOOSE;
	if (b->track_count > 0)
		measure(p, b);
	status = b->track_count > FEW_TRACKS ? pack_large(p, b) : pack_groups(p, b);
	for (; status == 0; status = pack_groups(p, b))
		b->level = b->level == ALL && !b->is_hopeless ? OUTERMOST : LOOSE;
	return status > 0;
}

static bool pack_bands(struct pack *p)
{
	struct weft_layout *l = p->layout;
	const uint32_t *tracks = p->sorted;
	for (size_t i = 0; i < l->band_count; i++) {
		struct packed b = {
		    .band = &l->bands[i], .begin = p->band_begin[i], .end = p->band_begin[i + 1], .tracks = tracks};
		while (tracks < p->sorted + l->track_count && band_of_track(p, *tracks) == i)
			tracks++;
		b.track_count = (size_t)(tracks - b.tracks);
		if (!pack_band(p, &b))
			return false;
	}
	return true;
}

/* The first row of a group that is a block, or of the others in a band. */
static uint32_t first_row_of(const struct pack *p, const struct weft_band *band, uint32_t promise)
{
	uint32_t group = group_of(p, promise);
	return group == WEFT_NONE ? band->first_row : p->layout->tracks[group].first_row;
}

/* From rows in a group to rows of the picture; counts how many promises each of these has, in `counts`. */
static void stand(struct pack *p, uint32_t *counts)
{
	struct weft_layout *l = p->layout;
	for (size_t i = 0; i < l->track_count; i++) {
		struct weft_track *track = &l->tracks[p->sorted[i]];
		const struct weft_band *band = &l->bands[band_of_track(p, p->sorted[i])];
		track->first_row = first_row_of(p, band, track->actor) + l->rows[track->actor];
	}
	for (size_t b = 0; b < l->band_count; b++)
		for (size_t i = p->band_begin[b]; i < p->band_begin[b + 1]; i++) {
			uint32_t promise = p->order[i].promise;
			l->rows[promise] += l->track_count > 0 ? first_row_of(p, &l->bands[b], promise) : l->bands[b].first_row;
			counts[l->rows[promise]]++;
		}
}

/* One of no length at the start of another stands before it.  Only where a row is that of several groups can it come behind it.
 */
static void put_behind_points(struct pack *p, uint32_t promise)
{
	struct weft_layout *l = p->layout;
	const struct weft_promise *promises = p->model->promises;
	const int64_t start_ns = promises[promise].start_ns;
	uint32_t end = l->row_begin[l->rows[promise] + 1];
	uint32_t at = WEFT_FIRST(i, l->row_begin[l->rows[promise]], end, promises[l->by_row[i]].start_ns >= start_ns);
	while (l->by_row[at] != promise)
		at++;
	for (; at + 1 < end && promises[l->by_row[at + 1]].start_ns == start_ns; at++) {
		l->by_row[at] = l->by_row[at + 1];
		l->by_row[at + 1] = promise;
	}
}

static bool list_rows(struct pack *p)
{
	struct weft_layout *l = p->layout;
	for (size_t b = 0; b < l->band_count; b++) {
		l->bands[b].first_row = l->row_count;
		l->row_count += l->bands[b].row_count;
	}
	l->row_begin = calloc((size_t)l->row_count + 2, sizeof *l->row_begin);
	if (!l->row_begin)
		return false;
	uint32_t *next = l->row_begin + 1; /* where the next of a row goes; in the end, where the next row begins */
	stand(p, next + 1);
	for (uint32_t r = 0; r < l->row_count; r++)
		next[r + 1] += next[r];
	for (size_t i = 0; i < p->count; i++)
		l->by_row[next[l->rows[p->order[i].promise]]++] = p->order[i].promise;
	/* On a row only one that begins at a time has a length, so all that it passes is passed once. */
	for (size_t i = 1; i < p->count && p->starts_meet; i++) {
		const struct span span = alone(&p->order[i - 1]);
		if (span.start_ns == p->order[i].start_ns && span.end_ns > span.start_ns)
			put_behind_points(p, p->order[i - 1].promise);
	}
	return true;
}

bool weft__rows_pack(struct weft_layout *layout, const struct weft_model *model, const uint16_t *group_of,
    const struct weft__item *order, size_t count, const uint64_t *parents)
{
	const size_t tracks = layout->track_count + 1;
	struct pack p = {
	    .model = model, .layout = layout, .group_of = group_of, .order = order, .count = count, .parents = parents};
	p.placed = weft_large_alloc(model->promise_count + 1, sizeof *p.placed);
	p.has_stood = calloc(model->promise_count / 64 + 1, sizeof *p.has_stood);
	uint32_t *by_track = malloc(6 * tracks * sizeof *by_track);
	p.places = layout->by_row = weft_large_alloc(count ? count : 1, sizeof *layout->by_row);
	bool done = p.placed && p.has_stood && by_track && layout->by_row && list_bands(&p);
	if (done) {
		p.depth = by_track;
		p.sorted = by_track + tracks;
		p.own = by_track + 2 * tracks;
		p.block = by_track + 3 * tracks;
		p.items_end = by_track + 4 * tracks;
		p.outermost = by_track + 5 * tracks;
		done = sort_tracks(&p) && pack_bands(&p) && list_rows(&p);
	}
	free(p.placed);
	free(p.has_stood);
	free(by_track);
	free(p.band_begin);
	weft__rows_finish(&p.rows);
	return done;
}
