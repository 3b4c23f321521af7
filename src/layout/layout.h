/* layout.h: assigns a row to each promise.
 *
 * A promise belongs to its nearest actor, such as a connection, a request or an OS thread.  The promises of an actor are its
 * track, which is a block of rows over a time span.  Tracks nest.  A property test checks these rules on random traces:
 *
 *   - No two promises overlap in time on one row, except those of one fold.  Touching ends do not overlap.
 *   - The rows of a track hold nothing else while the track lasts.  The actor of a track is on the track's first row, which
 *     stays free after the actor's end.
 *   - A promise that ends before the promise it is drawn under is placed below that promise and near it, if there are free rows.
 *   - The promises of one stream form a band of contiguous rows; bands are in the order of streams.  If enum weft_rows_by groups
 *     rows differently, a band holds one group, and bands are in the order of their first promises.
 *   - A band has at most 1.5 times as many rows as promises were alive at once, plus one for each track that was alive then.
 *     If blocks would need more rows, only the outermost tracks are blocks; if these need more too, no track is a block.
 *
 * Near-linear in the number of promises; the depth of nesting needs no recursion.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_LAYOUT_H
#define WEFT_LAYOUT_LAYOUT_H

#include "model/model.h"

/* Criterion by which rows are grouped into bands.  Only bands of OS threads have tracks, because the promises of an actor differ
 * in kind. */
enum weft_rows_by {
	WEFT_ROWS_BY_THREAD,
	WEFT_ROWS_BY_KIND,
	WEFT_ROWS_BY_SITE,
	WEFT_ROWS_BY_LIBRARY, /* library that contains the promise's call site */
	WEFT_ROWS_BYS
};

struct weft_band {
	uint32_t first_row, row_count;
	uint16_t stream; /* stream of the band, or number of the group (group.h) */
};

/* Promises that are drawn as one line, such as "7 signals".  All promises of a fold have one kind with WEFT_TRAIT_FOLDS, one OS
 * thread and one parent, and each of them overlaps another in time.  Between creation and end they do nothing: none of them
 * runs, fails, becomes another promise or creates a promise, and the only link to any of them is the link that ends it.  The
 * promise that starts first is the leader, which represents all promises of the fold in weft_layout.by_row. */
struct weft_fold {
	int64_t end_ns;        /* latest end of the fold's promises */
	uint32_t first, count; /* range of the fold's promises in weft_layout.folded, with the leader first */
	uint32_t leader;
	bool is_track; /* whether the user folded it (view/fold.h) as the whole track of the leader, with a name of its own */
	bool is_group; /* whether the user folded it as promises of one kind, including active promises */
};

/* The promises that belong to an actor.  A track is a block of rows unless it is loose; the promises of a loose track use any
 * free rows, which needs fewer rows. */
struct weft_track {
	int64_t start_ns, end_ns; /* time from the first start to the last end in the track */
	uint32_t actor;
	uint32_t around;               /* track that contains this track, or WEFT_NONE */
	uint32_t first_row, row_count; /* rows of the track, including nested tracks; row_count is 0 if the track is loose */
};

struct weft_layout {
	uint32_t *rows; /* row of each promise; WEFT_NONE if the promise is not drawn, as the system promise */
	uint32_t row_count;
	uint32_t *by_row; /* promises ordered by row, then by start; each fold is represented by its leader */
	/* Array of row_count + 1 indices: row r has the promises from by_row[row_begin[r]] up to, not including,
	 * by_row[row_begin[r + 1]]. */
	uint32_t *row_begin;
	struct weft_band *bands;
	size_t band_count;
	enum weft_rows_by rows_by;
	bool has_rest;           /* whether the last group holds the groups beyond WEFT_MAX_GROUPS */
	struct weft_fold *folds; /* ordered by leader */
	size_t fold_count;
	uint32_t *folded;          /* promises of all folds */
	uint64_t *leaders;         /* bits by promise: leaders of folds; NULL if there are no folds */
	struct weft_track *tracks; /* ordered by actor */
	size_t track_count;
	uint64_t *actors;        /* bits by promise: actors of tracks; NULL if there are no tracks */
	uint32_t *actors_before; /* for each word of 64 promises: number of actors before it */
	/* For each promise: its track; for an actor, the track around the actor's own track; or WEFT_NONE. */
	uint32_t *track_of;
};

/* Creates the layout of a whole model.  On failure (WEFT_ENOMEM) *out is unchanged. */
int weft_layout_create(struct weft_layout **out, const struct weft_model *model, struct weft_error *err);

/* Creates a layout with the user's folds only, or of some promises only. leader_of gives for each promise the leader with which
 * it shares a line, or WEFT_NONE for a line of its own; every leader has a line of its own.  If leader_of is NULL, promises are
 * folded automatically, unless `only` is set.  `only` has the bits of the promises that get rows, or is NULL for all promises;
 * their tracks are taken from `whole`, the layout of all promises.  Without `only`, `whole` may be NULL. */
int weft_layout_create_folded(struct weft_layout **out, const struct weft_model *model, const struct weft_layout *whole,
    const uint64_t *only, const uint32_t *leader_of, struct weft_error *err);

/* Creates a layout whose rows are grouped by another criterion than threads, without tracks.  `only` and leader_of are as in
 * weft_layout_create_folded(). */
int weft_layout_create_grouped(struct weft_layout **out, const struct weft_model *model, enum weft_rows_by by,
    const uint64_t *only, const uint32_t *leader_of, struct weft_error *err);
void weft_layout_destroy(struct weft_layout *layout);

/* Returns the fold that a promise leads, or NULL.  Logarithmic in folds. */
const struct weft_fold *weft_layout_fold(const struct weft_layout *layout, uint32_t promise);

/* Returns the track of an actor, or NULL if the promise is not the actor of a track. */
static inline struct weft_track *weft_layout_track(const struct weft_layout *layout, uint32_t promise)
{
	uint32_t word = promise / 64, bit = promise % 64;
	if (!layout->actors || !(layout->actors[word] >> bit & 1))
		return NULL;
	uint64_t before = layout->actors[word] & (((uint64_t)1 << bit) - 1);
	return &layout->tracks[layout->actors_before[word] + (uint32_t)__builtin_popcountll(before)];
}

/* Returns the number of bands with a header line above them that names the band; either all bands have a header line, or
 * none. */
static inline size_t weft_layout_headers(const struct weft_layout *layout)
{
	return layout->band_count > 1 || layout->rows_by != WEFT_ROWS_BY_THREAD ? layout->band_count : 0;
}

/* Returns the end of the line of a promise in weft_layout.by_row: the end of the promise, or of its fold. */
static inline int64_t weft_layout_end(const struct weft_layout *layout, const struct weft_model *model, uint32_t promise)
{
	const struct weft_promise *p = &model->promises[promise];
	if (layout->leaders && layout->leaders[promise / 64] >> promise % 64 & 1)
		return weft_layout_fold(layout, promise)->end_ns;
	return p->end_ns > p->start_ns ? p->end_ns : p->start_ns;
}

#endif
