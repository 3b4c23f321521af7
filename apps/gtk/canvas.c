/* canvas.c: the GTK widget that draws viewers.  The widget keeps the drawn pictures until something changes.
 * SPDX-License-Identifier: ISC */
#include "canvas.h"

#include <stdio.h>
#include <time.h>

#include "backends/cairo/cairo.h"

#define TIMES 4096u

struct _WeftCanvas {
	GtkWidget parent_instance;
	struct weft_compare *viewers;
	struct weft_cairo *cairo;
	GdkTexture *picture,
	    /* Textures of the picture, and of the overlay, which alone changes when the pointer moves; NULL if the texture must
	     * be drawn. */
	    *above;
	double pointer_x, pointer_y;
	double pinch;
	enum weft_cursor cursor;
	guint update; /* id of the idle source that calls emit_changes(), or 0 */
	double times_ms[TIMES];
	size_t time_count;
	gint64 first_us;
};

G_DEFINE_FINAL_TYPE(WeftCanvas, weft_canvas, GTK_TYPE_WIDGET)

enum { CHANGED, SIGNALS };
static guint signals[SIGNALS];

double weft_canvas_text_scale(WeftCanvas *canvas)
{
	int dpi = -1;
	g_object_get(gtk_widget_get_settings(GTK_WIDGET(canvas)), "gtk-xft-dpi", &dpi, NULL);
	return dpi > 0 ? CLAMP(dpi / 1024.0 / 96.0, 0.5, 4.0) : 1.0;
}

enum weft_theme weft_canvas_theme(void)
{
	return adw_style_manager_get_dark(adw_style_manager_get_default()) ? WEFT_THEME_DARK : WEFT_THEME_LIGHT;
}

static void redraw_all(WeftCanvas *canvas)
{
	g_clear_object(&canvas->picture);
	g_clear_object(&canvas->above);
	gtk_widget_queue_draw(GTK_WIDGET(canvas));
}

static void show_cursor(WeftCanvas *canvas)
{
	static const char *const names[] = {[WEFT_CURSOR_ARROW] = "default",
	    [WEFT_CURSOR_LINK] = "pointer",
	    [WEFT_CURSOR_GRABBING] = "grabbing",
	    [WEFT_CURSOR_RESIZE] = "ew-resize",
	    [WEFT_CURSOR_MEASURE] = "crosshair"};
	enum weft_cursor cursor = weft_viewer_cursor(weft_compare_active(canvas->viewers));
	if (cursor == canvas->cursor)
		return;
	canvas->cursor = cursor;
	gtk_widget_set_cursor_from_name(GTK_WIDGET(canvas), names[cursor]);
}

static gboolean emit_changes(gpointer data)
{
	WeftCanvas *canvas = data;
	canvas->update = 0;
	unsigned changes = canvas->viewers ? weft_compare_take_changes(canvas->viewers) : 0;
	if (changes & WEFT_CHANGED_PICTURE) {
		redraw_all(canvas);
	} else if (changes & WEFT_CHANGED_OVERLAY) {
		g_clear_object(&canvas->above);
		gtk_widget_queue_draw(GTK_WIDGET(canvas));
	}
	if (canvas->viewers && canvas->viewers->count > 0)
		show_cursor(canvas);
	if (changes)
		g_signal_emit(canvas, signals[CHANGED], 0, changes);
	return G_SOURCE_REMOVE;
}

/* Reports changes later, because several pointer motions may come together, and a handler of "changed" may itself change the
 * viewers. */
void weft_canvas_update(WeftCanvas *canvas)
{
	if (!canvas->update)
		canvas->update = g_idle_add_full(GDK_PRIORITY_REDRAW - 5, emit_changes, canvas, NULL);
}

