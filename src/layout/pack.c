/* pack.c: packs promises into rows, one band (the rows of one thread) at a time.  The innermost tracks are packed first, each on
 * rows of its own from 0 on; a packed track is then a block in the track that contains it.
 *
 * Within a track, promises are placed in the order of their starts.  Each promise takes the first free row below its anchor,
 * which is the first of its ancestors that does not end before the promise.  So the promise of a called function is drawn below
 * the promise of its caller.  A promise that outlives its creator keeps the creator's row, as do the iterations of a loop that
 * create each other.
 *
 * A group is packed together: the promises of one block, or those promises of a band that are in no block.  There may be
 * millions of promises, so the code walks over them as rarely as it can.
 * SPDX-License-Identifier: ISC */
#include "layout/pack.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/background_work.h"
#include "base/large.h"
#include "base/search.h"
#include "base/sort.h"
#include "layout/rows.h"

enum {
	STEPS = 64,        /* maximum number of ancestors that are examined for an anchor */
	TRIES = 64,        /* maximum number of positions that are examined for a block */
	MIN_MOMENTS = 256, /* minimum number of moments at which a band's living promises are counted */
	MAX_MOMENTS = 65536,
	NEAR_MOMENTS = 8,       /* distance up to which moments are found by stepping, and not by division */
	FEW_TRACKS = 64,        /* number of tracks up to which nearly all bands have enough rows */
	MANY_PROMISES = 200000, /* number of promises from which on a second OS thread pays */
	AHEAD = 12,
	ALL_BLOCKS = UINT8_MAX, /* level at which all tracks are blocks; tracks with a depth below the level are blocks */
	OUTERMOST_BLOCKS = 1,
	NO_BLOCKS = 0
};

/* A promise that has got its row, and under which other promises are drawn. */
struct placed {
	int64_t until_ns; /* end of the time for which the promise takes its row */
	uint32_t anchor;
	uint32_t pack_round; /* number of the round in which the promise was placed; packing one group is one round */
};

struct pack {
	const struct weft_model *model;
	struct weft_layout *layout;
	const uint16_t *group_of;
	const struct weft__item *order;
	size_t count;
	const uint64_t *parents; /* one bit for each promise, set if other promises are drawn under it */
	size_t *band_begin;      /* for each band: index of its first promise in `order` */
	struct placed *placed;   /* for each promise: its placement, valid if its bit in was_placed is set */
	uint64_t *was_placed;
	uint32_t pack_round;
	/* Indices in `order` of a band, by group and then by start; the array uses the memory of layout->by_row. */
	uint32_t *places;
	uint32_t *depth;          /* for each track: number of tracks around it */
	uint32_t *sorted;         /* tracks sorted by band, outermost tracks first */
	uint32_t *own;            /* for each track: number of its own promises */
	uint32_t *block;          /* for each track: the track with the block that holds its promises, or WEFT_NONE */
	uint32_t *outermost;      /* for each track: the outermost track around it, or the track itself */
	uint32_t *items_end;      /* for each track that is a block: end of its items in `places` */
	bool has_equal_starts;    /* whether two promises of a band with tracks start at the same time */
	bool begins_early;        /* whether a track of the band starts before its actor */
	atomic_bool is_cancelled; /* whether the result of the packing is no longer needed */
	struct weft__rows rows;
};

/* State of the packing of one band. */
struct packed {
	struct weft_band *band;
	size_t begin, end;              /* range of the band's promises in `order` and `places` */
	const uint32_t *tracks;         /* its range of `sorted` */
	size_t track_count, loose_from; /* number of tracks, and index from which on promises are in no block */
	uint64_t bound;                 /* maximum number of rows, unless all tracks are loose */
	bool bound_is_rough;            /* whether the exact bound may be higher than `bound` */
	bool is_hopeless;               /* whether even the outermost tracks cannot be blocks */
	unsigned level;
};

struct span {
	int64_t start_ns, end_ns;
};

static struct span span_of_actor(const struct pack *p, uint32_t promise)
{
	return (struct span){p->model->promises[promise].start_ns, weft_layout_end(p->layout, p->model, promise)};
}

