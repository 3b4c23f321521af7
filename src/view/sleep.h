/* sleep.h: stretches in which nothing ran anywhere and nothing happened.  A view can show them as narrow gaps: none is wider than
 * WEFT_LULL_PX, at any scale; all else is linear in time.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_SLEEP_H
#define WEFT_VIEW_SLEEP_H

#include "view/view.h"

#define WEFT_LULL_PX 44.0 /* room for its length */

struct weft_lull {
	int64_t start_ns, end_ns;
};

/* In time order; they do not overlap. */
struct weft_lulls {
	struct weft_lull *items;
	size_t count;
};

/* All that are longer than 1/16384 of the trace.  Linear in runs, promises and links, 10 ns each.  On failure *out is untouched:
 * WEFT_ENOMEM. */
int weft_lulls_find(struct weft_lulls **out, const struct weft_model *model, struct weft_error *err);
void weft_lulls_destroy(struct weft_lulls *lulls);

/* How long all of them are together, in ns. */
int64_t weft_lulls_ns(const struct weft_lulls *lulls);

/* Shows the same times as before, or all if all was shown, with these lulls folded, which must outlive the view, or with none:
 * NULL.  WEFT_ENOMEM, and then nothing changes. */
int weft_view_fold_sleep(struct weft_view *view, const struct weft_lulls *lulls, struct weft_error *err);

/* Whether a lull is narrower than its length would be. */
static inline bool weft_view_is_folded(const struct weft_view *view, const struct weft_lull *lull)
{
	return ((double)lull->end_ns - (double)lull->start_ns) * view->px_per_ns > WEFT_LULL_PX;
}

/* Where a time that is within a folded lull is left: the lull's end; any other time as it is. */
int64_t weft_view_past_lull(const struct weft_view *view, int64_t time_ns);

/* A time less what folded lulls before it take away, in ns: what scrollbars and the picture's width are linear in. */
double weft_view_shown_ns(const struct weft_view *view, int64_t time_ns);

/* Private to view/: the scale is another; the time that is so many px right of time 0; the scale at which from..to is as wide as
 * that. */
void weft__sleep_scaled(struct weft_view *view);
int64_t weft__sleep_time_at(const struct weft_view *view, double px);
double weft__sleep_scale_for(const struct weft_view *view, int64_t from_ns, int64_t to_ns, double width_px);

#endif
