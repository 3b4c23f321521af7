/* layout.h: which row each promise is drawn on.
 *
 * A promise belongs to its nearest actor: a connection, a request, an OS thread.  The promises of an actor are its track, which
 * is a block of rows in time; tracks nest.  The rules, which a property test holds on random traces:
 *   - no two promises overlap in time on one row (touching ends do not overlap), but for those of one fold;
 *   - the rows of a track are its own while it lasts: its actor's line is the first of them, and stays free when the actor has
 * ended;
 *   - a promise that ends before the one under which it is drawn stands below that one if there is room, and near it;
 *   - the promises of one stream form a band: its rows are contiguous, and bands stand in the order of streams; or those of one
 *     group, as enum weft_rows_by says, in the order of their first promises;
 *   - a band has at most 1.5 times as many rows as promises were alive at once, and one for each track that was alive then. Where
 *     blocks would take more, only the outermost tracks are blocks; where even these take more, none is.
 * Near-linear in the number of promises; no recursion on depth.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_LAYOUT_H
#define WEFT_LAYOUT_LAYOUT_H

#include "model/model.h"

/* What rows stand together by.  By all but OS threads there are no tracks, since what belongs to an actor is of many kinds. */
enum weft_rows_by {
	WEFT_ROWS_BY_THREAD,
	WEFT_ROWS_BY_KIND,
	WEFT_ROWS_BY_SITE,
	WEFT_ROWS_BY_LIBRARY, /* in which their site is */
	WEFT_ROWS_BYS
};

struct weft_band {
	uint32_t first_row, row_count;
	uint16_t stream; /* or the number of its group (group.h) */
};

/* Promises that are drawn as one line, "7 signals".  All of them are of one kind that has WEFT_TRAIT_FOLDS, of one OS thread and
 * under one parent; each overlaps another in time; and none does anything between its creation and its end: none runs, fails,
 * becomes another or creates one, and no link but the one that ends it names it.  The first to begin is the leader, which stands
 * in weft_layout.by_row for all. */
struct weft_fold {
	int64_t end_ns;        /* of the last to end */
	uint32_t first, count; /* its promises: those of weft_layout.folded from `first` on, the leader before the others */
	uint32_t leader;
	bool
	    is_track; /* made by hand (view/fold.h), of all that belongs to the leader, whatever that does; it has its own name */
	bool is_group; /* made by hand, of promises of one kind, whatever these do */
};

/* What an actor does.  It is a block of rows unless it was made loose, to keep rows few: then its promises stand where there is
 * room. */
struct weft_track {
	int64_t start_ns, end_ns; /* while anything in it is alive */
	uint32_t actor;
	uint32_t around;               /* the track that this one is a part of, or WEFT_NONE */
	uint32_t first_row, row_count; /* with those of tracks in it; row_count is 0 if it is loose */
};

struct weft_layout {
	uint32_t *rows; /* by promise; WEFT_NONE: it is not drawn, as the system */
	uint32_t row_count;
	uint32_t *by_row;    /* promises ordered by row, then start; of a fold the leader only */
	uint32_t *row_begin; /* [row_count + 1]: those of row r are by_row[row_begin[r]] up to by_row[row_begin[r + 1]] */
	struct weft_band *bands;
	size_t band_count;
	enum weft_rows_by rows_by;
	bool has_rest;           /* the last group is what is left of more than could be bands */
	struct weft_fold *folds; /* by leader */
	size_t fold_count;
	uint32_t *folded;          /* promises of folds */
	uint64_t *leaders;         /* bits by promise: those that lead a fold; NULL if none does */
	struct weft_track *tracks; /* by actor */
	size_t track_count;
	uint64_t *actors;        /* bits by promise: the actors of tracks; NULL if there is no track */
	uint32_t *actors_before; /* by 64 promises: how many actors are before them */
	uint32_t *track_of;      /* by promise: the track that it belongs to; of an actor the one around its own; or WEFT_NONE */
};

/* On failure *out is untouched: WEFT_ENOMEM. */
int weft_layout_create(struct weft_layout **out, const struct weft_model *model, struct weft_error *err);

/* The same with folds that were made by hand and no others, and of some promises only.  leader_of: by promise: on whose line it
 * stands; WEFT_NONE: on its own; a leader stands on its own; NULL: what folds by itself does, or, of some promises only, nothing
 * does.  `only`: the bits of those that have rows, or NULL for all; their tracks are those of `whole`, the layout of all
 * promises, that are left; without `only`, `whole` may be NULL. */
int weft_layout_create_folded(struct weft_layout **out, const struct weft_model *model, const struct weft_layout *whole,
    const uint64_t *only, const uint32_t *leader_of, struct weft_error *err);

/* The same in groups, without tracks. */
int weft_layout_create_grouped(struct weft_layout **out, const struct weft_model *model, enum weft_rows_by by,
    const uint64_t *only, const uint32_t *leader_of, struct weft_error *err);
void weft_layout_destroy(struct weft_layout *layout);

/* The fold that a promise leads, or NULL.  Logarithmic in folds. */
const struct weft_fold *weft_layout_fold(const struct weft_layout *layout, uint32_t promise);

/* The track whose actor a promise is, or NULL. */
static inline struct weft_track *weft_layout_track(const struct weft_layout *layout, uint32_t promise)
{
	uint32_t word = promise / 64, bit = promise % 64;
	if (!layout->actors || !(layout->actors[word] >> bit & 1))
		return NULL;
	uint64_t before = layout->actors[word] & (((uint64_t)1 << bit) - 1);
	return &layout->tracks[layout->actors_before[word] + (uint32_t)__builtin_popcountll(before)];
}

/* How many bands have a header above them, which says what they are: all, or none. */
static inline size_t weft_layout_headers(const struct weft_layout *layout)
{
	return layout->band_count > 1 || layout->rows_by != WEFT_ROWS_BY_THREAD ? layout->band_count : 0;
}

/* When the line ends that begins with a promise of weft_layout.by_row: with the promise, or with the last of its fold. */
static inline int64_t weft_layout_end(const struct weft_layout *layout, const struct weft_model *model, uint32_t promise)
{
	const struct weft_promise *p = &model->promises[promise];
	if (layout->leaders && layout->leaders[promise / 64] >> promise % 64 & 1)
		return weft_layout_fold(layout, promise)->end_ns;
	return p->end_ns > p->start_ns ? p->end_ns : p->start_ns;
}

#endif