static struct span span_of_item(const struct weft__item *item)
{
	return (struct span){item->start_ns, item->end_ns};
}

/* Returns the time for which a promise takes its row; for an actor, the time of its track. */
static struct span span_of(const struct pack *p, const struct weft__item *item)
{
	const struct weft_track *track = weft_layout_track(p->layout, item->promise);
	return track ? (struct span){track->start_ns, track->end_ns} : span_of_item(item);
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
				: WEFT_FIND_FIRST(k, i, p->count, stream_at(p, k) > band->stream);
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
	return WEFT_FIND_FIRST(i, 0, l->band_count, l->bands[i].stream >= stream);
}

static size_t band_of_track(const struct pack *p, uint32_t track)
{
	const struct weft_layout *l = p->layout;
	return l->band_count == 1 ? 0 : band_of(l, p->model->promises[l->tracks[track].actor].stream);
}

/* Returns the sort key of a track: by band, then by depth. */
static size_t rank_of_track(const struct pack *p, uint32_t track, uint32_t deepest)
{
	return band_of_track(p, track) * ((size_t)deepest + 1) + p->depth[track];
}

/* Sets the depths of tracks, and sorts the tracks into the order of packing. */
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
		next[rank_of_track(p, t, deepest) + 1]++;
	for (size_t i = 0; i < p->layout->band_count * ((size_t)deepest + 1); i++)
		next[i + 1] += next[i];
	for (uint32_t t = 0; t < n; t++)
		p->sorted[next[rank_of_track(p, t, deepest)]++] = t;
	free(next);
	return true;
}

/* ---- The maximum height of a band ---- */

/* Moments at a distance of `step`, so close that the maximum between two moments hardly differs. */
struct moments {
	uint64_t step;
	size_t count;
};

/* The moments in a time span, from `first` up to, not including, `end`. */
struct moments_in {
	uint32_t first, end;
};

static struct moments moments_of(const struct pack *p, const struct packed *b)
{
	size_t n = b->end - b->begin;
	size_t count = n < MIN_MOMENTS / 4 ? MIN_MOMENTS : n < MAX_MOMENTS / 4 ? 4 * n : MAX_MOMENTS;
	return (struct moments){(uint64_t)p->model->end_ns / count + 1, count};
}

/* Returns the first moment at or after a time.  The caller guarantees that this moment is not before `from`. */
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

/* Returns the maximum number of rows of a band at a moment with this many living promises and tracks. */
static uint64_t bound_at(uint64_t promises, uint64_t tracks)
{
	return promises + promises / 2 + tracks;
}

static void widen_track(struct weft_track *track, struct span span)
{
	track->start_ns = span.start_ns < track->start_ns ? span.start_ns : track->start_ns;
	track->end_ns = span.end_ns > track->end_ns ? span.end_ns : track->end_ns;
}

/* Measures the time spans of a band's tracks, and the number of promises in each track.  Computes the bound from the middle
 * moment only, which suffices for most bands. */
static void measure_tracks(struct pack *p, struct packed *b)
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
		const struct span span = span_of_item(&p->order[i]);
		p->has_equal_starts |= span.start_ns == latest_ns;
		latest_ns = span.start_ns;
		promises += span.start_ns <= middle_ns && span.end_ns > middle_ns;
		if (track != WEFT_NONE) {
			widen_track(&tracks[track], span);
			p->own[track]++;
		}
	}
	for (size_t i = b->track_count; i-- > 0;) {
		const struct weft_track *track = &tracks[b->tracks[i]];
		if (track->around != WEFT_NONE)
			widen_track(&tracks[track->around], (struct span){track->start_ns, track->end_ns});
		p->begins_early |= track->start_ns < p->model->promises[track->actor].start_ns;
		tracks_then += track->start_ns <= middle_ns && track->end_ns > middle_ns;
	}
	b->bound = bound_at(promises, tracks_then);
	b->bound = b->bound > 1 ? b->bound : 1;
	b->bound_is_rough = true;
}

