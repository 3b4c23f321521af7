/* split.c: a widget with a picture and a side panel that slides in and can be made wider.  SPDX-License-Identifier: ISC */
#include "split.h"

/* AdwFlap is deprecated since libadwaita 1.4, and AdwOverlaySplitView exists only since then; this widget has the few abilities
 * that weft uses. */
struct _WeftSplit {
	GtkWidget parent_instance;
	GtkWidget *content;
	GtkRevealer *revealer;
	GtkBox *side;   /* line between content and side panel, and the side panel */
	int side_px;    /* width that the user gave to the side panel; 0 for the panel's natural width */
	int edge_px;    /* where the side begins */
	int dragged_px; /* width of the side panel when the drag of its edge began */
};

#define GRIP_PX 5 /* distance in px from the edge within which a drag of the edge can begin */
#define LEAST_CONTENT_PX 240

enum { CONTENT = 1, SIDE, OPEN };

G_DEFINE_FINAL_TYPE(WeftSplit, weft_split, GTK_TYPE_WIDGET)

gboolean weft_split_is_open(WeftSplit *split)
{
	return gtk_revealer_get_reveal_child(split->revealer);
}

void weft_split_set_open(WeftSplit *split, gboolean open)
{
	if (open == weft_split_is_open(split))
		return;
	gtk_revealer_set_reveal_child(split->revealer, open);
	g_object_notify(G_OBJECT(split), "open");
}

static void measure(
    GtkWidget *widget, GtkOrientation orientation, int size, int *least, int *natural, int *least_baseline, int *natural_baseline)
{
	WeftSplit *split = WEFT_SPLIT(widget);
	int content_least = 0, content = 0, side_least = 0, side = 0;
	if (split->content)
		gtk_widget_measure(split->content, orientation, -1, &content_least, &content, NULL, NULL);
	gtk_widget_measure(GTK_WIDGET(split->revealer), orientation, -1, &side_least, &side, NULL, NULL);
	*least = MAX(content_least, side_least);
	*natural = orientation == GTK_ORIENTATION_HORIZONTAL ? content + side : MAX(content, side);
}

static void size_allocate(GtkWidget *widget, int width, int height, int baseline)
{
	WeftSplit *split = WEFT_SPLIT(widget);
	bool reversed = gtk_widget_get_direction(widget) == GTK_TEXT_DIR_RTL;
	int content_least = 0, side = 0;
	if (split->content)
		gtk_widget_measure(split->content, GTK_ORIENTATION_HORIZONTAL, -1, &content_least, NULL, NULL, NULL);
	gtk_widget_measure(GTK_WIDGET(split->revealer), GTK_ORIENTATION_HORIZONTAL, -1, NULL, &side, NULL, NULL);
	side = split->side_px > 0 ? CLAMP(split->side_px, side, MAX(side, width - MAX(content_least, LEAST_CONTENT_PX))) : side;
	side = MIN(side, width);
	int content = content_least + side <= width ? width - side : width;
	if (split->content)
		gtk_widget_size_allocate(
		    split->content, &(GtkAllocation){reversed ? width - content : 0, 0, content, height}, -1);
	split->edge_px = reversed ? side : width - side;
	gtk_widget_size_allocate(GTK_WIDGET(split->revealer), &(GtkAllocation){reversed ? 0 : width - side, 0, side, height}, -1);
}

static bool is_at_edge(WeftSplit *split, double x)
{
	return weft_split_is_open(split) && x >= split->edge_px - GRIP_PX && x <= split->edge_px + GRIP_PX;
}

static void on_drag_begin(GtkGestureDrag *drag, double x, double y, WeftSplit *split)
{
	if (!is_at_edge(split, x)) {
		gtk_gesture_set_state(GTK_GESTURE(drag), GTK_EVENT_SEQUENCE_DENIED);
		return;
	}
	split->dragged_px = gtk_widget_get_width(GTK_WIDGET(split->revealer));
	gtk_gesture_set_state(GTK_GESTURE(drag), GTK_EVENT_SEQUENCE_CLAIMED);
}

