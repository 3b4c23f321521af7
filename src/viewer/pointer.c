/* pointer.c: handles pointer input.  SPDX-License-Identifier: ISC */
#include "base/search.h"
#include "viewer/findings.h"
#include "viewer/private.h"

#define CLICK_PX 4.0 /* distance in px below which a press and a release are a click */
/* Distance in px from a promise's line within which the promise takes precedence over an arrow that crosses it. */
#define LINE_PX 3.0
#define PAN_PX 80.0 /* distance in px by which a notch of the wheel pans */
#define SNAP_PX 8.0 /* distance in px within which a measurement snaps to the start or end of a promise or run */
#define GRIP_PX 4.0 /* half the width in px of the gutter's edge */
#define NOTCH 0.25  /* part by which a notch of the wheel zooms */

static const struct weft_arrow_hit no_arrow = {WEFT_NONE, 0};

/* Convert px of the viewer to px of the view. */
static double view_x(const struct weft_viewer *v, double x_px)
{
	return (x_px - v->panes[WEFT_PANE_PICTURE].x_px) / v->scale;
}

static double view_y(const struct weft_viewer *v, double y_px)
{
	return (y_px - v->panes[WEFT_PANE_PICTURE].y_px) / v->scale;
}

static bool is_in(const struct weft_viewer *v, int pane, double x_px, double y_px)
{
	const struct weft_pane *p = &v->panes[pane];
	return y_px >= p->y_px && y_px < p->y_px + p->height_px && x_px >= p->x_px;
}

static bool is_in_gutter(const struct weft_viewer *v, double x_px, double y_px)
{
	const struct weft_pane *p = &v->panes[WEFT_PANE_GUTTER];
	return p->height_px > 0 && is_in(v, WEFT_PANE_GUTTER, x_px, y_px) && x_px < p->width_px;
}

/* Returns whether a point is at the edge by which the user drags the gutter. */
static bool is_at_gutter_edge(const struct weft_viewer *v, double x_px, double y_px)
{
	const struct weft_pane *p = &v->panes[WEFT_PANE_GUTTER];
	return p->height_px > 0 && is_in(v, WEFT_PANE_GUTTER, 0, y_px) && x_px >= p->width_px - GRIP_PX &&
	       x_px < p->width_px + GRIP_PX / 2;
}

static struct weft_spot spot_at(const struct weft_viewer *v, double x_px, double y_px)
{
	if (!is_in(v, WEFT_PANE_PICTURE, x_px, y_px))
		return (struct weft_spot){.track = WEFT_NONE};
	return weft__viewer_spot_at(v, view_x(v, x_px), view_y(v, y_px));
}

static uint32_t find_promise_at(const struct weft_viewer *v, double x_px, double y_px)
{
	if (is_in_gutter(v, x_px, y_px)) {
		uint32_t promise =
		    y_px >= v->panes[WEFT_PANE_PICTURE].y_px ? weft_gutter_promise_at(v->view, view_y(v, y_px)) : WEFT_NONE;
		return weft__viewer_is_selectable(v, promise) ? promise : WEFT_NONE;
	}
	const struct weft_spot spot = spot_at(v, x_px, y_px);
	if (spot.track != WEFT_NONE)
		return weft__viewer_spot_promise(v, &spot);
	size_t step = is_in(v, WEFT_PANE_LANE, x_px, y_px) ? weft__viewer_hit_lane(v, x_px) : SIZE_MAX;
	if (step != SIZE_MAX) {
		uint32_t cause = weft_step_cause(&weft__viewer_path(v)->steps[step]);
		return weft__viewer_is_selectable(v, cause) ? cause : WEFT_NONE;
	}
	if (!is_in(v, WEFT_PANE_PICTURE, x_px, y_px))
		return WEFT_NONE;
	return weft_view_hit(v->view, view_x(v, x_px), view_y(v, y_px));
}

static double distance_px(double a, double b)
{
	return a > b ? a - b : b - a;
}

