/* move.c: moves the visible interval and the rows.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/duration.h"
#include "viewer/private.h"

enum { MOVED = WEFT_CHANGED_PICTURE | WEFT_CHANGED_PLACE };

void weft_viewer_pan(struct weft_viewer *v, double dx_px, double dy_px)
{
	struct weft_view *view = v->view;
	if (dx_px != 0)
		weft_view_pan(view, dx_px / v->scale);
	if (dy_px != 0 && view->curve > 0)
		/* The focus moves by as many rows as this height contains at the height of the row in focus. */
		weft_view_focus(view, view->focus - dy_px / v->scale / view->pitch_px);
	weft__viewer_changed(v, MOVED);
}

void weft_viewer_zoom(struct weft_viewer *v, double factor, double x_px)
{
	weft_view_zoom(v->view, factor, (x_px - v->panes[WEFT_PANE_PICTURE].x_px) / v->scale);
	weft__viewer_changed(v, MOVED);
}

/* Limits times so that the difference of any two fits into an int64_t. */
static int64_t clamp_time(int64_t time_ns)
{
	const int64_t far_ns = INT64_MAX / 2;
	return time_ns < -far_ns ? -far_ns : time_ns > far_ns ? far_ns : time_ns;
}

void weft_viewer_show(struct weft_viewer *v, int64_t from_ns, int64_t to_ns)
{
	from_ns = clamp_time(from_ns);
	to_ns = clamp_time(to_ns);
	weft_view_show(v->view, from_ns, to_ns);
	weft__viewer_changed(v, MOVED);
}

void weft_viewer_show_all(struct weft_viewer *v)
{
	weft_view_show_all(v->view);
	weft__viewer_changed(v, v->skips_start_up ? MOVED | WEFT_CHANGED_SETTING : MOVED);
	v->skips_start_up = false;
}

/* Shows an interval with a margin on both sides. */
static void show_around(struct weft_viewer *v, int64_t from_ns, int64_t to_ns)
{
	int64_t length = to_ns / 2 - from_ns / 2, around = length / 5 > 100 ? length / 5 : 100;
	weft_viewer_show(v, weft__add_ns(from_ns, -around), weft__add_ns(to_ns, around));
}

static void focus_on(struct weft_viewer *v, uint32_t promise)
{
	uint32_t row = v->layout->rows[promise];
	if (row != WEFT_NONE)
		weft_view_focus(v->view, weft_view_slot(v->view, row));
}

void weft_viewer_show_promise(struct weft_viewer *v, uint32_t promise)
{
	if (!weft__viewer_is_selectable(v, promise))
		return;
	const struct weft_promise *p = &v->model->promises[promise];
	show_around(v, p->start_ns, p->end_ns > p->start_ns ? p->end_ns : p->start_ns);
	focus_on(v, promise);
}

void weft_viewer_show_span(struct weft_viewer *v)
{
	if (v->has_span)
		weft_viewer_show(v, v->span_from_ns, v->span_to_ns);
}

#define REVEAL_MARGIN_PX 40.0 /* distance in px from the edges at which a revealed promise is placed */
#define REVEAL_PITCH_PX 14.0  /* height in px below which rows have no names */

/* Moves the picture sideways as little as needed.  A promise that is longer than the picture counts as visible if it covers a
 * part of the middle. */
static void reveal_time(struct weft_viewer *v, const struct weft_promise *p)
{
	struct weft_view *view = v->view;
	double x0 = weft_view_x(view, p->start_ns), x1 = weft_view_x(view, p->end_ns);
	double margin = view->width_px > 4 * REVEAL_MARGIN_PX ? REVEAL_MARGIN_PX : view->width_px / 4;
	double left = margin, right = view->width_px - margin;
	if (x1 - x0 <= right - left) {
		if (x0 < left || x1 > right)
			weft_view_pan(view, (left + right) / 2 - (x0 + x1) / 2);
	} else if (x1 < left + (right - left) / 4 || x0 > right - (right - left) / 4) {
		weft_view_pan(view, x0 > left ? left - x0 : right - x1);
	}
	/* A pan over a long distance in px is inexact, so the time is set instead. */
	x0 = weft_view_x(view, p->start_ns);
	x1 = weft_view_x(view, p->end_ns);
	if (x1 < 0 || x0 > view->width_px) {
		int64_t from, to;
		weft_viewer_times(v, &from, &to);
		int64_t half = to / 2 - from / 2;
		weft_view_show(view, weft__add_ns(p->start_ns, -half), weft__add_ns(p->start_ns, half));
	}
}

void weft_viewer_reveal(struct weft_viewer *v, uint32_t promise)
{
	if (!weft__viewer_is_selectable(v, promise))
		return;
	reveal_time(v, &v->model->promises[promise]);
	uint32_t row = v->layout->rows[promise];
	if (row != WEFT_NONE) {
		double slot = weft_view_slot(v->view, row);
		double pitch = weft_view_y(v->view, slot + 0.5) - weft_view_y(v->view, slot - 0.5);
		if (pitch < REVEAL_PITCH_PX)
			focus_on(v, promise);
	}
	weft__viewer_changed(v, MOVED);
}

