/* index.h: precomputes data of a view, so that drawing a part of a trace costs time only for the visible part.  The header is
 * private to src/view and src/draw.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_INDEX_H
#define WEFT_VIEW_INDEX_H

#include "view/slices.h"
#include "view/sums.h"
#include "view/view.h"

/* Intervals in time order that do not overlap, with sums of their lengths. */
struct weft_intervals {
	const int64_t *start, *end; /* starts and ends of the intervals; consecutive items are stride * 8 bytes apart */
	size_t stride;
	const uint64_t *busy; /* busy[i]: number of ns that the intervals before i cover */
	size_t count;
};

/* Promises that are adjacent in weft_layout.by_row: 16 promises, or 4 smaller boxes. */
struct weft_box {
	int64_t start_ns, end_ns; /* first start and last end of the box's promises */
	int64_t last_start_ns, first_end_ns;
	uint64_t alive_ns, run_ns;
	uint32_t first_row, last_row;
	bool important; /* whether a promise in the box failed or never resolved */
};

#define WEFT__BOX_PROMISES 16u
#define WEFT__BOX_FAN 4u
#define WEFT__BOX_LEVELS 15

/* Number of promises in a box of a level; the last box may have fewer. */
#define WEFT__BOX_SIZE(level) ((size_t)WEFT__BOX_PROMISES << 2 * (level))

/* Minimum and maximum of 8 samples, or of 8 smaller envelopes. */
struct weft_envelope {
	int64_t min, max;
};

enum { WEFT__ENVELOPE_BITS = 3, WEFT__ENVELOPE_LEVELS = 4 };

struct weft_counter_index {
	struct weft_envelope *level[WEFT__ENVELOPE_LEVELS];
	struct weft_slices slices; /* slices of the samples */
};

struct weft_lifetime {
	int64_t start_ns, end_ns;
};

/* Arrows of one class: the indices of their links in the model, in time order. */
struct weft_arrow_list {
	uint32_t *links;
	struct weft_slices slices;
	size_t count;
};

struct weft_index {
	/* By position in by_row. */
	size_t count;
	struct weft_lifetime *lives;
	/* Array of count + 1 sums: ns that the promises before each position were alive, over all rows. */
	uint64_t *busy;
	/* Bits for each position: whether the promise went wrong, and whether it never resolved. */
	uint64_t *important, *never;
	uint32_t *important_before;       /* number of promises that went wrong before each word of 64 positions */
	struct weft_lifetime *went_wrong; /* lifetimes of the promises that went wrong, contiguous in memory for speed */
	struct weft_box *boxes[WEFT__BOX_LEVELS];
	size_t box_count[WEFT__BOX_LEVELS];
	int box_levels;
	struct weft_sums sums;

	bool is_subset;     /* whether run_busy and counters belong to the index of the whole layout */
	uint64_t *run_busy; /* array of run_count + 1 sums: ns that the runs before each run in weft_model.runs took */

	struct weft_arrow_list arrows[WEFT_ARROWS];
	/* Arrows between promises of one user-made fold, which are counted and not drawn. */
	struct weft_arrow_list inside[WEFT_ARROWS];
	uint32_t *fold_of; /* for each promise: its fold, or WEFT_NONE; NULL if the user made no folds */

	/* Sleeps and pauses of each band (the rows of one thread).  If there is at most one band, the band has the pauses of all
	 * streams, and the sleeps that are common to all. */
	size_t band_count;
	struct weft_intervals *sleeps, *pauses;
	int64_t *interval_times;
	uint64_t *interval_busy;
	uint32_t *pause_source; /* number of the pause at each position in `pauses`, band after band */

	struct weft_counter_index *counters;
	struct weft_fold_index *folds; /* index of the user-made folds; or NULL */
};

/* Creates the index of user-made folds (fold.c).  If there are no folds, *out stays unchanged.  Fails with WEFT_ENOMEM. */
int weft__fold_index_create(struct weft_fold_index **out, const struct weft_model *model, const struct weft_layout *layout);
void weft__fold_index_destroy(struct weft_fold_index *index);

/* Creates an index.  `whole` is the index of a layout of all promises, or NULL; the new index shares data with `whole`, which
 * must outlive it.  On failure (WEFT_ENOMEM) *out is unchanged. */
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

/* Returns the intervals of the promises on a row. */
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

/* Return the first interval from i on that ends after a time, or that starts at or after a time; t->count if there is none.  The
 * search starts near i. */
size_t weft__intervals_end_after(const struct weft_intervals *t, size_t i, int64_t time_ns);
size_t weft__intervals_start_from(const struct weft_intervals *t, size_t i, int64_t time_ns);

/* Returns the number of ns in from..to that intervals i up to end cover; `i` must be the first interval that ends after
 * from_ns. */
uint64_t weft__intervals_covered(const struct weft_intervals *t, size_t i, size_t end, int64_t from_ns, int64_t to_ns);

/* Return the first sample at or after a time (from), and the envelope of samples i up to end, which must not be empty. */
size_t weft__counter_from(const struct weft_counter *counter, const struct weft_counter_index *index, int64_t time_ns);
struct weft_envelope weft__counter_envelope(
    const struct weft_counter *counter, const struct weft_counter_index *index, size_t i, size_t end);

/* Times and promises at the two ends of an arrow. */
struct weft_arrow_ends {
	int64_t from_ns, to_ns;
	uint32_t from, to;
};
struct weft_arrow_ends weft__arrow_ends(const struct weft_model *model, const struct weft_link *link);

/* Return whether a link is drawn as an arrow, whether both ends of an arrow are in one fold, and the class of an arrow. */
bool weft__is_arrow(const struct weft_layout *layout, const struct weft_link *link);
bool weft__is_inside_fold(const struct weft_index *index, const struct weft_link *link);
enum weft_arrow weft__arrow_class(const struct weft_model *model, const struct weft_link *link);

/* Returns the first arrow of a list at or after a time. */
size_t weft__arrow_from(const struct weft_model *model, const struct weft_arrow_list *list, int64_t time_ns);

/* Returns the number of promises that went wrong before a position in by_row. */
static inline size_t weft__went_wrong_before(const struct weft_index *index, size_t at)
{
	const uint64_t before = index->important[at / 64] & (((uint64_t)1 << at % 64) - 1);
	return index->important_before[at / 64] + (size_t)__builtin_popcountll(before);
}

#endif