static void on_drag_update(GtkGestureDrag *drag, double dx, double dy, WeftSplit *split)
{
	bool reversed = gtk_widget_get_direction(GTK_WIDGET(split)) == GTK_TEXT_DIR_RTL;
	split->side_px = MAX(1, split->dragged_px + (int)(reversed ? dx : -dx));
	gtk_widget_queue_resize(GTK_WIDGET(split));
}

static void on_motion(GtkEventControllerMotion *motion, double x, double y, WeftSplit *split)
{
	gtk_widget_set_cursor_from_name(GTK_WIDGET(split), is_at_edge(split, x) ? "col-resize" : NULL);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *spec)
{
	if (id == OPEN)
		g_value_set_boolean(value, weft_split_is_open(WEFT_SPLIT(object)));
	else
		G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
	WeftSplit *split = WEFT_SPLIT(object);
	switch (id) {
	case CONTENT:
		split->content = g_value_get_object(value);
		gtk_widget_insert_after(split->content, GTK_WIDGET(split), NULL); /* below the side */
		break;
	case SIDE: gtk_box_append(split->side, g_value_get_object(value)); break;
	case OPEN: weft_split_set_open(split, g_value_get_boolean(value)); break;
	default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
	}
}

static void dispose(GObject *object)
{
	WeftSplit *split = WEFT_SPLIT(object);
	g_clear_pointer(&split->content, gtk_widget_unparent);
	if (split->revealer)
		gtk_widget_unparent(GTK_WIDGET(split->revealer));
	split->revealer = NULL;
	G_OBJECT_CLASS(weft_split_parent_class)->dispose(object);
}

static void weft_split_class_init(WeftSplitClass *class)
{
	GObjectClass *object = G_OBJECT_CLASS(class);
	GtkWidgetClass *widget = GTK_WIDGET_CLASS(class);
	object->get_property = get_property;
	object->set_property = set_property;
	object->dispose = dispose;
	widget->measure = measure;
	widget->size_allocate = size_allocate;
	g_object_class_install_property(object, CONTENT,
	    g_param_spec_object("content", NULL, NULL, GTK_TYPE_WIDGET, G_PARAM_WRITABLE | G_PARAM_CONSTRUCT_ONLY));
	g_object_class_install_property(
	    object, SIDE, g_param_spec_object("side", NULL, NULL, GTK_TYPE_WIDGET, G_PARAM_WRITABLE | G_PARAM_CONSTRUCT_ONLY));
	g_object_class_install_property(
	    object, OPEN, g_param_spec_boolean("open", NULL, NULL, FALSE, G_PARAM_READWRITE | G_PARAM_EXPLICIT_NOTIFY));
}

static void weft_split_init(WeftSplit *split)
{
	split->revealer = GTK_REVEALER(gtk_revealer_new());
	split->side = GTK_BOX(gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 0));
	gtk_box_append(split->side, gtk_separator_new(GTK_ORIENTATION_VERTICAL));
	gtk_revealer_set_transition_type(split->revealer, GTK_REVEALER_TRANSITION_TYPE_SLIDE_LEFT);
	gtk_revealer_set_child(split->revealer, GTK_WIDGET(split->side));
	gtk_widget_set_parent(GTK_WIDGET(split->revealer), GTK_WIDGET(split));
	/* The edge is narrow, so a press near it is caught before the widgets beside the edge get it. */
	GtkGesture *drag = gtk_gesture_drag_new();
	gtk_event_controller_set_propagation_phase(GTK_EVENT_CONTROLLER(drag), GTK_PHASE_CAPTURE);
	g_signal_connect(drag, "drag-begin", G_CALLBACK(on_drag_begin), split);
	g_signal_connect(drag, "drag-update", G_CALLBACK(on_drag_update), split);
	gtk_widget_add_controller(GTK_WIDGET(split), GTK_EVENT_CONTROLLER(drag));
	GtkEventController *motion = gtk_event_controller_motion_new();
	g_signal_connect(motion, "motion", G_CALLBACK(on_motion), split);
	gtk_widget_add_controller(GTK_WIDGET(split), motion);
}
