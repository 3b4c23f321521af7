/* private.h: declarations that the files of src/viewer share.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_PRIVATE_H
#define WEFT_VIEWER_PRIVATE_H

#include "viewer/viewer.h"

void weft__viewer_changed(struct weft_viewer *viewer, unsigned changes);

/* Ends the search; its highlights are kept. */
void weft__viewer_end_search(struct weft_viewer *viewer);

/* Shows the answers of the viewer `other` until the viewer has answers of its own. */
void weft__viewer_copy_answers(struct weft_viewer *viewer, struct weft_viewer *other);

struct weft_row;
struct weft_rows;
void weft__viewer_press_finding_row(struct weft_viewer *viewer, const struct weft_row *row);

/* Returns the answer with the path that the lane above the picture shows, or NULL; without such an answer the lane is hidden
 * (path_lane.c).
 */
struct weft_finding;
const struct weft_finding *weft__viewer_path(const struct weft_viewer *viewer);
int weft__viewer_draw_lane(struct weft_viewer *viewer, struct weft_error *err);
size_t weft__viewer_hit_lane(const struct weft_viewer *viewer, double x_px);
void weft__viewer_press_lane(struct weft_viewer *viewer, double x_px);

/* Asks where the time of the focused promise went; if no promise is focused, drops the answer to that question. */
void weft__viewer_ask_path(struct weft_viewer *viewer);

/* Selects a promise unless it is WEFT_NONE, and shows a time unless it is WEFT_NO_TIME. */
void weft__viewer_go_to(struct weft_viewer *viewer, uint32_t promise, int64_t time_ns);

/* Chooses the layout for the visible interval and size, which may be a layout with automatic folds (subset.c).  Returns whether
 * the view has changed. */
bool weft__viewer_choose_subset(struct weft_viewer *viewer);
/* Ends the focus or, if there is none, shows all hidden promises. */
void weft__viewer_show_everything(struct weft_viewer *viewer);
bool weft__viewer_has_internals(const struct weft_viewer *viewer); /* that can be folded */
void weft__viewer_fold_internals(struct weft_viewer *viewer);      /* of a new viewer */
void weft__viewer_finish_subsets(struct weft_viewer *viewer);

/* Shows the same subset in the viewer of a reloaded trace, and applies the folding of a link. */
void weft__viewer_copy_subset(struct weft_viewer *viewer, const struct weft_viewer *other);
void weft__viewer_set_folding(struct weft_viewer *viewer, const struct weft_folding *folding);

/* Functions of diff_pane.c: one sets the other one of two compared viewers, or NULL; one writes rows of their differences; one
 * handles a press. */
void weft__viewer_set_beside(struct weft_viewer *viewer, struct weft_viewer *beside, bool is_lower);
void weft__viewer_write_differences(struct weft_rows *rows, struct weft_viewer *viewer);
void weft__viewer_press_difference(struct weft_viewer *viewer, const struct weft_row *row);

/* Hides the message that says why the last action changed nothing. */
void weft__viewer_clear_refusal(struct weft_viewer *viewer);

/* Stores the current place in the history, if needed; call it at the start of each user action (history.c). */
void weft__viewer_begin_move(struct weft_viewer *viewer, enum weft_move move);
void weft__viewer_forget_history(struct weft_viewer *viewer);
void weft__viewer_move_history(struct weft_viewer *viewer, struct weft_viewer *other);

/* Returns whether a match comes before another in the order of matches (search.c). */
bool weft__match_is_before(const struct weft_viewer *viewer, uint32_t a, uint32_t b);

/* Do the same as the public functions of that name, but as a part of a user action that has already started. */
int weft__viewer_search(struct weft_viewer *viewer, const char *text, struct weft_error *err);
void weft__viewer_select(struct weft_viewer *viewer, uint32_t promise);

/* Highlights these promises in place of those of a search. */
void weft__viewer_highlight(struct weft_viewer *viewer, const uint32_t *promises, size_t count);
void weft__viewer_select_and_reveal(struct weft_viewer *viewer, uint32_t promise);

/* Functions of threads.c: the spot in the lane of an OS thread at a point of the view; the promise that ran there; and the
 * spot's description, false if there is none. */
