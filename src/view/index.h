/* index.h: what a view knows beforehand, so that looking at a part of a trace costs what is seen, not what there is.
 * Private to view/ and draw/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_INDEX_H
#define WEFT_VIEW_INDEX_H

#include "view/slices.h"
#include "view/sums.h"
#include "view/view.h"

/* Intervals in time order that do not overlap, with sums of their lengths. */
struct weft_intervals {
	const int64_t *start, *end; /* an item apart by `stride` times 8 bytes */
	size_t stride;
	const uint64_t *busy; /* [i]: ns that the intervals before i cover */
	size_t count;
};

/* Some promises that stand next to each other in weft_layout.by_row: 16 of them, or 4 smaller boxes. */
struct weft_box {
	int64_t start_ns, end_ns; /* of the first and of the last to end */
	int64_t last_start_ns, first_end_ns;
	uint64_t alive_ns, run_ns;
	uint32_t first_row, last_row;
	bool important; /* one of them failed or never resolved */
};

#define WEFT__BOX_PROMISES 16u
#define WEFT__BOX_FAN 4u
#define WEFT__BOX_LEVELS 15

/* How many promises a box of a level has; the last one may have fewer. */
#define WEFT__BOX_SIZE(level) ((size_t)WEFT__BOX_PROMISES << 2 * (level))

/* The least and the greatest of 8 samples, or of 8 such. */
struct weft_envelope {
	int64_t min, max;
};

enum { WEFT__ENVELOPE_BITS = 3, WEFT__ENVELOPE_LEVELS = 4 };

struct weft_counter_index {
	struct weft_envelope *level[WEFT__ENVELOPE_LEVELS];
	struct weft_slices slices; /* of samples */
};

struct weft_lifetime {
	int64_t start_ns, end_ns;
};

/* Arrows of one class: numbers of links, in time order. */
struct weft_arrow_list {
	uint32_t *links;
	struct weft_slices slices;
	size_t count;
};

struct weft_index {
	/* By place in by_row. */
	size_t count;
	struct weft_lifetime *lives;
	uint64_t *busy;                   /* [count + 1], each row's sums go on from the row before */
	uint64_t *important, *never;      /* bits: it went wrong; of these: it never resolved */
	uint32_t *important_before;       /* by 64 places: how many before them went wrong */
	struct weft_lifetime *went_wrong; /* of these alone, one after the other: they are far apart in the others */
	struct weft_box *boxes[WEFT__BOX_LEVELS];
	size_t box_count[WEFT__BOX_LEVELS];
	int box_levels;
	struct weft_sums sums;

	bool is_part;       /* what layouts do not differ in is another index's: run_busy, counters */
	uint64_t *run_busy; /* [run_count + 1] of weft_model.runs */

	struct weft_arrow_list arrows[WEFT_ARROWS];
	struct weft_arrow_list inside[WEFT_ARROWS]; /* what the promises of one fold that was made by hand do to each other: it is
						       counted, not drawn */
	uint32_t *fold_of;                          /* by promise: its fold, or WEFT_NONE; NULL: none was made by hand */

	/* Sleeps and pauses of each band.  If there is but one band or none, it has the pauses of all streams, and sleeps where
	 * all do. */
	size_t band_count;
	struct weft_intervals *sleeps, *pauses;
	int64_t *stretch_times;
	uint64_t *stretch_busy;
	uint32_t *pause_source; /* number of the pause, by place in `pauses`, all bands one after another */

	struct weft_counter_index *counters;
	struct weft_fold_index *folds; /* of folds that were made by hand; or NULL */
};

/* fold.c: *out stays untouched where nothing was folded by hand.  WEFT_ENOMEM. */
int weft__fold_index_create(struct weft_fold_index **out, const struct weft_model *model, const struct weft_layout *layout);
void weft__fold_index_destroy(struct weft_fold_index *index);

/* `whole`: that of a layout of all promises, or NULL; what is the same there is taken from it, so it must outlive this one.  On
 * failure *out is untouched: WEFT_ENOMEM. */
int weft__index_create(
    struct weft_index **out, const struct weft_model *model, const struct weft_layout *layout, const struct weft_index *whole);
void weft__index_destroy(struct weft_index *index, const struct weft_model *model);

static inline int64_t weft__intervals_start(const struct weft_intervals *t, size_t i)
{
	return t->start[i * t->stride];
}

static inline int64_t weft__intervals_end(const struct weft_intervals *t, size_t i)
{
	return t->end[i * t->stride];
}

/* Those of a row. */
static inline struct weft_intervals weft__row_intervals(
    const struct weft_index *index, const struct weft_layout *layout, uint32_t row)
{
	const uint32_t begin = layout->row_begin[row];
	return (struct weft_intervals){
	    .start = &index->lives[begin].start_ns,
	    .end = &index->lives[begin].end_ns,
	    .stride = sizeof *index->lives / sizeof(int64_t),
	    .busy = index->busy + begin,
	    .count = layout->row_begin[row + 1] - begin,
	};
}

/* The first interval from i on that ends after, or begins at or after, a time; t->count if none does.  Galloping. */
size_t weft__intervals_end_after(const struct weft_intervals *t, size_t i, int64_t time_ns);
size_t weft__intervals_start_from(const struct weft_intervals *t, size_t i, int64_t time_ns);

/* How many ns from..to are covered; `i` as the first of those that end after from. */
uint64_t weft__intervals_covered(const struct weft_intervals *t, size_t i, size_t end, int64_t from_ns, int64_t to_ns);

/* The first sample at or after a time; the envelope of samples i up to end, which is not empty. */
size_t weft__counter_from(const struct weft_counter *counter, const struct weft_counter_index *index, int64_t time_ns);
struct weft_envelope weft__counter_envelope(
    const struct weft_counter *counter, const struct weft_counter_index *index, size_t i, size_t end);

/* Where an arrow begins and ends. */
struct weft_arrow_ends {
	int64_t from_ns, to_ns;
	uint32_t from, to;
};
struct weft_arrow_ends weft__arrow_ends(const struct weft_model *model, const struct weft_link *link);

/* Whether a link is drawn as an arrow, and as which. */
bool weft__is_arrow(const struct weft_layout *layout, const struct weft_link *link);
bool weft__is_inside(const struct weft_index *index, const struct weft_link *link); /* one fold */
enum weft_arrow weft__arrow_of(const struct weft_model *model, const struct weft_link *link);

/* The first arrow of a list whose time is at or after a time. */
size_t weft__arrow_from(const struct weft_model *model, const struct weft_arrow_list *list, int64_t time_ns);

/* How many promises before a place in by_row went wrong. */
static inline size_t weft__went_wrong_before(const struct weft_index *index, size_t at)
{
	const uint64_t before = index->important[at / 64] & (((uint64_t)1 << at % 64) - 1);
	return index->important_before[at / 64] + (size_t)__builtin_popcountll(before);
}

#endif