static void resize_viewers(WeftCanvas *canvas)
{
	int width = gtk_widget_get_width(GTK_WIDGET(canvas)), height = gtk_widget_get_height(GTK_WIDGET(canvas));
	if (canvas->viewers && width > 0 && height > 0) {
		weft_compare_resize(canvas->viewers, width, height, weft_canvas_text_scale(canvas));
		weft_canvas_update(canvas);
	}
}

/* For benchmarks: appends to a file the monotonic time at which the first frame with a trace was drawn, and the duration of each
 * frame. */
static void write_times(WeftCanvas *canvas)
{
	const char *path = g_getenv("WEFT_VIEW_TIMES");
	FILE *file = path && canvas->time_count > 0 ? fopen(path, "a") : NULL;
	if (!file)
		return;
	fprintf(file, "first %" G_GINT64_FORMAT "\n", canvas->first_us);
	for (size_t i = 0; i < canvas->time_count; i++)
		fprintf(file, "frame %.3f\n", canvas->times_ms[i]);
	fclose(file);
	canvas->time_count = 0;
}

void weft_canvas_set_viewers(WeftCanvas *canvas, struct weft_compare *viewers)
{
	if (!viewers)
		write_times(canvas);
	canvas->viewers = viewers;
	if (viewers)
		weft_compare_set_measure(viewers, weft_cairo_measure, canvas->cairo);
	resize_viewers(canvas);
	redraw_all(canvas);
}

static void free_surface(gpointer surface)
{
	cairo_surface_destroy(surface);
}

static bool is_picture(const WeftCanvas *canvas, const struct weft_pane *pane)
{
	for (size_t i = 0; i < canvas->viewers->count; i++)
		for (int part = WEFT_PANE_PICTURE; part <= WEFT_PANE_GUTTER; part++)
			if (pane->list == &canvas->viewers->viewers[i]->lists[part])
				return true;
	return false;
}

/* Draws either the panes that are pictures, on the background colour, or all other panes, on a transparent ground. */
static GdkTexture *draw_panes(WeftCanvas *canvas, const struct weft_pane *panes, int count, bool pictures)
{
	int device = gtk_widget_get_scale_factor(GTK_WIDGET(canvas));
	int width = gtk_widget_get_width(GTK_WIDGET(canvas)) * device,
	    height = gtk_widget_get_height(GTK_WIDGET(canvas)) * device;
	enum weft_theme theme = weft_canvas_theme();
	uint32_t ground = weft_theme_rgb(theme, WEFT_PAINT_BACKGROUND);

	cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, width, height);
	cairo_t *cr = cairo_create(surface);
	if (pictures) {
		cairo_set_source_rgb(cr, (ground >> 16) / 255.0, (ground >> 8 & 255) / 255.0, (ground & 255) / 255.0);
		cairo_paint(cr);
	}
	cairo_scale(cr, device, device);
	for (int i = 0; i < count; i++) {
		if (is_picture(canvas, &panes[i]) != pictures)
			continue;
		cairo_save(cr);
		cairo_rectangle(cr, panes[i].x_px, panes[i].y_px, panes[i].width_px, panes[i].height_px);
		cairo_clip(cr);
		cairo_translate(cr, panes[i].x_px, panes[i].y_px);
		cairo_scale(cr, panes[i].scale, panes[i].scale);
		weft_cairo_draw(canvas->cairo, cr, panes[i].list, theme);
		cairo_restore(cr);
	}
	cairo_destroy(cr);
	cairo_surface_flush(surface);
	size_t stride = (size_t)cairo_image_surface_get_stride(surface);
	GBytes *bytes =
	    g_bytes_new_with_free_func(cairo_image_surface_get_data(surface), stride * (size_t)height, free_surface, surface);
	GdkTexture *texture = gdk_memory_texture_new(width, height, GDK_MEMORY_DEFAULT, bytes, stride);
	g_bytes_unref(bytes);
	return texture;
}

