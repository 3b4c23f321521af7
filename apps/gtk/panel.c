/* panel.c: rows of the core's panel as widgets.  SPDX-License-Identifier: ISC */
#include "panel.h"

struct _WeftPanelWidget {
	AdwBin parent_instance;
	GtkStack *stack;
	GtkWidget *scrolled, *rows;
	struct weft_panel facts;
	uint32_t subject;
	const struct weft_viewer *viewer;
};

G_DEFINE_FINAL_TYPE(WeftPanelWidget, weft_panel_widget, ADW_TYPE_BIN)

enum { GO, SIGNALS };
static guint signals[SIGNALS];

static GtkWidget *label_new(const char *text, const char *class, float xalign)
{
	GtkWidget *label = gtk_label_new(text);
	gtk_label_set_xalign(GTK_LABEL(label), xalign);
	gtk_label_set_ellipsize(GTK_LABEL(label), PANGO_ELLIPSIZE_END);
	if (class)
		gtk_widget_add_css_class(label, class);
	return label;
}

/* A name at the left and a value at the right, of which a long one wraps. */
static GtkWidget *pair_new(const char *name, const char *value, bool name_first)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 12);
	GtkWidget *left = label_new(name, name_first ? NULL : "dim-label", 0), *right = label_new(value, "numeric", 1);
	gtk_widget_set_hexpand(name_first ? left : right, TRUE);
	if (name_first) {
		gtk_widget_add_css_class(right, "dim-label");
		gtk_label_set_ellipsize(GTK_LABEL(right), PANGO_ELLIPSIZE_NONE);
	} else {
		gtk_label_set_ellipsize(GTK_LABEL(left), PANGO_ELLIPSIZE_NONE);
		gtk_label_set_ellipsize(GTK_LABEL(right), PANGO_ELLIPSIZE_NONE);
		gtk_label_set_wrap(GTK_LABEL(right), TRUE);
		gtk_label_set_wrap_mode(GTK_LABEL(right), PANGO_WRAP_WORD_CHAR);
		gtk_label_set_selectable(GTK_LABEL(right), FALSE);
	}
	gtk_box_append(GTK_BOX(box), left);
	gtk_box_append(GTK_BOX(box), right);
	return box;
}

static void on_link(GtkWidget *button, WeftPanelWidget *panel)
{
	uint32_t promise = GPOINTER_TO_UINT(g_object_get_data(G_OBJECT(button), "promise"));
	g_signal_emit(panel, signals[GO], 0, promise);
}

static GtkWidget *link_new(WeftPanelWidget *panel, const struct weft_row *row)
{
	GtkWidget *pair = pair_new(row->name, row->value, true);
	if (row->promise == WEFT_NONE) {
		gtk_widget_add_css_class(pair, "plain");
		return pair;
	}
	GtkWidget *button = gtk_button_new();
	gtk_button_set_child(GTK_BUTTON(button), pair);
	gtk_widget_add_css_class(button, "flat");
	gtk_widget_set_tooltip_text(button, row->name);
	gtk_accessible_update_property(GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_PROPERTY_LABEL, row->name, -1);
	g_object_set_data(G_OBJECT(button), "promise", GUINT_TO_POINTER(row->promise));
	g_signal_connect_object(button, "clicked", G_CALLBACK(on_link), panel, 0);
	return button;
}

static GtkWidget *title_new(const struct weft_row *row)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 2);
	GtkWidget *name = label_new(row->name, "title-3", 0),
		  *value = label_new(row->value, row->alarming ? "error" : "dim-label", 0);
	gtk_label_set_ellipsize(GTK_LABEL(name), PANGO_ELLIPSIZE_NONE);
	gtk_label_set_wrap(GTK_LABEL(name), TRUE);
	gtk_label_set_wrap_mode(GTK_LABEL(name), PANGO_WRAP_WORD_CHAR);
	gtk_label_set_wrap(GTK_LABEL(value), TRUE);
	gtk_label_set_ellipsize(GTK_LABEL(value), PANGO_ELLIPSIZE_NONE);
	gtk_box_append(GTK_BOX(box), name);
	gtk_box_append(GTK_BOX(box), value);
	GtkWidget *both = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 12), *why = gtk_button_new_with_label("Why?");
	gtk_widget_set_hexpand(box, TRUE);
	gtk_widget_set_valign(why, GTK_ALIGN_START);
	gtk_widget_set_tooltip_text(why, "Why Is It as It Is?");
	gtk_actionable_set_action_name(GTK_ACTIONABLE(why), "win.why");
	gtk_box_append(GTK_BOX(both), box);
	gtk_box_append(GTK_BOX(both), why);
	gtk_widget_add_css_class(both, "title-row");
	return both;
}