/* Changes at a moment, compared with the moment before: living promises, living tracks, and the minimum of rows if the outermost
 * tracks are blocks. */
struct change {
	int32_t promises, tracks, rows;
};

/* Number of living promises of an outermost track, now and at most.  The block of that track needs at least `most` rows. */
struct crowd {
	uint32_t alive, most;
};

/* The moments at which a promise is alive, and its outermost track; WEFT_NONE if it is in no track, or alive at no moment. */
struct counted {
	struct moments_in in;
	uint32_t track;
};

/* Counters by the moments of a band. */
struct counts {
	struct moments m;
	struct change *changes; /* by moment */
	struct crowd *crowds;   /* by track */
	struct counted *items;  /* for each promise of the band: its moments and its outermost track */
	/* Outermost tracks, with one entry for each of their promises, ordered by the moment at which the promise has ended. */
	uint32_t *gone;
	uint32_t *gone_begin; /* for each moment: index of its first entry in `gone` */
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

/* Finds the largest number of promises alive at once in each outermost track.  A promise that is alive at some moment has ended
 * at a later moment. */
static void count_crowds(struct counts *c, size_t n)
{
	uint32_t *next = c->gone_begin + 1; /* for each moment: next index to fill; in the end, the start of the next moment */
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

/* Sets the exact bound, which is that of the busiest moment, and whether even the outermost tracks cannot be blocks.  Returns
 * false without memory. */
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
		const struct moments_in in = moments_in(&c.m, from, span_of_item(&p->order[i]));
		const bool is_loose = track == WEFT_NONE && !weft_layout_track(l, promise);
		c.changes[in.first].promises++;
		c.changes[in.end].promises--;
		c.changes[in.first].rows += is_loose;
		c.changes[in.end].rows -= is_loose;
		c.items[i - b->begin] =
		    (struct counted){in, track != WEFT_NONE && in.first < in.end ? p->outermost[track] : WEFT_NONE};
		from = in.first; /* no later promise starts before this moment, so counting can start here */
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

/* Returns whether the band is packed in the order of starts, without `places`. */
static bool is_in_order(const struct pack *p, const struct packed *b)
{
	return b->track_count == 0 || (b->level == NO_BLOCKS && !p->begins_early);
}

/* Sorts a band's promises by group. */
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
		p->items_end[t] = (uint32_t)next; /* next index to fill; in the end, the end of the group's items */
		next += count;
	}
	b->loose_from = next;
	for (size_t i = b->begin; i < b->end; i++) {
		uint32_t group = group_of(p, p->order[i].promise);
		p->places[group == WEFT_NONE ? next++ : p->items_end[group]++] = (uint32_t)i;
	}
}

/* Returns whether a promise is placed in the group that is being packed. */
static bool is_placed(const struct pack *p, uint32_t promise)
{
	return p->was_placed[promise / 64] >> promise % 64 & 1 && p->placed[promise].pack_round == p->pack_round;
}

/* Returns the nearest ancestor of the same group that takes its row at least until end_ns; `above` is the promise's parent. */
static uint32_t anchor_of(const struct pack *p, uint32_t above, int64_t end_ns)
{
	for (int i = 0; i < STEPS && above != WEFT_NONE && is_placed(p, above); i++) {
		if (p->placed[above].until_ns >= end_ns)
			return above;
		above = p->placed[above].anchor;
	}
	return WEFT_NONE;
}

/* Returns the number of rows of a promise: 1, or that of its block if it is the actor of a block.  If the promise is the actor
 * of a block, the block must already be packed. */
static uint32_t height_of(const struct pack *p, uint32_t promise)
{
	const struct weft_track *track = weft_layout_track(p->layout, promise);
	return track && track->row_count > 0 ? track->row_count : 1;
}

