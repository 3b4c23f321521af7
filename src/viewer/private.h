/* private.h: between the files of viewer/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_PRIVATE_H
#define WEFT_VIEWER_PRIVATE_H

#include "viewer/viewer.h"

void weft__viewer_changed(struct weft_viewer *viewer, unsigned changes);

/* Nothing is searched for any more; what is highlighted stays. */
void weft__viewer_end_search(struct weft_viewer *viewer);

/* What went wrong in the other one is shown until it is known of this one. */
void weft__viewer_take_answers(struct weft_viewer *viewer, struct weft_viewer *other);

struct weft_row;
void weft__viewer_press_finding_row(struct weft_viewer *viewer, const struct weft_row *row);

/* Gives each pane its place. */
void weft__viewer_arrange(struct weft_viewer *viewer);

/* Where the pointer's line stands, if it does. */
void weft__viewer_guide(struct weft_viewer *viewer, bool shown, int64_t time_ns);

/* Other promises are highlighted. */
static inline void weft__viewer_highlighted(struct weft_viewer *viewer)
{
	viewer->overview_is_stale = true;
	weft__viewer_changed(viewer, WEFT_CHANGED_PICTURE);
}

/* Saturating. */
static inline int64_t weft__add_ns(int64_t a, int64_t b)
{
	int64_t sum;
	return !__builtin_add_overflow(a, b, &sum) ? sum : b < 0 ? INT64_MIN : INT64_MAX;
}

/* Whether a number is a promise that can be selected. */
static inline bool weft__viewer_has(const struct weft_viewer *viewer, uint32_t promise)
{
	return promise != WEFT_SYSTEM && promise < viewer->model->promise_count;
}

#endif
