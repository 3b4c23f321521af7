/* view.h: decides which part of a layout is on the screen, and at which coordinates.
 *
 * Horizontally a view is linear in time, except for folded sleep (sleep.h).  Vertically a view is linear while all rows are high
 * enough for their names.  If rows are too low, rows near the focus are spread out and the others are compressed towards the
 * edges, so that every row stays on the screen; a part of the height is divided evenly, so that distant rows keep their shape.
 * Rows on which no promise is alive in the visible interval have no height, unless rows are held (weft_view_hold_rows()).  The
 * code uses only + - * / and square roots of doubles, so that a view has the same coordinates on every platform.  Times are ns
 * since the model's start, as in the model; coordinates are px from the top left.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_VIEW_H
#define WEFT_VIEW_VIEW_H

#include "layout/layout.h"

/* Classes of arrows; all arrows of a class have the same look. */
enum weft_arrow { WEFT_ARROW_AWAIT, WEFT_ARROW_READ, WEFT_ARROW_RESOLVE, WEFT_ARROW_SIGNAL, WEFT_ARROW_READ_FAILED, WEFT_ARROWS };

struct weft_view {
	const struct weft_model *model;
	const struct weft_layout *layout;
	double width_px, height_px;
	double lanes_px;                /* height in px that is reserved below the rows for lanes of counters and threads */
	int64_t end_ns;                 /* end time of the time axis */
	int64_t from_ns;                /* time at x = 0, the left edge */
	double px_per_ns;               /* horizontal scale outside of folded lulls, in px per ns */
	const struct weft_lulls *lulls; /* lulls that are folded (sleep.h); NULL: none is folded */
	/* Array of lull count + 1 distances: px from time 0 to the start of each lull, and last the sum of all widths. */
	double *shown_px;
	double focus;                     /* slot that is spread most; slots are rows, and headers of bands if there are any */
	double curve;                     /* distance in slots within which rows are spread; 0 if the view is linear */
	double pitch_px;                  /* height in px of a row at the focus */
	double slots;                     /* number of rows and headers that are shown */
	uint64_t *shown;                  /* bits by row: whether it is shown; NULL: all rows are shown */
	uint32_t *shown_before;           /* number of shown rows before each word of 64 rows */
	uint32_t *headers_before;         /* array of band_count + 1 numbers: headers before each band */
	bool holds_rows;                  /* whether all rows are always shown */
	double even_px, curved_px, above; /* terms of weft_view_y() for the current focus and curve */
	size_t found;                     /* number of highlighted promises */
	uint64_t *highlight;              /* bits by promise */
	struct weft_index *index;
};

#define WEFT_VIEW_MARGIN_PX 20.0 /* margin in px left and right of the trace when the whole trace is shown */
#define WEFT_VIEW_TOP_PX 30.0    /* above the first row */
#define WEFT_VIEW_BOTTOM_PX 34.0 /* below the last row */

/* Creates a view of the whole trace with 1280 x 720 px, in which nothing is highlighted.  The model and the layout must outlive
 * the view.  The time is linear in promises and links, about 20 ns each.  On failure (WEFT_ENOMEM) *out is unchanged. */
int weft_view_create(
    struct weft_view **out, const struct weft_model *model, const struct weft_layout *layout, struct weft_error *err);

/* Creates a view of another layout of the model, with only some promises or with other folds.  `whole` is a view of all
 * promises, which must outlive the new view.  The function takes about a quarter of the time of weft_view_create(). */
int weft_view_create_subset(
    struct weft_view **out, const struct weft_view *whole, const struct weft_layout *layout, struct weft_error *err);
void weft_view_destroy(struct weft_view *view);

/* Sets the size of the view, and keeps the visible interval and the focus.  Widths are clamped to 16 .. 32767 px, and heights to
 * 64 .. 32767 px. */
void weft_view_resize(struct weft_view *view, double width_px, double height_px);

/* Reserves height in px for lanes below the rows. */
void weft_view_reserve_lanes(struct weft_view *view, double lanes_px);

/* Sets the end of the time axis: the trace's end, or the end of a longer trace that is shown beside it. */
void weft_view_set_end(struct weft_view *view, int64_t end_ns);

/* Shows exactly the interval from..to over the whole width, at least 200 ns; from and to may be in either order. */
void weft_view_show(struct weft_view *view, int64_t from_ns, int64_t to_ns);
void weft_view_show_all(struct weft_view *view);

/* Restores a view from saved values of the fields with these names. */
void weft_view_restore(struct weft_view *view, int64_t from_ns, double px_per_ns, double focus);

/* Shows the whole lifetime of a promise, with a margin on both sides. */
void weft_view_show_promise(struct weft_view *view, uint32_t promise);