/* Returns the arrow under the pointer, unless a promise is nearer. */
static struct weft_arrow_hit arrow_at(const struct weft_viewer *v, double x_px, double y_px, uint32_t promise)
{
	struct weft_arrow_hit hit = {WEFT_NONE, 0};
	double x = view_x(v, x_px), y = view_y(v, y_px);
	bool on_line = promise != WEFT_NONE && v->layout->rows[promise] != WEFT_NONE &&
		       distance_px(y, weft_view_y(v->view, weft_view_slot(v->view, v->layout->rows[promise]))) < LINE_PX;
	if (is_in(v, WEFT_PANE_PICTURE, x_px, y_px) && !on_line && !weft_draw_arrow_at(&v->lists[WEFT_PANE_MARKS], x, y, &hit))
		weft_draw_arrow_at(&v->lists[WEFT_PANE_PICTURE], x, y, &hit);
	return hit;
}

/* Marks the step of the path lane that is under the pointer. */
static void mark_lane(struct weft_viewer *v, double x_px, double y_px)
{
	size_t step = is_in(v, WEFT_PANE_LANE, x_px, y_px) ? weft__viewer_hit_lane(v, x_px) : SIZE_MAX;
	if (v->lane_marked == step)
		return;
	v->lane_marked = step;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY);
}

static void set_hovered(struct weft_viewer *v, uint32_t promise, struct weft_arrow_hit arrow, struct weft_spot spot)
{
	if (!weft__viewer_same_spot(&v->hovered_spot, &spot))
		weft__viewer_changed(v, WEFT_CHANGED_OVERLAY | WEFT_CHANGED_HOVER);
	v->hovered_spot = spot;
	if (v->hovered_link != arrow.link || v->hovered_links != arrow.count)
		weft__viewer_changed(v, WEFT_CHANGED_OVERLAY | WEFT_CHANGED_HOVER);
	v->hovered_link = arrow.link;
	v->hovered_links = arrow.count;
	if (v->hovered == promise)
		return;
	v->hovered = promise;
	weft__viewer_changed(v, WEFT_CHANGED_HOVER | WEFT_CHANGED_OVERLAY);
}

void weft__viewer_refresh_pointer(struct weft_viewer *v)
{
	if (!v->has_pointer || v->pointer != WEFT_POINTER_IDLE)
		return;
	const struct weft_spot spot = spot_at(v, v->last_x_px, v->last_y_px);
	if (weft__viewer_same_spot(&v->hovered_spot, &spot))
		return;
	v->hovered_spot = spot;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY | WEFT_CHANGED_HOVER);
}

/* Shows the vertical line at the pointer. */
static void show_guide(struct weft_viewer *v, bool shown, double x_px)
{
	int64_t time_ns = weft_view_time(v->view, view_x(v, x_px));
	weft__viewer_set_guide(v, shown, time_ns);
}

void weft__viewer_set_guide(struct weft_viewer *v, bool shown, int64_t time_ns)
{
	if (v->has_pointer == shown && (!shown || v->pointer_ns == time_ns))
		return;
	v->has_pointer = shown;
	v->pointer_ns = time_ns;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY);
}

static void drag_overview(struct weft_viewer *v, double from_x_px, double to_x_px)
{
	double width = v->width_px / v->scale;
	weft_overview_drag(v->overview, v->view, width, v->grip, from_x_px / v->scale, to_x_px / v->scale);
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_PLACE);
}

static void snap_to(const struct weft_viewer *v, int64_t time_ns, double x, double *best, int64_t *found_ns)
{
	double off = distance_px(weft_view_x(v->view, time_ns), x);
	if (off < *best) {
		*best = off;
		*found_ns = time_ns;
	}
}

/* Returns the time from or to which the user measures: the start or end of the line under the pointer, or of one of the line's
 * runs, if near; else the time under the pointer. */