void weft_viewer_times(const struct weft_viewer *v, int64_t *from_ns, int64_t *to_ns)
{
	/* The span is rounded, so that showing exactly this interval restores it. */
	double span = v->view->width_px / v->view->px_per_ns + 0.5;
	*from_ns = v->view->from_ns;
	*to_ns = v->view->lulls ? weft_view_time(v->view, v->view->width_px)
				: weft__add_ns(v->view->from_ns, span < 9e18 ? (int64_t)span : INT64_MAX);
}

static int parse_time(const char *what, const char *text, int64_t *ns, struct weft_error *err)
{
	if (!weft_duration_parse(text, strlen(text), ns))
		return weft_error_set(err, WEFT_EINVAL, "%s must be a number with ns, us, ms or s", what);
	return WEFT_OK;
}

int weft_viewer_set_start(struct weft_viewer *v, const char *text, struct weft_error *err)
{
	int64_t start, from, to;
	int status = parse_time("a start", text, &start, err);
	if (status < 0)
		return status;
	weft__viewer_begin_move(v, WEFT_MOVE_ACTS);
	weft_viewer_times(v, &from, &to);
	to = weft__add_ns(start, to - from);
	weft_viewer_show(v, start, start < v->view->end_ns && to > v->view->end_ns ? v->view->end_ns : to);
	return WEFT_OK;
}

int weft_viewer_go_to_time(struct weft_viewer *v, const char *text, struct weft_error *err)
{
	int64_t middle, from, to;
	int status = parse_time("a time", text, &middle, err);
	if (status < 0)
		return status;
	weft__viewer_begin_move(v, WEFT_MOVE_ACTS);
	weft_viewer_times(v, &from, &to);
	const int64_t half = to / 2 - from / 2;
	weft_viewer_show(v, weft__add_ns(middle, -half), weft__add_ns(middle, half));
	return WEFT_OK;
}

int weft_viewer_set_duration(struct weft_viewer *v, const char *text, struct weft_error *err)
{
	int64_t duration;
	int status = parse_time("a duration", text, &duration, err);
	if (status == WEFT_OK && duration == 0)
		status = weft_error_set(err, WEFT_EINVAL, "a duration must be more than 0");
	if (status < 0)
		return status;
	weft__viewer_begin_move(v, WEFT_MOVE_ACTS);
	weft_viewer_show(v, v->view->from_ns, weft__add_ns(v->view->from_ns, duration));
	return WEFT_OK;
}

struct weft_range weft_viewer_range_x(const struct weft_viewer *v)
{
	double margin = WEFT_VIEW_MARGIN_PX / v->view->px_per_ns, page = v->view->width_px / v->view->px_per_ns;
	struct weft_range r = {
	    -margin, weft_view_shown_ns(v->view, v->model->end_ns) + margin, weft_view_shown_ns(v->view, v->view->from_ns), page};
	/* The visible interval may extend beyond the trace. */
	r.lower = r.value < r.lower ? r.value : r.lower;
	r.upper = r.value + page > r.upper ? r.value + page : r.upper;
	return r;
}

struct weft_range weft_viewer_range_y(const struct weft_viewer *v)
{
	const struct weft_view *view = v->view;
	double inner = view->height_px - view->lanes_px - WEFT_VIEW_TOP_PX - WEFT_VIEW_BOTTOM_PX;
	if (view->curve == 0 || inner <= 0) {
		/* If no promise is alive, no row is shown, and the division needs at least one slot. */
		double slots = view->slots > 1 ? view->slots : 1;
		return (struct weft_range){0, slots, 0, slots};
	}
	/* The page is the number of rows that would fit at the height of the row in focus. */
	double page = inner / view->pitch_px;
	page = page < view->slots / 2 ? page : view->slots / 2;
	return (struct weft_range){-page / 2, view->slots + page / 2, view->focus - page / 2, page};
}

void weft_viewer_scroll_to_x(struct weft_viewer *v, double value)
{
	weft__viewer_begin_move(v, WEFT_MOVE_SCROLLS);
	weft_view_pan(v->view, (weft_view_shown_ns(v->view, v->view->from_ns) - value) * v->view->px_per_ns);
	weft__viewer_changed(v, MOVED);
}

void weft_viewer_scroll_to_y(struct weft_viewer *v, double value)
{
	struct weft_range r = weft_viewer_range_y(v);
	weft__viewer_begin_move(v, WEFT_MOVE_SCROLLS);
	if (v->view->curve > 0)
		weft_view_focus(v->view, value + r.page / 2);
	weft__viewer_changed(v, MOVED);
}