/* Keeps all rows at their places whatever interval is visible, or lets rows collapse that have nothing to show in it, which is
 * the default. */
void weft_view_hold_rows(struct weft_view *view, bool hold);

/* Return whether a row is shown with a height, and the number of shown rows before it. */
static inline bool weft_view_is_shown(const struct weft_view *view, uint32_t row)
{
	return !view->shown || view->shown[row / 64] >> row % 64 & 1;
}
static inline uint32_t weft_view_rank(const struct weft_view *view, uint32_t row)
{
	if (!view->shown)
		return row;
	uint64_t before = view->shown[row / 64] & (((uint64_t)1 << row % 64) - 1);
	return view->shown_before[row / 64] + (uint32_t)__builtin_popcountll(before);
}

/* Return the row with `rank` shown rows before it, and the first shown row from `row` on, or the number of rows if there is
 * none. */
uint32_t weft_view_row_of_rank(const struct weft_view *view, uint32_t rank);
uint32_t weft_view_next_shown(const struct weft_view *view, uint32_t row);

/* Zooms around x_px, at which the time stays the same; a factor > 1 shows more detail.  The visible interval can be from the
 * whole trace down to 200 ns.
 */
void weft_view_zoom(struct weft_view *view, double factor, double x_px);

/* Moves the picture by dx_px to the side; a part of the trace always stays on the screen. */
void weft_view_pan(struct weft_view *view, double dx_px);

/* Sets the focus: the rows around this slot are spread most.  See weft_view_slot() and weft_view_slot_at(). */
void weft_view_focus(struct weft_view *view, double slot);

/* Moves the focus so that `slot` comes as near to y_px as possible, for vertical dragging. */
void weft_view_focus_slot_at_y(struct weft_view *view, double slot, double y_px);

/* Sets the focus where the most promises are visible that are long enough for a label, for pictures that are not interactive. */
void weft_view_focus_best(struct weft_view *view);

double weft__sleep_x(const struct weft_view *view, int64_t time_ns);

/* Convert between a time and an x, and between a slot and a y.  Saturating, never NaN. */
static inline double weft_view_x(const struct weft_view *view, int64_t time_ns)
{
	int64_t since;
	double ns =
	    __builtin_sub_overflow(time_ns, view->from_ns, &since) ? (double)time_ns - (double)view->from_ns : (double)since;
	double x = view->lulls ? weft__sleep_x(view, time_ns) : ns * view->px_per_ns;
	return x < -1e6 ? -1e6 : x > 1e6 ? 1e6 : x;
}
int64_t weft_view_time(const struct weft_view *view, double x_px);
/* Returns the slot of a row's line; for a row that is not shown, the slot of the next shown row. */
double weft_view_slot(const struct weft_view *view, uint32_t row);
/* Returns the slot that the row would have if all rows were shown. */
double weft_view_whole_slot(const struct weft_layout *layout, uint32_t row);
/* Returns the slot at which a band's header starts; if the header is not shown, the slot of the next header; after the last
 * band, the end. */
double weft_view_header(const struct weft_view *view, size_t band);
/* Returns whether a band has a header that is shown.  A band has a header if one of its rows is shown or if its OS thread has a
 * visible pause; without memory, always. */
bool weft_view_has_header(const struct weft_view *view, size_t band);
double weft_view_y(const struct weft_view *view, double slot);
double weft_view_slot_at(const struct weft_view *view, double y_px);
/* Returns the row at y_px; WEFT_NONE in an empty layout or on a header. */
uint32_t weft_view_row_at(const struct weft_view *view, double y_px);

/* Highlight the promises that match a query (view/query.h), and no other promises.  The query "" and invalid queries match no
 * promise.  Return the number of matching promises. */
struct weft_query;
size_t weft_view_find(struct weft_view *view, const char *text);
size_t weft_view_find_query(struct weft_view *view, struct weft_query *query);

/* Highlights a promise, the promises that it became, and the promises that became it. */
size_t weft_view_find_related(struct weft_view *view, uint32_t promise);
void weft_view_unhighlight(struct weft_view *view);
void weft_view_set_highlight(struct weft_view *view, uint32_t promise, bool on); /* one promise */

static inline bool weft_view_is_highlighted(const struct weft_view *view, uint32_t promise)
{
	return view->highlight[promise / 64] >> promise % 64 & 1;
}

/* Returns whether a promise of weft_layout.by_row is highlighted or, if it leads a fold, any promise of the fold. */
bool weft_view_is_line_highlighted(const struct weft_view *view, uint32_t promise);

/* Returns the promise nearest to a point within 16 px, or WEFT_NONE; for a fold, the fold's leader.  The time is logarithmic in
 * promises per row. */
uint32_t weft_view_hit(const struct weft_view *view, double x_px, double y_px);

#endif