static int64_t measured_at(const struct weft_viewer *v, double x_px, double y_px)
{
	double x = view_x(v, x_px), best = SNAP_PX;
	int64_t found_ns = weft_view_time(v->view, x), from_ns = weft_view_time(v->view, x - SNAP_PX);
	uint32_t promise = is_in(v, WEFT_PANE_PICTURE, x_px, y_px) ? weft_view_hit(v->view, x, view_y(v, y_px)) : WEFT_NONE;
	if (promise == WEFT_NONE)
		return found_ns;
	const struct weft_promise *p = &v->model->promises[promise];
	const struct weft_run *runs = v->model->runs;
	snap_to(v, p->start_ns, x, &best, &found_ns);
	snap_to(v, weft_layout_end(v->layout, v->model, promise), x, &best, &found_ns);
	for (size_t r = WEFT_FIND_FIRST(i, p->runs, p[1].runs, runs[i].end_ns >= from_ns);
	     r < p[1].runs && weft_view_x(v->view, runs[r].start_ns) < x + SNAP_PX; r++) {
		snap_to(v, runs[r].start_ns, x, &best, &found_ns);
		snap_to(v, runs[r].end_ns, x, &best, &found_ns);
	}
	return found_ns;
}

static double clamp_px(double x, double least, double most)
{
	return x < least ? least : x > most ? most : x;
}

void weft_viewer_menu(struct weft_viewer *v)
{
	const struct weft_pane *picture = &v->panes[WEFT_PANE_PICTURE];
	v->menu_x_px = picture->x_px + picture->width_px / 2;
	v->menu_y_px = picture->y_px + picture->height_px / 2;
	if (v->selected != WEFT_NONE && v->layout->rows[v->selected] != WEFT_NONE) {
		const struct weft_promise *p = &v->model->promises[v->selected];
		double slot = weft_view_slot(v->view, v->layout->rows[v->selected]);
		double left = clamp_px(weft_view_x(v->view, p->start_ns) * v->scale, 0, picture->width_px),
		       right = clamp_px(weft_view_x(v->view, p->end_ns) * v->scale, 0, picture->width_px);
		v->menu_x_px = picture->x_px + (left + right) / 2;
		v->menu_y_px = picture->y_px + clamp_px(weft_view_y(v->view, slot) * v->scale, 0, picture->height_px);
	}
	weft__viewer_changed(v, WEFT_CHANGED_MENU);
}

void weft_viewer_press(struct weft_viewer *v, double x_px, double y_px, enum weft_button button, unsigned modifiers, int clicks)
{
	weft__viewer_begin_move(v, WEFT_MOVE_ACTS);
	v->press_x_px = v->last_x_px = x_px;
	v->press_y_px = y_px;
	if (button == WEFT_BUTTON_SECONDARY) {
		uint32_t promise = find_promise_at(v, x_px, y_px);
		v->pointer = WEFT_POINTER_IDLE;
		v->menu_x_px = x_px;
		v->menu_y_px = y_px;
		if (promise != WEFT_NONE)
			weft__viewer_select(v, promise);
		weft__viewer_changed(v, WEFT_CHANGED_MENU);
		return;
	}
	v->pointer_clicks = button == WEFT_BUTTON_PRIMARY ? clicks : 0;
	if (is_at_gutter_edge(v, x_px, y_px)) {
		v->pointer = WEFT_POINTER_GUTTER;
		if (v->pointer_clicks == 2)
			weft_viewer_set_names(v, true, 0);
		return;
	}
	if (is_in(v, WEFT_PANE_OVERVIEW, x_px, y_px)) {
		double width = v->width_px / v->scale, x = x_px / v->scale;
		v->pointer = WEFT_POINTER_OVERVIEW;
		v->grip = weft_overview_grip(v->overview, v->view, width, x);
		drag_overview(v, x_px, x_px);
		if (v->grip == WEFT_GRIP_NONE) /* the frame has moved to the pointer, and follows the pointer from now on */
			v->grip = WEFT_GRIP_FRAME;
		return;
	}
	if (is_in(v, WEFT_PANE_BLAME, x_px, y_px)) {
		weft__viewer_mark_blame(v, x_px, y_px);
		weft__viewer_press_blame(v);
		return;
	}
	v->drag_slot = weft_view_slot_at(v->view, view_y(v, y_px));
	v->pointer = WEFT_POINTER_PRESSED;
	bool in_ruler = is_in(v, WEFT_PANE_RULER, x_px, y_px);
	if (button == WEFT_BUTTON_PRIMARY && (in_ruler || (modifiers & WEFT_SHIFT))) {
		v->pointer = WEFT_POINTER_MEASURES;
		v->has_span = true;
		v->span_from_ns = v->span_to_ns = measured_at(v, x_px, y_px);
		weft__viewer_changed(v, WEFT_CHANGED_OVERLAY);
	}
}

