/* view.h: which part of a layout is on the screen, and what is where.
 *
 * Horizontally a view is linear in time, but for sleep that is folded (sleep.h).  Vertically it is linear while all rows have
 * room for their names; otherwise rows near the focus are spread out and the others crowd towards the edges, so that every row
 * stays on the screen, and part of the height is shared out evenly, so that their shape is still seen.  Rows on which nothing is
 * alive in the time that is seen have no height, unless rows are held still.  Only + - * / and square roots of doubles are used,
 * so that a view has the same coordinates wherever it is compiled.  Times are ns since the model's start, as in the model;
 * coordinates are px from the top left.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_VIEW_H
#define WEFT_VIEW_VIEW_H

#include "layout/layout.h"

/* Arrows that look alike. */
enum weft_arrow { WEFT_ARROW_AWAIT, WEFT_ARROW_READ, WEFT_ARROW_RESOLVE, WEFT_ARROW_SIGNAL, WEFT_ARROW_READ_FAILED, WEFT_ARROWS };

struct weft_view {
	const struct weft_model *model;
	const struct weft_layout *layout;
	double width_px, height_px;
	double lanes_px;                /* of the height, below the rows: for counters */
	int64_t end_ns;                 /* how far time goes */
	int64_t from_ns;                /* time at x = 0 */
	double px_per_ns;               /* horizontal scale, but for folded gaps */
	const struct weft_lulls *lulls; /* sleep.h: sleep that is folded; NULL: none is */
	double *shown_px;               /* [count of gaps + 1]: how far right of time 0 each begins, and the last ends */
	double focus;    /* the slot that is spread most: slots are rows, and a header above each band if there are several */
	double curve;    /* in slots, how far from the focus rows are spread; 0: linear */
	double pitch_px; /* height of a row at the focus */
	double slots;    /* rows that are shown, and headers of the bands that they are of */
	uint64_t *shown; /* a bit by row; NULL: all are shown */
	uint32_t *shown_before;           /* by 64 rows: how many before them are shown */
	uint32_t *headers_before;         /* by band, and one more: how many bands before it have a header */
	bool holds_rows;                  /* each row is shown always */
	double even_px, curved_px, above; /* of weft_view_y(), for this focus and curve */
	size_t found;                     /* promises that are highlighted */
	uint64_t *highlight;              /* a bit by promise */
	struct weft_index *index;
};

#define WEFT_VIEW_MARGIN_PX 20.0 /* left and right of the trace when it is shown whole */
#define WEFT_VIEW_TOP_PX 30.0    /* above the first row */
#define WEFT_VIEW_BOTTOM_PX 34.0 /* below the last */

/* A view of the whole trace, 1280 x 720, nothing highlighted.  The model and the layout must outlive it.  Linear in the number
 * of promises and links, about 20 ns each.  On failure *out is untouched: WEFT_ENOMEM. */
int weft_view_create(
    struct weft_view **out, const struct weft_model *model, const struct weft_layout *layout, struct weft_error *err);

/* The same of a layout of some promises, or with others folded, where `whole` is a view of all, which must outlive it: for a
 * quarter of that time. */
int weft_view_create_part(
    struct weft_view **out, const struct weft_view *whole, const struct weft_layout *layout, struct weft_error *err);
void weft_view_destroy(struct weft_view *view);

/* Keeps the time range and the focus.  Widths are clamped to 16 .. 32767, heights to 64 .. 32767. */
void weft_view_resize(struct weft_view *view, double width_px, double height_px);

/* Leaves room for lanes below the rows. */
void weft_view_leave(struct weft_view *view, double lanes_px);

/* How far time goes: the trace's end, unless another trace is shown beside it that is longer. */
void weft_view_set_end(struct weft_view *view, int64_t end_ns);

/* Shows exactly the times from..to over the whole width, in either order; at least 200 ns. */
void weft_view_show(struct weft_view *view, int64_t from_ns, int64_t to_ns);
void weft_view_show_all(struct weft_view *view);

/* Shows what was shown when these were the fields of that name. */
void weft_view_restore(struct weft_view *view, int64_t from_ns, double px_per_ns, double focus);

