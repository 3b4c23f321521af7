/* sleep.h: finds lulls, which are intervals in which no promise ran on any thread and no event happened, and folds them.  A view
 * can show lulls as narrow gaps, at most WEFT_LULL_PX wide at any scale; the rest of the time axis stays linear.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_SLEEP_H
#define WEFT_VIEW_SLEEP_H

#include "view/view.h"

#define WEFT_LULL_PX 44.0 /* maximum width in px of a folded lull, enough for a text with its length */

struct weft_lull {
	int64_t start_ns, end_ns;
};

/* List of lulls in time order, which do not overlap. */
struct weft_lulls {
	struct weft_lull *items;
	size_t count;
};

/* Finds all lulls that are longer than 1/16384 of the trace.  The time is linear in runs, promises and links, 10 ns each.  On
 * failure (WEFT_ENOMEM) *out is unchanged. */
int weft_lulls_find(struct weft_lulls **out, const struct weft_model *model, struct weft_error *err);
void weft_lulls_destroy(struct weft_lulls *lulls);

/* Returns the sum of the lengths of all lulls in ns. */
int64_t weft_lulls_ns(const struct weft_lulls *lulls);

/* Folds these lulls, which must outlive the view; NULL folds no lulls.  The visible interval stays the same; if the whole trace
 * was visible, the whole trace is still visible.  On failure (WEFT_ENOMEM) nothing changes. */
int weft_view_fold_sleep(struct weft_view *view, const struct weft_lulls *lulls, struct weft_error *err);

/* Returns whether a lull is drawn narrower than its length. */
static inline bool weft_view_is_folded(const struct weft_view *view, const struct weft_lull *lull)
{
	return ((double)lull->end_ns - (double)lull->start_ns) * view->px_per_ns > WEFT_LULL_PX;
}

/* Returns the end of the folded lull that contains a time or, if there is none, the time itself. */
int64_t weft_view_past_lull(const struct weft_view *view, int64_t time_ns);

/* Returns a time minus the time that the folded lulls before it lose, in ns.  Scrollbars and the width of the picture are linear
 * in this time. */
double weft_view_shown_ns(const struct weft_view *view, int64_t time_ns);

/* Functions private to src/view: one updates the sums for a new scale, one returns the time at px from time 0, and one returns
 * the scale at which from..to is width_px wide. */
void weft__sleep_update_scale(struct weft_view *view);
int64_t weft__sleep_time_at(const struct weft_view *view, double px);
double weft__sleep_scale_for(const struct weft_view *view, int64_t from_ns, int64_t to_ns, double width_px);

#endif