/* Finds rows for a promise or, if the promise is the actor of a block, for the block. */
static bool place_item(struct pack *p, bool has_blocks, const struct weft__item *item)
{
	const uint32_t promise = item->promise;
	const struct span span = span_of(p, item);
	uint32_t height = has_blocks ? height_of(p, promise) : 1, from = 0, row = UINT32_MAX;
	uint32_t anchor = anchor_of(p, item->parent, span.end_ns);
	if (p->parents[promise / 64] >> promise % 64 & 1) {
		p->placed[promise] = (struct placed){span.end_ns, anchor, p->pack_round};
		p->was_placed[promise / 64] |= 1ull << promise % 64;
	}
	if (anchor != WEFT_NONE)
		from = p->layout->rows[anchor] + (has_blocks ? height_of(p, anchor) : 1);
	if (from > 0)
		row = weft__rows_find_free_block(&p->rows, from, height, span.start_ns, TRIES);
	if (row == UINT32_MAX)
		row = weft__rows_find_free_block(&p->rows, 0, height, span.start_ns, TRIES);
	if (row == UINT32_MAX)
		row = weft__rows_count(&p->rows);
	p->layout->rows[promise] = row;
	for (uint32_t i = 0; i < height; i++)
		if (!weft__rows_occupy(&p->rows, row + i, span.end_ns))
			return false;
	return true;
}

/* Returns 1 if packing may continue, 0 if the rows exceed the bound or packing was cancelled, or WEFT_ENOMEM. */
static int fits_bound(struct pack *p, struct packed *b)
{
	if (b->level == NO_BLOCKS)
		return !atomic_load_explicit(&p->is_cancelled, memory_order_relaxed);
	if (weft__rows_count(&p->rows) <= b->bound)
		return 1;
	if (b->bound_is_rough && !find_bound(p, b))
		return WEFT_ENOMEM;
	return weft__rows_count(&p->rows) <= b->bound;
}