/* Shows a promise from its start to its end, and a little more on both sides. */
void weft_view_show_promise(struct weft_view *view, uint32_t promise);

/* Rows stay where they are, whatever part of time is seen; or those without anything in it collapse, as at first. */
void weft_view_hold_rows(struct weft_view *view, bool hold);

/* Whether a row has height; how many before it have. */
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

/* The row that has height after so many others; the first that has from a row on, or the number of rows if none has. */
uint32_t weft_view_row_of_rank(const struct weft_view *view, uint32_t rank);
uint32_t weft_view_next_shown(const struct weft_view *view, uint32_t row);

/* The time under x_px stays there; factor > 1 shows more detail.  Not beyond the whole trace, nor below 200 ns. */
void weft_view_zoom(struct weft_view *view, double factor, double x_px);

/* The picture follows the pointer by dx_px; the trace never leaves the screen. */
void weft_view_pan(struct weft_view *view, double dx_px);

/* Spreads the rows around a slot most; weft_view_slot() and weft_view_slot_at() give slots. */
void weft_view_focus(struct weft_view *view, double slot);

/* Moves the focus so that `slot` comes to y_px, or as near as can be: what a vertical drag does. */
void weft_view_focus_so(struct weft_view *view, double slot, double y_px);

/* Focuses where most promises that are long enough to be labelled are visible: for a picture that nobody can drag. */
void weft_view_focus_best(struct weft_view *view);

double weft__sleep_x(const struct weft_view *view, int64_t time_ns);

/* Between time and x, slot and y.  Saturating, never NaN. */
static inline double weft_view_x(const struct weft_view *view, int64_t time_ns)
{
	int64_t since;
	double ns =
	    __builtin_sub_overflow(time_ns, view->from_ns, &since) ? (double)time_ns - (double)view->from_ns : (double)since;
	double x = view->lulls ? weft__sleep_x(view, time_ns) : ns * view->px_per_ns;
	return x < -1e6 ? -1e6 : x > 1e6 ? 1e6 : x;
}
int64_t weft_view_time(const struct weft_view *view, double x_px);
/* Where the row's line is; of a row that is not shown, that of the next one that is. */
double weft_view_slot(const struct weft_view *view, uint32_t row);
double weft_view_whole_slot(const struct weft_layout *layout, uint32_t row); /* what that would be if all rows were shown */
/* Where a band's header begins, and if it is not shown, that of the next one that is; after the last band, the end. */
double weft_view_header(const struct weft_view *view, size_t band);
/* Whether it has one: all have that have a row that is shown, and OS threads of which a pause is seen; without memory all. */
bool weft_view_has_header(const struct weft_view *view, size_t band);
double weft_view_y(const struct weft_view *view, double slot);
double weft_view_slot_at(const struct weft_view *view, double y_px);
uint32_t weft_view_row_at(const struct weft_view *view, double y_px); /* WEFT_NONE in an empty layout or on a header */

/* Highlights the promises that a query matches (view/query.h), and no others; "" none, and so what is no query.  Returns how
 * many. */
struct weft_query;
size_t weft_view_find(struct weft_view *view, const char *text);
size_t weft_view_find_query(struct weft_view *view, struct weft_query *query);

/* Highlights a promise, all it became and all that became it. */
size_t weft_view_find_related(struct weft_view *view, uint32_t promise);
void weft_view_unhighlight(struct weft_view *view);
void weft_view_set_highlight(struct weft_view *view, uint32_t promise, bool on); /* of one */

static inline bool weft_view_is_highlighted(const struct weft_view *view, uint32_t promise)
{
	return view->highlight[promise / 64] >> promise % 64 & 1;
}

/* Whether a promise of weft_layout.by_row or, if it leads a fold, any of the fold is highlighted. */
bool weft_view_is_line_highlighted(const struct weft_view *view, uint32_t promise);

/* The promise within 16 px of a point that is nearest, or WEFT_NONE; of a fold its leader.  Logarithmic in promises a row. */
uint32_t weft_view_hit(const struct weft_view *view, double x_px, double y_px);

#endif
