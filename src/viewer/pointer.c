/* pointer.c: what pointers do.  SPDX-License-Identifier: ISC */
#include "viewer/private.h"

#define CLICK_PX 4.0 /* who moves less, clicks */
#define PAN_PX 80.0  /* a notch of the wheel */
#define NOTCH 0.25   /* how much more a notch shows */

static uint32_t hit(const struct weft_viewer *v, double x_px, double y_px)
{
	return weft_view_hit(v->view, x_px / v->scale, y_px / v->scale);
}

static void hover(struct weft_viewer *v, uint32_t promise)
{
	if (v->hovered == promise)
		return;
	v->hovered = promise;
	weft__viewer_changed(v, WEFT_CHANGED_HOVER);
}

static double distance(double a, double b)
{
	return a > b ? a - b : b - a;
}

void weft_viewer_press(struct weft_viewer *v, double x_px, double y_px, enum weft_button button, unsigned modifiers, int clicks)
{
	v->press_x_px = v->last_x_px = x_px;
	v->press_y_px = y_px;
	if (button == WEFT_BUTTON_SECONDARY) {
		uint32_t promise = hit(v, x_px, y_px);
		v->pointer = WEFT_POINTER_IDLE;
		v->menu_x_px = x_px;
		v->menu_y_px = y_px;
		if (promise != WEFT_NONE)
			weft_viewer_select(v, promise);
		weft__viewer_changed(v, WEFT_CHANGED_MENU);
		return;
	}
	v->pointer_clicks = button == WEFT_BUTTON_PRIMARY ? clicks : 0;
	v->drag_slot = weft_view_slot_at(v->view, y_px / v->scale);
	v->pointer = WEFT_POINTER_PRESSED;
	if (button == WEFT_BUTTON_PRIMARY && (modifiers & WEFT_SHIFT)) {
		v->pointer = WEFT_POINTER_MEASURES;
		v->has_span = true;
		v->span_from_ns = v->span_to_ns = weft_view_time(v->view, x_px / v->scale);
		weft__viewer_changed(v, WEFT_CHANGED_PICTURE);
	}
}

void weft_viewer_motion(struct weft_viewer *v, double x_px, double y_px)
{
	if (v->pointer == WEFT_POINTER_PRESSED &&
	    (distance(x_px, v->press_x_px) >= CLICK_PX || distance(y_px, v->press_y_px) >= CLICK_PX))
		v->pointer = WEFT_POINTER_DRAGS;
	if (v->pointer == WEFT_POINTER_DRAGS) {
		weft_view_pan(v->view, (x_px - v->last_x_px) / v->scale);
		weft_view_focus_so(v->view, v->drag_slot, y_px / v->scale);
		v->last_x_px = x_px;
		weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_PLACE);
	} else if (v->pointer == WEFT_POINTER_MEASURES) {
		v->span_to_ns = weft_view_time(v->view, x_px / v->scale);
		weft__viewer_changed(v, WEFT_CHANGED_PICTURE);
	} else {
		hover(v, hit(v, x_px, y_px));
	}
}

static void end_span(struct weft_viewer *v)
{
	int64_t from = v->span_from_ns, to = v->span_to_ns;
	v->span_from_ns = from < to ? from : to;
	v->span_to_ns = from < to ? to : from;
	v->has_span = from != to;
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_SETTING);
}

void weft_viewer_release(struct weft_viewer *v, double x_px, double y_px)
{
	bool clicked = v->pointer == WEFT_POINTER_PRESSED && v->pointer_clicks > 0;
	if (v->pointer == WEFT_POINTER_MEASURES)
		end_span(v);
	v->pointer = WEFT_POINTER_IDLE;
	if (!clicked)
		return;
	uint32_t promise = hit(v, x_px, y_px);
	weft_viewer_select(v, promise);
	if (v->pointer_clicks == 2 && promise != WEFT_NONE)
		weft_viewer_highlight_related(v, promise);
}

void weft_viewer_leave(struct weft_viewer *v)
{
	if (v->pointer == WEFT_POINTER_MEASURES)
		end_span(v);
	v->pointer = WEFT_POINTER_IDLE;
	hover(v, WEFT_NONE);
}

/* As 1.25 to the power of notches, near enough, and the same everywhere. */
static double zoom_factor(double notches)
{
	double more = notches < 0 ? -notches : notches;
	more = more < 40 ? more : 40;
	double factor = 1 + more * NOTCH;
	return notches < 0 ? factor : 1 / factor;
}

void weft_viewer_wheel(struct weft_viewer *v, double x_px, double y_px, double dx, double dy, unsigned modifiers)
{
	(void)y_px;
	if (dx != dx || dy != dy)
		return;
	if (modifiers & WEFT_SHIFT)
		weft_viewer_pan(v, -(dx + dy) * PAN_PX, 0);
	else if (modifiers & WEFT_CONTROL)
		weft_viewer_pan(v, -dx * PAN_PX, -dy * PAN_PX);
	else if (dy != 0)
		weft_viewer_zoom(v, zoom_factor(dy), x_px);
	else
		weft_viewer_pan(v, -dx * PAN_PX, 0);
}

void weft_viewer_pinch(struct weft_viewer *v, double x_px, double y_px, double factor, double dx_px, double dy_px)
{
	double slot = weft_view_slot_at(v->view, (y_px - dy_px) / v->scale);
	v->pointer = WEFT_POINTER_IDLE;
	weft_view_pan(v->view, dx_px / v->scale);
	weft_view_focus_so(v->view, slot, y_px / v->scale);
	weft_viewer_zoom(v, factor, x_px);
}