/* Packs one group and sets the group's number of rows.  Returns 1, 0 or WEFT_ENOMEM, like fits_bound(). */
static int pack_group(struct pack *p, struct packed *b, uint32_t group, size_t begin, size_t end, uint32_t *row_count)
{
	const uint32_t *places = is_in_order(p, b) ? NULL : p->places;
	int status;
	p->pack_round++;
	weft__rows_clear(&p->rows);
	if (group != WEFT_NONE && !weft__rows_occupy(&p->rows, 0, INT64_MAX)) /* the actor's row */
		return WEFT_ENOMEM;
	for (size_t i = begin; i < end; i++) {
		/* The items of a group are scattered in memory that is larger than the CPU's cache, so later items are
		 * prefetched. */
		if (places)
			__builtin_prefetch(&p->order[places[i + AHEAD < end ? i + AHEAD : i]]);
		if (!place_item(p, b->level != NO_BLOCKS, &p->order[places ? places[i] : i]))
			return WEFT_ENOMEM;
		if ((status = fits_bound(p, b)) <= 0)
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

/* Sorts items by the starts of their tracks, which is the order in which they take rows.  With any other order, more rows would
 * be used than are taken at once.  Returns false without memory. */
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

/* Packs all groups of a band.  The rows that it sets are relative to the group.  Returns 1, 0 or WEFT_ENOMEM, like
 * fits_bound(). */
static int pack_groups(struct pack *p, struct packed *b)
{
	struct weft_track *tracks = p->layout->tracks;
	int status = 1;
	for (size_t i = 0; i < b->track_count; i++)
		tracks[b->tracks[i]].row_count = 0;
	b->loose_from = b->begin;
	if (b->track_count > 0)
		sort_into_groups(p, b);
	if (b->level == NO_BLOCKS && b->track_count > 0 && p->begins_early && !sort_by_tracks(p, b->begin, b->end))
		return WEFT_ENOMEM;
	for (size_t i = b->track_count; i-- > 0 && status > 0;) {
		uint32_t t = b->tracks[i];
		if (p->block[t] == t)
			status = pack_group(
			    p, b, t, i > 0 ? p->items_end[b->tracks[i - 1]] : b->begin, p->items_end[t], &tracks[t].row_count);
	}
	return status > 0 ? pack_group(p, b, WEFT_NONE, b->loose_from, b->end, &b->band->row_count) : status;
}

/* A packing of a band without blocks, which is started before the band is known to need it. */
struct guess {
	struct pack *pack;
	struct packed band;
	int status;
};

static void pack_guess(void *ctx)
{
	struct guess *guess = ctx;
	if (!guess->pack->is_cancelled)
		guess->status = pack_groups(guess->pack, &guess->band);
}

/* Finds the bound of a large band, and then packs the band.  Meanwhile another OS thread packs the band without blocks, in case
 * that is needed.  Returns 1, 0 or WEFT_ENOMEM, like fits_bound(). */
static int pack_large(struct pack *p, struct packed *b)
{
	struct guess guess = {p, *b, 0};
	struct weft_background_work meanwhile = {.work = pack_guess, .ctx = &guess};
	guess.band.level = NO_BLOCKS;
	if (b->end - b->begin >= MANY_PROMISES)
		weft_background_work_start(&meanwhile);
	const bool done = find_bound(p, b);
	p->is_cancelled = !done || !b->is_hopeless;
	weft_background_work_finish(&meanwhile);
	p->is_cancelled = false;
	if (!done)
		return WEFT_ENOMEM;
	if (b->is_hopeless)
		b->level = NO_BLOCKS;
	return b->is_hopeless ? guess.status : pack_groups(p, b);
}

static bool pack_band(struct pack *p, struct packed *b)
{
	int status;
	b->level = b->track_count > 0 ? ALL_BLOCKS : NO_BLOCKS;
	if (b->track_count > 0)
		measure_tracks(p, b);
	status = b->track_count > FEW_TRACKS ? pack_large(p, b) : pack_groups(p, b);
	for (; status == 0; status = pack_groups(p, b))
		b->level = b->level == ALL_BLOCKS && !b->is_hopeless ? OUTERMOST_BLOCKS : NO_BLOCKS;
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

/* Returns the first row of the block that contains a promise or, if it is in no block, of its band. */
static uint32_t first_row_of(const struct pack *p, const struct weft_band *band, uint32_t promise)
{
	uint32_t group = group_of(p, promise);
	return group == WEFT_NONE ? band->first_row : p->layout->tracks[group].first_row;
}

/* Converts rows within a group to rows of the layout, and counts the promises of each row in `counts`. */
static void move_to_final_rows(struct pack *p, uint32_t *counts)
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

/* Moves a promise behind promises of zero length that start at the same time on its row.  The order can be wrong only on rows
 * that several groups share. */
static void put_behind_points(struct pack *p, uint32_t promise)
{
	struct weft_layout *l = p->layout;
	const struct weft_promise *promises = p->model->promises;
	const int64_t start_ns = promises[promise].start_ns;
	uint32_t end = l->row_begin[l->rows[promise] + 1];
	uint32_t at = WEFT_FIND_FIRST(i, l->row_begin[l->rows[promise]], end, promises[l->by_row[i]].start_ns >= start_ns);
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
	uint32_t *next = l->row_begin + 1; /* for each row: next index to fill; in the end, the start of the next row */
	move_to_final_rows(p, next + 1);
	for (uint32_t r = 0; r < l->row_count; r++)
		next[r + 1] += next[r];
	for (size_t i = 0; i < p->count; i++)
		l->by_row[next[l->rows[p->order[i].promise]]++] = p->order[i].promise;
	/* Only one of the promises that start at the same time on a row has a length, so each of the others is passed once. */
	for (size_t i = 1; i < p->count && p->has_equal_starts; i++) {
		const struct span span = span_of_item(&p->order[i - 1]);
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
	p.was_placed = calloc(model->promise_count / 64 + 1, sizeof *p.was_placed);
	uint32_t *by_track = malloc(6 * tracks * sizeof *by_track);
	p.places = layout->by_row = weft_large_alloc(count ? count : 1, sizeof *layout->by_row);
	bool done = p.placed && p.was_placed && by_track && layout->by_row && list_bands(&p);
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
	free(p.was_placed);
	free(by_track);
	free(p.band_begin);
	weft__rows_finish(&p.rows);
	return done;
}