void weft_viewer_motion(struct weft_viewer *v, double x_px, double y_px)
{
	if (v->pointer == WEFT_POINTER_PRESSED &&
	    (distance_px(x_px, v->press_x_px) >= CLICK_PX || distance_px(y_px, v->press_y_px) >= CLICK_PX))
		v->pointer = WEFT_POINTER_DRAGS;
	if (v->pointer == WEFT_POINTER_DRAGS) {
		weft_view_pan(v->view, (x_px - v->last_x_px) / v->scale);
		weft_view_focus_slot_at_y(v->view, v->drag_slot, view_y(v, y_px));
		v->last_x_px = x_px;
		weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_PLACE);
	} else if (v->pointer == WEFT_POINTER_MEASURES) {
		v->span_to_ns = measured_at(v, x_px, y_px);
		weft__viewer_changed(v, WEFT_CHANGED_OVERLAY);
	} else if (v->pointer == WEFT_POINTER_GUTTER) {
		if (distance_px(x_px, v->press_x_px) > 0)
			weft_viewer_set_names(v, true, x_px / v->scale);
		v->last_x_px = x_px;
	} else if (v->pointer == WEFT_POINTER_OVERVIEW) {
		drag_overview(v, v->last_x_px, x_px);
		v->last_x_px = x_px;
	} else {
		if (v->pointer == WEFT_POINTER_IDLE) {
			/* The tooltip is beside the pointer, and shown only near the line. */
			if (is_at_gutter_edge(v, x_px, y_px) != is_at_gutter_edge(v, v->last_x_px, v->last_y_px))
				weft__viewer_changed(v, WEFT_CHANGED_OVERLAY); /* the cursor changes */
			if ((v->hovered != WEFT_NONE || v->hovered_spot.track != WEFT_NONE) && v->last_y_px != y_px)
				weft__viewer_changed(v, WEFT_CHANGED_OVERLAY);
			v->last_x_px = x_px;
			v->last_y_px = y_px;
		}
		uint32_t promise = find_promise_at(v, x_px, y_px);
		const struct weft_spot spot = spot_at(v, x_px, y_px);
		set_hovered(v, promise, spot.track != WEFT_NONE ? no_arrow : arrow_at(v, x_px, y_px, promise), spot);
		mark_lane(v, x_px, y_px);
		weft__viewer_mark_blame(v, x_px, y_px);
		if (v->blame_marked != SIZE_MAX && v->last_x_px != x_px)
			weft__viewer_changed(v, WEFT_CHANGED_OVERLAY);
	}
	bool in_overview = v->pointer == WEFT_POINTER_OVERVIEW || v->pointer == WEFT_POINTER_GUTTER ||
			   is_in(v, WEFT_PANE_OVERVIEW, x_px, y_px) || is_in(v, WEFT_PANE_BLAME, x_px, y_px) ||
			   is_in_gutter(v, x_px, y_px);
	show_guide(v, !in_overview || v->pointer == WEFT_POINTER_DRAGS || v->pointer == WEFT_POINTER_MEASURES, x_px);
}

static void end_span(struct weft_viewer *v)
{
	int64_t from = v->span_from_ns, to = v->span_to_ns;
	v->span_from_ns = from < to ? from : to;
	v->span_to_ns = from < to ? to : from;
	v->has_span = from != to;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY | WEFT_CHANGED_SETTING);
	weft__viewer_span_changed(v);
}