struct weft_os_tracks;
const struct weft_os_tracks *weft__viewer_tracks(const struct weft_viewer *viewer);
struct weft_spot weft__viewer_spot_at(const struct weft_viewer *viewer, double x, double y);
bool weft__viewer_same_spot(const struct weft_spot *a, const struct weft_spot *b);
uint32_t weft__viewer_spot_promise(const struct weft_viewer *viewer, const struct weft_spot *spot);
bool weft__viewer_describe_spot(const struct weft_viewer *viewer, const struct weft_spot *spot, char *buf, size_t size);
void weft__viewer_pick(struct weft_viewer *viewer, struct weft_spot spot);

/* Functions of flame_pane.c: the height that the pane takes of the available height; the node under the pointer, its
 * description, and a press on it. */
double weft__viewer_blame_px(const struct weft_viewer *viewer, double available_px);
int weft__viewer_draw_blame(struct weft_viewer *viewer, struct weft_error *err);
void weft__viewer_mark_blame(struct weft_viewer *viewer, double x_px, double y_px);
bool weft__viewer_describe_blame(const struct weft_viewer *viewer, char *buf, size_t size);
void weft__viewer_press_blame(struct weft_viewer *viewer);
void weft__viewer_write_blame(struct weft_rows *rows, const struct weft_viewer *viewer);
void weft__viewer_press_blame_row(struct weft_viewer *viewer, const struct weft_row *row);

/* Updates the hovered spot after the picture has changed under a pointer that did not move (pointer.c). */
void weft__viewer_refresh_pointer(struct weft_viewer *viewer);

/* Writes the name of a promise, such as 'bind 7 "read a block"' (summary.c). */
const char *weft__viewer_promise_name(const struct weft_viewer *viewer, uint32_t promise, char buf[200]);

/* Returns the options for drawing the picture (viewer.c). */
struct weft_draw_options weft__viewer_options(const struct weft_viewer *viewer);

/* Highlights all promises with much(promise) >= 0, and selects and reveals the promise with the largest value (table.c). */
void weft__viewer_go_to_weighted(struct weft_viewer *viewer, int64_t much(void *ctx, uint32_t promise), void *ctx);
void weft__viewer_forget_table(struct weft_viewer *viewer);
/* Updates the table, which covers the measured span; call it when the user has measured or dropped a span. */
void weft__viewer_span_changed(struct weft_viewer *viewer);
uint64_t weft__group_key(
    /* Returns a key that is the same in other traces, and never 0. */
    const struct weft_model *model, const struct weft_table_row *sort);
void weft__viewer_press_table_row(struct weft_viewer *viewer, const struct weft_row *row);

/* Functions of summary_panel.c: one handles a press, and one updates the summary when findings are known or forgotten. */
void weft__viewer_press_summary_row(struct weft_viewer *viewer, const struct weft_row *row);
void weft__viewer_update_summary(struct weft_viewer *viewer);

/* live_panel.c */
void weft__viewer_press_live_row(struct weft_viewer *viewer, const struct weft_row *row);

/* Sets the position of each pane. */
void weft__viewer_place_panes(struct weft_viewer *viewer);

/* Returns the x of the middle of the picture, in px of the viewer. */
static inline double weft__viewer_middle(const struct weft_viewer *viewer)
{
	const struct weft_pane *picture = &viewer->panes[WEFT_PANE_PICTURE];
	return picture->x_px + picture->width_px / 2;
}

/* Shows or hides the pointer's vertical line at a time. */
void weft__viewer_set_guide(struct weft_viewer *viewer, bool shown, int64_t time_ns);

/* Updates the viewer; call it after highlights have changed. */
static inline void weft__viewer_highlighted(struct weft_viewer *viewer)
{
	viewer->overview_is_stale = true;
	weft__viewer_changed(viewer, WEFT_CHANGED_PICTURE | WEFT_CHANGED_PLACE);
}

/* Adds with saturation. */
static inline int64_t weft__add_ns(int64_t a, int64_t b)
{
	int64_t sum;
	return !__builtin_add_overflow(a, b, &sum) ? sum : b < 0 ? INT64_MIN : INT64_MAX;
}

/* Returns whether a number is that of a promise which can be selected. */
static inline bool weft__viewer_is_selectable(const struct weft_viewer *viewer, uint32_t promise)
{
	return promise != WEFT_SYSTEM && promise < viewer->model->promise_count;
}

#endif