static GtkWidget *row_new(WeftPanelWidget *panel, const struct weft_row *row)
{
	GtkWidget *widget;
	switch (row->kind) {
	case WEFT_ROW_TITLE: return title_new(row);
	case WEFT_ROW_HEADING:
		widget = pair_new(row->name, row->value, true);
		gtk_widget_add_css_class(widget, "heading-row");
		return widget;
	case WEFT_ROW_LINK: return link_new(panel, row);
	case WEFT_ROW_MORE:
		widget = label_new(row->name[0] ? row->name : row->value, "dim-label", 0);
		gtk_widget_add_css_class(widget, "plain");
		return widget;
	default:
		widget = pair_new(row->name, row->value, false);
		gtk_widget_add_css_class(widget, "plain");
		if (row->alarming)
			gtk_widget_add_css_class(gtk_widget_get_last_child(widget), "error");
		return widget;
	}
}

void weft_panel_widget_show(WeftPanelWidget *panel, const struct weft_viewer *viewer)
{
	uint32_t subject = viewer ? weft_panel_subject(viewer) : WEFT_NONE;
	if (subject == panel->subject && viewer == panel->viewer)
		return;
	panel->subject = subject;
	panel->viewer = viewer;
	GtkWidget *child;
	while ((child = gtk_widget_get_first_child(panel->rows)))
		gtk_box_remove(GTK_BOX(panel->rows), child);
	if (subject == WEFT_NONE || weft_panel_fill(&panel->facts, viewer, subject, NULL) != WEFT_OK) {
		gtk_stack_set_visible_child_name(panel->stack, "nothing");
		return;
	}
	for (size_t i = 0; i < panel->facts.count; i++)
		gtk_box_append(GTK_BOX(panel->rows), row_new(panel, &panel->facts.rows[i]));
	gtk_adjustment_set_value(gtk_scrolled_window_get_vadjustment(GTK_SCROLLED_WINDOW(panel->scrolled)), 0);
	gtk_stack_set_visible_child_name(panel->stack, "promise");
}

char *weft_panel_widget_text(WeftPanelWidget *panel)
{
	GString *text = g_string_new(NULL);
	for (size_t i = 0; panel->subject != WEFT_NONE && i < panel->facts.count; i++)
		g_string_append_printf(text, "%s|%s\n", panel->facts.rows[i].name, panel->facts.rows[i].value);
	return g_string_free(text, FALSE);
}

static void finalize(GObject *object)
{
	weft_panel_finish(&WEFT_PANEL_WIDGET(object)->facts);
	G_OBJECT_CLASS(weft_panel_widget_parent_class)->finalize(object);
}

static void weft_panel_widget_class_init(WeftPanelWidgetClass *class)
{
	G_OBJECT_CLASS(class)->finalize = finalize;
	gtk_widget_class_set_css_name(GTK_WIDGET_CLASS(class), "panel");
	signals[GO] = g_signal_new("go", WEFT_TYPE_PANEL, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
}

static void weft_panel_widget_init(WeftPanelWidget *panel)
{
	panel->subject = WEFT_NONE;
	panel->stack = GTK_STACK(gtk_stack_new());
	panel->rows = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
	panel->scrolled = gtk_scrolled_window_new();
	gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(panel->scrolled), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
	gtk_scrolled_window_set_child(GTK_SCROLLED_WINDOW(panel->scrolled), panel->rows);
	GtkWidget *nothing = adw_status_page_new();
	adw_status_page_set_title(ADW_STATUS_PAGE(nothing), "No Promise");
	adw_status_page_set_description(ADW_STATUS_PAGE(nothing), "Point at a line, or select one, to see what it waited for");
	gtk_widget_add_css_class(nothing, "compact");
	gtk_stack_add_named(panel->stack, nothing, "nothing");
	gtk_stack_add_named(panel->stack, panel->scrolled, "promise");
	gtk_stack_set_hhomogeneous(panel->stack, TRUE);
	gtk_widget_set_size_request(GTK_WIDGET(panel), 320, -1);
	gtk_widget_set_hexpand(GTK_WIDGET(panel), FALSE);
	adw_bin_set_child(ADW_BIN(panel), GTK_WIDGET(panel->stack));
}