/* Unfolds the line of a promise, by removing the query that folded it.  Returns false if no query folded the line. */
static bool unfold_promise(struct weft_viewer *v, uint32_t promise)
{
	static const enum weft_fold_target all[] = {
	    WEFT_FOLD_TRACK, WEFT_FOLD_KIND, WEFT_FOLD_LIKE, WEFT_FOLD_SITE, WEFT_FOLD_LIBRARY};
	char text[WEFT_QUERY_BYTES + 1];
	const struct weft_fold *fold = weft_layout_fold(v->layout, promise);
	if (!fold || (!fold->is_track && !fold->is_group))
		return false;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (weft_viewer_fold_query(v, promise, all[i], text) && weft_folding_has(&v->folding, text)) {
			weft_viewer_fold(v, text);
			return true;
		}
	if (weft_viewer_open_fold(v, promise))
		return true;
	weft_viewer_show_internals(v, true);
	return true;
}

/* Folds or unfolds the row if its triangle was pressed; otherwise selects its promise. */
static void press_name(struct weft_viewer *v, double x_px, double y_px)
{
	const uint32_t promise = find_promise_at(v, x_px, y_px);
	const enum weft_gutter_fold fold = promise == WEFT_NONE ? WEFT_GUTTER_NO_FOLD : weft_gutter_fold_of(v->layout, promise);
	const bool toggles = x_px < WEFT_GUTTER_FOLD_PX * v->scale || v->pointer_clicks == 2;
	char text[WEFT_QUERY_BYTES + 1];
	if (fold == WEFT_GUTTER_UNFOLDS && toggles && unfold_promise(v, promise))
		return;
	if (fold == WEFT_GUTTER_FOLDS && toggles && weft_viewer_open_fold(v, promise))
		return;
	if (fold == WEFT_GUTTER_FOLDS && toggles && weft_viewer_fold_query(v, promise, WEFT_FOLD_TRACK, text)) {
		weft_viewer_fold(v, text);
		return;
	}
	weft__viewer_select(v, promise);
}

void weft_viewer_release(struct weft_viewer *v, double x_px, double y_px)
{
	bool clicked = v->pointer == WEFT_POINTER_PRESSED && v->pointer_clicks > 0;
	if (v->pointer == WEFT_POINTER_MEASURES)
		end_span(v);
	v->pointer = WEFT_POINTER_IDLE;
	if (!clicked)
		return;
	if (is_in(v, WEFT_PANE_LANE, x_px, y_px))
		weft__viewer_press_lane(v, x_px);
	if (is_in_gutter(v, x_px, y_px))
		press_name(v, x_px, y_px);
	if (!is_in(v, WEFT_PANE_PICTURE, x_px, y_px))
		return;
	if (weft_draw_is_crumb_at(&v->lists[WEFT_PANE_GUIDES], view_x(v, x_px), view_y(v, y_px))) {
		weft__viewer_clear_refusal(v);
		weft__viewer_show_everything(v);
		return;
	}
	const struct weft_spot spot = spot_at(v, x_px, y_px);
	if (spot.track != WEFT_NONE) {
		weft__viewer_pick(v, spot);
		return;
	}
	uint32_t promise = find_promise_at(v, x_px, y_px);
	weft__viewer_select(v, promise);
	if (v->pointer_clicks == 2 && promise != WEFT_NONE && !unfold_promise(v, promise))
		weft_viewer_highlight_related(v, promise);
}

void weft_viewer_leave(struct weft_viewer *v)
{
	if (v->pointer == WEFT_POINTER_MEASURES)
		end_span(v);
	v->pointer = WEFT_POINTER_IDLE;
	set_hovered(v, WEFT_NONE, no_arrow, (struct weft_spot){.track = WEFT_NONE});
	mark_lane(v, -1, -1);
	weft__viewer_mark_blame(v, -1, -1);
	weft__viewer_set_guide(v, false, 0);
}