/* Returns the CPU time of this OS thread in ms. */
static double cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void draw_all(WeftCanvas *canvas)
{
	struct weft_pane panes[WEFT_COMPARE_PANES];
	double begin = cpu_ms();
	bool whole = canvas->picture == NULL;
	int count = canvas->viewers ? weft_compare_draw(canvas->viewers, panes, WEFT_COMPARE_PANES, NULL) : 0;
	if (!canvas->picture)
		canvas->picture = draw_panes(canvas, panes, count, true);
	if (!canvas->above)
		canvas->above = draw_panes(canvas, panes, count, false);
	if (whole && count > 0 && canvas->time_count == 0)
		canvas->first_us = g_get_monotonic_time();
	if (whole && count > 0 && canvas->time_count < TIMES)
		canvas->times_ms[canvas->time_count++] = cpu_ms() - begin;
}

static GdkRGBA color_of(enum weft_paint paint, float alpha)
{
	const uint32_t rgb = weft_theme_rgb(weft_canvas_theme(), paint);
	return (GdkRGBA){(float)(rgb >> 16) / 255, (float)(rgb >> 8 & 255) / 255, (float)(rgb & 255) / 255, alpha};
}

/* Draws the name of each trace into its picture, if there are several traces. */
static void draw_names(WeftCanvas *canvas, GtkSnapshot *snapshot)
{
	const GdkRGBA ground = color_of(WEFT_PAINT_BACKGROUND, 0.9f), text = color_of(WEFT_PAINT_BAND_TEXT, 1);
	for (size_t i = 0; canvas->viewers && canvas->viewers->count > 1 && i < canvas->viewers->count; i++) {
		PangoLayout *layout = gtk_widget_create_pango_layout(GTK_WIDGET(canvas), canvas->viewers->viewers[i]->name);
		int width, height;
		pango_layout_get_pixel_size(layout, &width, &height);
		graphene_rect_t box =
		    GRAPHENE_RECT_INIT(8, (float)canvas->viewers->tops_px[i] + 4, (float)width + 16, (float)height + 4);
		GskRoundedRect round;
		gsk_rounded_rect_init_from_rect(&round, &box, box.size.height / 2);
		gtk_snapshot_push_rounded_clip(snapshot, &round);
		gtk_snapshot_append_color(snapshot, &ground, &box);
		gtk_snapshot_pop(snapshot);
		gtk_snapshot_save(snapshot);
		gtk_snapshot_translate(snapshot, &GRAPHENE_POINT_INIT(box.origin.x + 8, box.origin.y + 2));
		gtk_snapshot_append_layout(snapshot, layout, &text);
		gtk_snapshot_restore(snapshot);
		g_object_unref(layout);
	}
}

static void snapshot(GtkWidget *widget, GtkSnapshot *snapshot)
{
	WeftCanvas *canvas = WEFT_CANVAS(widget);
	graphene_rect_t all;
	graphene_rect_init(&all, 0, 0, (float)gtk_widget_get_width(widget), (float)gtk_widget_get_height(widget));
	if (!canvas->picture || !canvas->above)
		draw_all(canvas);
	gtk_snapshot_append_texture(snapshot, canvas->picture, &all);
	gtk_snapshot_append_texture(snapshot, canvas->above, &all);
	draw_names(canvas, snapshot);
}

static void size_allocate(GtkWidget *widget, int width, int height, int baseline)
{
	WeftCanvas *canvas = WEFT_CANVAS(widget);
	resize_viewers(canvas);
	redraw_all(canvas);
}

/* ---- The pointer ---- */

static unsigned pressed_modifiers(gpointer controller)
{
	GdkModifierType state = gtk_event_controller_get_current_event_state(controller);
	return (state & GDK_SHIFT_MASK ? WEFT_SHIFT : 0u) | (state & GDK_CONTROL_MASK ? WEFT_CONTROL : 0u) |
	       (state & GDK_ALT_MASK ? WEFT_ALT : 0u);
}

