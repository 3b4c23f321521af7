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
struct weft_rows;
void weft__viewer_press_finding_row(struct weft_viewer *viewer, const struct weft_row *row);

/* lane.c: the answer whose path is shown above the picture, or NULL; that pane comes and goes with it. */
struct weft_finding;
const struct weft_finding *weft__viewer_path(const struct weft_viewer *viewer);
int weft__viewer_draw_lane(struct weft_viewer *viewer, struct weft_error *err);
size_t weft__viewer_hit_lane(const struct weft_viewer *viewer, double x_px);
void weft__viewer_press_lane(struct weft_viewer *viewer, double x_px);

/* Asks where the time of the focused promise went; or forgets that, if none is focused. */
void weft__viewer_ask_path(struct weft_viewer *viewer);

/* Selects a promise, if it is one, and shows a time, if it is one. */
void weft__viewer_go_to(struct weft_viewer *viewer, uint32_t promise, int64_t time_ns);

/* part.c: what of the trace is shown in the time that is seen, at its size: it may be folded by itself.  Whether that is another
 * view than before. */
bool weft__viewer_choose_part(struct weft_viewer *viewer);
void weft__viewer_finish_parts(struct weft_viewer *viewer);

/* Shows of a trace read anew what was shown of the other one; folds what the link says. */
void weft__viewer_take_parts(struct weft_viewer *viewer, const struct weft_viewer *other);
void weft__viewer_set_folding(struct weft_viewer *viewer, const struct weft_folding *folding);

/* differ.c: the other one of two that are compared, or NULL; what is said of where they part. */
void weft__viewer_set_beside(struct weft_viewer *viewer, struct weft_viewer *beside, bool is_lower);
void weft__viewer_write_differences(struct weft_rows *rows, struct weft_viewer *viewer);
void weft__viewer_press_difference(struct weft_viewer *viewer, const struct weft_row *row);

/* history.c: the user begins to do something. */
void weft__viewer_begins(struct weft_viewer *viewer, enum weft_move move);
void weft__viewer_forget_history(struct weft_viewer *viewer);
void weft__viewer_take_history(struct weft_viewer *viewer, struct weft_viewer *other);

/* As their namesakes, as a part of something that has begun. */
int weft__viewer_search(struct weft_viewer *viewer, const char *text, struct weft_error *err);
void weft__viewer_select(struct weft_viewer *viewer, uint32_t promise);

/* Highlights these promises in place of what a search found. */
void weft__viewer_mark(struct weft_viewer *viewer, const uint32_t *promises, size_t count);
void weft__viewer_select_and_reveal(struct weft_viewer *viewer, uint32_t promise);

/* threads.c: the place in the lane of an OS thread at a point of the view; who ran there; what is told of it, false: nothing. */
struct weft_os_tracks;
const struct weft_os_tracks *weft__viewer_tracks(const struct weft_viewer *viewer);
struct weft_spot weft__viewer_spot_at(const struct weft_viewer *viewer, double x, double y);
bool weft__viewer_same_spot(const struct weft_spot *a, const struct weft_spot *b);
uint32_t weft__viewer_spot_promise(const struct weft_viewer *viewer, const struct weft_spot *spot);
bool weft__viewer_tell_spot(const struct weft_viewer *viewer, const struct weft_spot *spot, char *buf, size_t size);
void weft__viewer_pick(struct weft_viewer *viewer, struct weft_spot spot);

/* blame.c: as much of the room as it wants; the part that the pointer is on, what is told of it, what a press there does. */
double weft__viewer_blame_px(const struct weft_viewer *viewer, double room_px);
int weft__viewer_draw_blame(struct weft_viewer *viewer, struct weft_error *err);
void weft__viewer_mark_blame(struct weft_viewer *viewer, double x_px, double y_px);
bool weft__viewer_tell_blame(const struct weft_viewer *viewer, char *buf, size_t size);
void weft__viewer_press_blame(struct weft_viewer *viewer);
void weft__viewer_write_blame(struct weft_rows *rows, const struct weft_viewer *viewer);
void weft__viewer_press_blame_row(struct weft_viewer *viewer, const struct weft_row *row);

/* pointer.c: the picture is another one under a pointer that has not moved. */
void weft__viewer_point_again(struct weft_viewer *viewer);

/* summary.c: 'bind 7 "read a block"' */
const char *weft__viewer_call(const struct weft_viewer *viewer, uint32_t promise, char buf[200]);

/* viewer.c: how its picture is drawn. */
struct weft_draw_options weft__viewer_options(const struct weft_viewer *viewer);

/* table.c; highlights those of which something is not negative, and goes to the one of which it is most. */
void weft__viewer_go_to_those(struct weft_viewer *viewer, int64_t much(void *ctx, uint32_t promise), void *ctx);
void weft__viewer_forget_table(struct weft_viewer *viewer);
uint64_t weft__sort_key(
    const struct weft_model *model, const struct weft_table_row *sort); /* the same in other traces; never 0 */
void weft__viewer_press_table_row(struct weft_viewer *viewer, const struct weft_row *row);

/* live_panel.c */
void weft__viewer_press_live_row(struct weft_viewer *viewer, const struct weft_row *row);

/* Gives each pane its place. */
void weft__viewer_arrange(struct weft_viewer *viewer);

/* Where the pointer's line stands, if it does. */
void weft__viewer_guide(struct weft_viewer *viewer, bool shown, int64_t time_ns);

/* Other promises are highlighted. */
static inline void weft__viewer_highlighted(struct weft_viewer *viewer)
{
	viewer->overview_is_stale = true;
	weft__viewer_changed(viewer, WEFT_CHANGED_PICTURE | WEFT_CHANGED_PLACE);
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
