/* compare.h: one viewer, or several one above the other, as an application shows them: traces to be compared.
 *
 * An application that shows traces holds one of these, however many traces there are, and passes to it what its user does; px are
 * from the top left of all.  What is said in viewer.h of a viewer's function holds for the one of that name here.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_COMPARE_H
#define WEFT_VIEWER_COMPARE_H

#include "viewer/actions.h"

#define WEFT_COMPARE_MOST 8
#define WEFT_COMPARE_GAP_PX 4.0 /* between two viewers */

/* Fields are read freely, and changed through functions.  A zeroed one has no viewers. */
struct weft_compare {
	struct weft_viewer *viewers[WEFT_COMPARE_MOST]; /* from top to bottom */
	size_t count, active; /* active: the one that was pressed last: keys and the panel are about it */
	bool free;            /* each has a time axis of its own */
	double width_px, height_px, scale;
	double tops_px[WEFT_COMPARE_MOST];
	unsigned changes;
	weft_measure_fn *measure;
	void *measure_ctx;
};

/* Adds a viewer below the others, which it then owns; searches in it for what is searched for in them.  WEFT_ETOOBIG if there are
 * WEFT_COMPARE_MOST, and then the viewer is still the caller's. */
int weft_compare_add(struct weft_compare *compare, struct weft_viewer *viewer, struct weft_error *err);

/* Puts a viewer in the place of another: the trace read anew.  What was seen, selected, hidden and searched for stays
 * (weft_viewer_take_over()).  Returns the other one, which is the caller's: to destroy that of a large trace takes long. */
struct weft_viewer *weft_compare_replace(struct weft_compare *compare, size_t index, struct weft_viewer *viewer);
void weft_compare_remove(struct weft_compare *compare, size_t index);

/* All viewers end. */
void weft_compare_finish(struct weft_compare *compare);

/* The active one, or NULL if there is none. */
struct weft_viewer *weft_compare_active(const struct weft_compare *compare);

/* Makes the viewer at a place the active one. */
void weft_compare_activate(struct weft_compare *compare, size_t index);

/* Sizes are shared out evenly. */
void weft_compare_resize(struct weft_compare *compare, double width_px, double height_px, double scale);
void weft_compare_set_measure(struct weft_compare *compare, weft_measure_fn *measure, void *ctx);

/* Draws what has changed; then *out has up to `most` panes, from back to front, and their number is returned: at most
 * WEFT_COMPARE_PANES.  WEFT_ENOMEM. */
#define WEFT_COMPARE_PANES (WEFT_COMPARE_MOST * WEFT_PANES)
int weft_compare_draw(struct weft_compare *compare, struct weft_pane *out, int most, struct weft_error *err);

/* What changed in any of them. */
unsigned weft_compare_take_changes(struct weft_compare *compare);

/* Time axes that are locked show the same times, as far as the longest trace goes. */
void weft_compare_set_free(struct weft_compare *compare, bool free);

void weft_compare_press(
    struct weft_compare *compare, double x_px, double y_px, enum weft_button button, unsigned modifiers, int clicks);
void weft_compare_motion(struct weft_compare *compare, double x_px, double y_px);
void weft_compare_release(struct weft_compare *compare, double x_px, double y_px);
void weft_compare_leave(struct weft_compare *compare);
void weft_compare_wheel(struct weft_compare *compare, double x_px, double y_px, double dx, double dy, unsigned modifiers);
void weft_compare_pinch(struct weft_compare *compare, double x_px, double y_px, double factor, double dx_px, double dy_px);

/* In all of them. */
int weft_compare_search(struct weft_compare *compare, const char *text, struct weft_error *err);
bool weft_compare_search_step(struct weft_compare *compare, uint32_t promises);
size_t weft_compare_found(const struct weft_compare *compare);

/* How many findings all of them have; and makes that viewer the active one whose findings are to be shown: the first one that has
 * any, unless the active one has. */
size_t weft_compare_findings(const struct weft_compare *compare);
void weft_compare_show_findings(struct weft_compare *compare);

/* Does an action in the active one, or in all where it is for all: metrics, the filter, what is seen while axes are locked.  The
 * next match is one of another where the active one has none; that one is then active. */
unsigned weft_compare_action_state(const struct weft_compare *compare, enum weft_action action);
int weft_compare_act(struct weft_compare *compare, enum weft_action action);

/* After a change of the active one through viewer.h: the others follow, where axes are locked. */
void weft_compare_follow(struct weft_compare *compare);

/* As weft_viewer_place() and weft_viewer_go() of the active one; with several also which it is, and whether axes are free:
 * "&on=1&free=1". */
size_t weft_compare_place(const struct weft_compare *compare, char *buf, size_t size);
int weft_compare_go(struct weft_compare *compare, const char *place, struct weft_error *err);

#endif