static void move_pointer(WeftCanvas *canvas, double x, double y)
{
	/* GTK also reports a motion when the widget moves below a pointer that stands still. */
	if (!canvas->viewers || (x == canvas->pointer_x && y == canvas->pointer_y))
		return;
	canvas->pointer_x = x;
	canvas->pointer_y = y;
	weft_compare_motion(canvas->viewers, x, y);
	weft_canvas_update(canvas);
}

static void on_motion(GtkEventControllerMotion *controller, double x, double y, WeftCanvas *canvas)
{
	move_pointer(canvas, x, y);
}

static void on_leave(GtkEventControllerMotion *controller, WeftCanvas *canvas)
{
	canvas->pointer_x = canvas->pointer_y = -1;
	struct weft_viewer *active = canvas->viewers ? weft_compare_active(canvas->viewers) : NULL;
	if (active && active->pointer == WEFT_POINTER_IDLE) {
		weft_compare_leave(canvas->viewers);
		weft_canvas_update(canvas);
	}
}

static gboolean on_scroll(GtkEventControllerScroll *controller, double dx, double dy, WeftCanvas *canvas)
{
	if (!canvas->viewers)
		return GDK_EVENT_PROPAGATE;
	weft_compare_wheel(canvas->viewers, canvas->pointer_x, canvas->pointer_y, dx, dy, pressed_modifiers(controller));
	weft_canvas_update(canvas);
	return GDK_EVENT_STOP;
}

static void on_press(GtkGestureClick *gesture, int clicks, double x, double y, WeftCanvas *canvas)
{
	guint button = gtk_gesture_single_get_current_button(GTK_GESTURE_SINGLE(gesture));
	gtk_widget_grab_focus(GTK_WIDGET(canvas));
	if (!canvas->viewers)
		return;
	weft_compare_press(canvas->viewers, x, y,
	    button == GDK_BUTTON_SECONDARY ? WEFT_BUTTON_SECONDARY
	    : button == GDK_BUTTON_MIDDLE  ? WEFT_BUTTON_MIDDLE
					   : WEFT_BUTTON_PRIMARY,
	    pressed_modifiers(gesture), (clicks - 1) % 2 + 1);
	weft_canvas_update(canvas);
}

/* The drag gesture handles all motions and releases with a pressed button, because the click gesture gives up when a drag
 * begins. */
static void on_drag(GtkGestureDrag *gesture, double dx, double dy, WeftCanvas *canvas)
{
	double x = 0, y = 0;
	gtk_gesture_drag_get_start_point(gesture, &x, &y);
	move_pointer(canvas, x + dx, y + dy);
}

static void on_drag_end(GtkGestureDrag *gesture, double dx, double dy, WeftCanvas *canvas)
{
	double x = 0, y = 0;
	gtk_gesture_drag_get_start_point(gesture, &x, &y);
	if (!canvas->viewers)
		return;
	weft_compare_release(canvas->viewers, x + dx, y + dy);
	weft_canvas_update(canvas);
}

static void on_cancel(GtkGesture *gesture, GdkEventSequence *sequence, WeftCanvas *canvas)
{
	if (!canvas->viewers)
		return;
	weft_compare_leave(canvas->viewers);
	weft_canvas_update(canvas);
}

static void on_pinch_begin(GtkGesture *gesture, GdkEventSequence *sequence, WeftCanvas *canvas)
{
	canvas->pinch = 1;
}

static void on_pinch(GtkGestureZoom *gesture, double factor, WeftCanvas *canvas)
{
	double x = 0, y = 0;
	if (!canvas->viewers || !gtk_gesture_get_bounding_box_center(GTK_GESTURE(gesture), &x, &y))
		return;
	weft_compare_pinch(canvas->viewers, x, y, factor / canvas->pinch, 0, 0);
	canvas->pinch = factor;
	weft_canvas_update(canvas);
}