/* Returns 1.25 to the power of `notches`, interpolated between whole numbers, with equal results on every platform.  On a busy
 * machine several notches may be reported at once, which has the same result. */
static double zoom_factor(double notches)
{
	const double size = notches < 0 ? -notches : notches;
	const int whole = size < 40 ? (int)size : 40;
	double factor = 1;
	for (int i = 0; i < whole; i++)
		factor *= 1 + NOTCH;
	if (size < 40)
		factor *= 1 + (size - whole) * NOTCH;
	return notches < 0 ? factor : 1 / factor;
}

void weft_viewer_wheel(struct weft_viewer *v, double x_px, double y_px, double dx, double dy, unsigned modifiers)
{
	if (dx != dx || dy != dy)
		return;
	weft__viewer_begin_move(v, modifiers & (WEFT_SHIFT | WEFT_CONTROL) || dy == 0 ? WEFT_MOVE_SCROLLS : WEFT_MOVE_ZOOMS);
	if (modifiers & WEFT_SHIFT)
		weft_viewer_pan(v, -(dx + dy) * PAN_PX, 0);
	else if (modifiers & WEFT_CONTROL)
		weft_viewer_pan(v, -dx * PAN_PX, -dy * PAN_PX);
	else if (dy != 0)
		weft_viewer_zoom(v, zoom_factor(dy), is_in(v, WEFT_PANE_OVERVIEW, x_px, y_px) ? weft__viewer_middle(v) : x_px);
	else
		weft_viewer_pan(v, -dx * PAN_PX, 0);
	if (v->has_pointer)
		show_guide(v, true, x_px);
}

void weft_viewer_pinch(struct weft_viewer *v, double x_px, double y_px, double factor, double dx_px, double dy_px)
{
	double slot = weft_view_slot_at(v->view, view_y(v, y_px - dy_px));
	v->pointer = WEFT_POINTER_IDLE;
	weft__viewer_begin_move(v, WEFT_MOVE_ZOOMS);
	weft_view_pan(v->view, dx_px / v->scale);
	weft_view_focus_slot_at_y(v->view, slot, view_y(v, y_px));
	weft_viewer_zoom(v, factor, x_px);
}

enum weft_cursor weft_viewer_cursor(const struct weft_viewer *v)
{
	switch (v->pointer) {
	case WEFT_POINTER_DRAGS: return WEFT_CURSOR_GRABBING;
	case WEFT_POINTER_MEASURES: return WEFT_CURSOR_MEASURE;
	case WEFT_POINTER_GUTTER: return WEFT_CURSOR_RESIZE;
	case WEFT_POINTER_OVERVIEW: return v->grip == WEFT_GRIP_FRAME ? WEFT_CURSOR_GRABBING : WEFT_CURSOR_RESIZE;
	default: break;
	}
	if (is_at_gutter_edge(v, v->last_x_px, v->last_y_px))
		return WEFT_CURSOR_RESIZE;
	bool on_crumb = v->has_pointer &&
			weft_draw_is_crumb_at(&v->lists[WEFT_PANE_GUIDES], view_x(v, v->last_x_px), view_y(v, v->last_y_px));
	if (v->hovered != WEFT_NONE || on_crumb || v->blame_marked != SIZE_MAX)
		return WEFT_CURSOR_LINK;
	if (v->has_pointer && is_in(v, WEFT_PANE_RULER, v->last_x_px, v->last_y_px))
		return WEFT_CURSOR_MEASURE;
	if (v->has_pointer || !is_in(v, WEFT_PANE_OVERVIEW, v->last_x_px, v->last_y_px))
		return WEFT_CURSOR_ARROW;
	enum weft_grip grip = weft_overview_grip(v->overview, v->view, v->width_px / v->scale, v->last_x_px / v->scale);
	return grip == WEFT_GRIP_LEFT || grip == WEFT_GRIP_RIGHT ? WEFT_CURSOR_RESIZE : WEFT_CURSOR_ARROW;
}
