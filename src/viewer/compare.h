/* compare.h: shows one or several viewers, one above the other, for comparing traces.
 *
 * An application has one struct weft_compare, whatever the number of traces, and passes user input to it; px are counted from
 * its top left.  Each function here does the same as the function of that name in viewer.h, for the viewer in question.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_COMPARE_H
#define WEFT_VIEWER_COMPARE_H

#include "viewer/actions.h"

#define WEFT_MAX_COMPARED 8
#define WEFT_COMPARE_GAP_PX 4.0 /* between two viewers */

/* All fields may be read directly, but only functions change them.  A zeroed struct has no viewers. */
struct weft_compare {
	struct weft_viewer *viewers[WEFT_MAX_COMPARED]; /* from top to bottom */
	/* Active: index of the viewer that was pressed last, to which keys and the panel apply. */
	size_t count, active;
	bool free; /* whether each viewer has its own time axis */
	double width_px, height_px, scale;
	double tops_px[WEFT_MAX_COMPARED];
	unsigned changes;
	weft_measure_fn *measure;
	void *measure_ctx;
};

/* Adds a viewer below the others, takes over its ownership, and starts the current search in it.  Returns WEFT_ETOOBIG if there
 * are already WEFT_MAX_COMPARED viewers; the caller then still owns the viewer. */
int weft_compare_add(struct weft_compare *compare, struct weft_viewer *viewer, struct weft_error *err);

/* Replaces a viewer by a viewer of the reloaded trace.  The visible interval, selection, folds and search are kept
 * (weft_viewer_copy_state()).  Returns the old viewer, which the caller then owns; destroying the viewer of a large trace is
 * slow. */
struct weft_viewer *weft_compare_replace(struct weft_compare *compare, size_t index, struct weft_viewer *viewer);
void weft_compare_remove(struct weft_compare *compare, size_t index);

/* Destroys all viewers. */
void weft_compare_finish(struct weft_compare *compare);

/* Returns the active viewer, or NULL if there are no viewers. */
struct weft_viewer *weft_compare_active(const struct weft_compare *compare);

/* Makes the viewer with this index the active viewer. */
void weft_compare_activate(struct weft_compare *compare, size_t index);

/* Divides the height evenly. */
void weft_compare_resize(struct weft_compare *compare, double width_px, double height_px, double scale);
void weft_compare_set_measure(struct weft_compare *compare, weft_measure_fn *measure, void *ctx);

/* Draws changes, and sets *out to at most max_panes panes, from back to front.  Returns the number of panes, at most
 * WEFT_COMPARE_PANES, or WEFT_ENOMEM. */
#define WEFT_COMPARE_PANES (WEFT_MAX_COMPARED * WEFT_PANES)
int weft_compare_draw(struct weft_compare *compare, struct weft_pane *out, int max_panes, struct weft_error *err);

/* Returns the changes of all viewers. */
unsigned weft_compare_take_changes(struct weft_compare *compare);

/* Separates or locks the time axes of the viewers.  Locked axes show the same interval, and extend to the end of the longest
 * trace. */
void weft_compare_set_free(struct weft_compare *compare, bool free);

void weft_compare_press(
    struct weft_compare *compare, double x_px, double y_px, enum weft_button button, unsigned modifiers, int clicks);
void weft_compare_motion(struct weft_compare *compare, double x_px, double y_px);
void weft_compare_release(struct weft_compare *compare, double x_px, double y_px);
void weft_compare_leave(struct weft_compare *compare);
void weft_compare_wheel(struct weft_compare *compare, double x_px, double y_px, double dx, double dy, unsigned modifiers);
void weft_compare_pinch(struct weft_compare *compare, double x_px, double y_px, double factor, double dx_px, double dy_px);

/* Search in all viewers. */
int weft_compare_search(struct weft_compare *compare, const char *text, struct weft_error *err);
bool weft_compare_search_step(struct weft_compare *compare, uint32_t promises);
size_t weft_compare_found(const struct weft_compare *compare);

/* Return the number of findings of all viewers, and activate the first viewer with findings, unless the active viewer has
 * some. */
size_t weft_compare_findings(const struct weft_compare *compare);
void weft_compare_show_findings(struct weft_compare *compare);

/* Return the state of an action, and perform it in the active viewer.  Actions such as metrics, the filter, and moving while
 * axes are locked apply to all viewers.  If the active viewer has no matches, the next match is in another viewer, which becomes
 * active. */
unsigned weft_compare_action_state(const struct weft_compare *compare, enum weft_action action);
int weft_compare_act(struct weft_compare *compare, enum weft_action action);

/* Makes the other viewers with locked axes follow, after the active viewer was changed through viewer.h. */
void weft_compare_follow(struct weft_compare *compare);

/* Write and apply a place, like weft_viewer_place() and weft_viewer_go(), for the active viewer.  If there are several viewers,
 * the place also has the index of the active viewer, and whether axes are separate, as "&on=1&free=1". */
size_t weft_compare_place(const struct weft_compare *compare, char *buf, size_t size);
int weft_compare_go(struct weft_compare *compare, const char *place, struct weft_error *err);

#endif