static void dispose(GObject *object)
{
	WeftCanvas *canvas = WEFT_CANVAS(object);
	g_clear_object(&canvas->picture);
	g_clear_object(&canvas->above);
	g_clear_handle_id(&canvas->update, g_source_remove);
	canvas->viewers = NULL;
	G_OBJECT_CLASS(weft_canvas_parent_class)->dispose(object);
}

static void finalize(GObject *object)
{
	weft_cairo_destroy(WEFT_CANVAS(object)->cairo);
	G_OBJECT_CLASS(weft_canvas_parent_class)->finalize(object);
}

static void weft_canvas_class_init(WeftCanvasClass *class)
{
	GObjectClass *object_class = G_OBJECT_CLASS(class);
	GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
	object_class->dispose = dispose;
	object_class->finalize = finalize;
	widget_class->snapshot = snapshot;
	widget_class->size_allocate = size_allocate;
	gtk_widget_class_set_css_name(widget_class, "canvas");
	gtk_widget_class_set_accessible_role(widget_class, GTK_ACCESSIBLE_ROLE_IMG);
	signals[CHANGED] =
	    g_signal_new("changed", WEFT_TYPE_CANVAS, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
}

static void add_controllers(WeftCanvas *canvas)
{
	GtkWidget *widget = GTK_WIDGET(canvas);
	GtkEventController *motion = gtk_event_controller_motion_new();
	g_signal_connect(motion, "enter", G_CALLBACK(on_motion), canvas);
	g_signal_connect(motion, "motion", G_CALLBACK(on_motion), canvas);
	g_signal_connect(motion, "leave", G_CALLBACK(on_leave), canvas);
	gtk_widget_add_controller(widget, motion);

	GtkEventController *scroll = gtk_event_controller_scroll_new(GTK_EVENT_CONTROLLER_SCROLL_BOTH_AXES);
	g_signal_connect(scroll, "scroll", G_CALLBACK(on_scroll), canvas);
	gtk_widget_add_controller(widget, scroll);

	GtkGesture *click = gtk_gesture_click_new();
	gtk_gesture_single_set_button(GTK_GESTURE_SINGLE(click), 0);
	g_signal_connect(click, "pressed", G_CALLBACK(on_press), canvas);
	gtk_widget_add_controller(widget, GTK_EVENT_CONTROLLER(click));

	GtkGesture *drag = gtk_gesture_drag_new();
	gtk_gesture_single_set_button(GTK_GESTURE_SINGLE(drag), 0);
	g_signal_connect(drag, "drag-update", G_CALLBACK(on_drag), canvas);
	g_signal_connect(drag, "drag-end", G_CALLBACK(on_drag_end), canvas);
	g_signal_connect(drag, "cancel", G_CALLBACK(on_cancel), canvas);
	gtk_widget_add_controller(widget, GTK_EVENT_CONTROLLER(drag));

	GtkGesture *pinch = gtk_gesture_zoom_new();
	g_signal_connect(pinch, "begin", G_CALLBACK(on_pinch_begin), canvas);
	g_signal_connect(pinch, "scale-changed", G_CALLBACK(on_pinch), canvas);
	gtk_widget_add_controller(widget, GTK_EVENT_CONTROLLER(pinch));
}

static void weft_canvas_init(WeftCanvas *canvas)
{
	if (weft_cairo_create(&canvas->cairo) < 0)
		g_error("out of memory");
	gtk_widget_set_focusable(GTK_WIDGET(canvas), TRUE);
	gtk_widget_set_size_request(GTK_WIDGET(canvas), 160, 100);
	add_controllers(canvas);
	g_signal_connect_object(
	    adw_style_manager_get_default(), "notify::dark", G_CALLBACK(redraw_all), canvas, G_CONNECT_SWAPPED);
	g_signal_connect_object(
	    gtk_settings_get_default(), "notify::gtk-xft-dpi", G_CALLBACK(gtk_widget_queue_allocate), canvas, G_CONNECT_SWAPPED);
	g_signal_connect(canvas, "notify::scale-factor", G_CALLBACK(redraw_all), NULL);
}
