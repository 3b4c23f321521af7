/* row_list.c: shows rows of src/viewer as widgets.  SPDX-License-Identifier: ISC */
#include "row_list.h"

#include <string.h>

#include "dump.h"
#include "place.h"

struct _WeftRowList {
	AdwBin parent_instance;
	GtkWidget *scrolled, *box;
	struct weft_rows shown, next;
	bool is_limited; /* whether the height is limited, so that long names are cut */
	bool is_stale;   /* whether the list must be built again, because it was hidden when its rows changed */
	int wants_focus; /* kind of the row that gets the focus as soon as such a row can be pressed; or -1 */
	guint build_later;
};

#define LIMITED_WIDTH_PX 440
#define STEP_PX 12
#define PRESSED_MS 50 /* interval in ms of the checks whether a button is still pressed */

G_DEFINE_FINAL_TYPE(WeftRowList, weft_row_list, ADW_TYPE_BIN)

enum { PRESSED, SIGNALS };
static guint signals[SIGNALS];

/* ---- Rows ---- */

/* Creates a label with a text of a row; `part` names the label in dumps for tests. */
static GtkWidget *label_new(const char *part, const char *text, const char *class, bool wraps)
{
	GtkWidget *label = gtk_label_new(text);
	gtk_label_set_xalign(GTK_LABEL(label), 0);
	gtk_label_set_wrap(GTK_LABEL(label), wraps);
	gtk_label_set_wrap_mode(GTK_LABEL(label), PANGO_WRAP_WORD_CHAR);
	if (class)
		gtk_widget_add_css_class(label, class);
	g_object_set_data(G_OBJECT(label), part, label);
	return label;
}

static void on_pressed(GtkWidget *button, WeftRowList *list)
{
	g_signal_emit(list, signals[PRESSED], 0, GPOINTER_TO_UINT(g_object_get_data(G_OBJECT(button), "number")) - 1);
}

/* Creates a button that presses a row; the button contains the row's text, or is beside the text. */
static GtkWidget *button_new(WeftRowList *list, unsigned number, GtkWidget *inner, const char *name)
{
	GtkWidget *button = gtk_button_new();
	gtk_button_set_child(GTK_BUTTON(button), inner);
	g_object_set_data(G_OBJECT(button), "number", GUINT_TO_POINTER(number + 1));
	gtk_accessible_update_property(GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
	g_signal_connect_object(button, "clicked", G_CALLBACK(on_pressed), list, 0);
	return button;
}

static GtkWidget *flat_new(WeftRowList *list, unsigned number, GtkWidget *inner, const char *name)
{
	GtkWidget *button = button_new(list, number, inner, name);
	gtk_widget_add_css_class(button, "flat");
	return button;
}

/* Creates a flat button that contains a whole row, with the row's text for assistive technology. */
static GtkWidget *whole_new(WeftRowList *list, const struct weft_row *row, unsigned number, GtkWidget *inner)
{
	char name[WEFT_SPOKEN_BYTES];
	GtkWidget *button = flat_new(list, number, inner, weft_row_spoken(row, name));
	gtk_accessible_update_property(
	    GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, weft_row_spoken_then(row), -1);
	return button;
}

static const char *tone_class(const struct weft_row *row)
{
	static const char *const classes[] = {[WEFT_TONE_PLAIN] = "dim-label",
	    [WEFT_TONE_ALARM] = "error",
	    [WEFT_TONE_DOUBT] = "warning",
	    [WEFT_TONE_CALM] = "accent"};
	return classes[row->tone];
}

static GtkWidget *title_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 2), *both = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 12);
	gtk_box_append(GTK_BOX(box), label_new("name", row->name, "title-3", true));
	gtk_box_append(GTK_BOX(box), label_new("value", row->value, tone_class(row), true));
	gtk_widget_set_hexpand(box, TRUE);
	gtk_box_append(GTK_BOX(both), box);
	if (row->leads) {
		GtkWidget *why = button_new(list, number, gtk_label_new("Why?"), "Why?");
		gtk_widget_set_valign(why, GTK_ALIGN_START);
		gtk_widget_set_tooltip_text(why, "Why Is the Promise in This State?");
		gtk_box_append(GTK_BOX(both), why);
	}
	return both;
}

/* Creates labels for a row's name and value side by side.  The value wraps if the row is a fact; otherwise the name wraps. */
static GtkWidget *pair_new(const struct weft_row *row)
{
	bool is_fact = row->kind == WEFT_ROW_FACT;
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 12);
	GtkWidget *name = label_new("name", row->name, is_fact ? "dim-label" : NULL, !is_fact);
	GtkWidget *value = label_new("value", row->value, is_fact ? NULL : "dim-label", is_fact);
	gtk_widget_set_valign(box, GTK_ALIGN_CENTER);
	gtk_widget_set_hexpand(is_fact ? value : name, TRUE);
	gtk_widget_set_valign(value, GTK_ALIGN_START);
	gtk_widget_add_css_class(value, "numeric");
	gtk_label_set_xalign(GTK_LABEL(value), 1);
	if (row->tone == WEFT_TONE_ALARM && is_fact)
		gtk_widget_add_css_class(value, "error");
	gtk_box_append(GTK_BOX(box), name);
	gtk_box_append(GTK_BOX(box), value);
	return box;
}

static GtkWidget *link_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	if (!row->leads)
		return pair_new(row);
	GtkWidget *pair = pair_new(row), *name = gtk_widget_get_first_child(pair);
	if (list->is_limited) {
		gtk_label_set_ellipsize(GTK_LABEL(name), PANGO_ELLIPSIZE_END);
		gtk_label_set_lines(GTK_LABEL(name), 2);
	}
	GtkWidget *button = whole_new(list, row, number, pair);
	if (row->is_open)
		gtk_widget_add_css_class(button, "open");
	return button;
}

static GtkWidget *entry_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0), *value = label_new("value", row->value, tone_class(row), true);
	gtk_widget_add_css_class(value, "numeric");
	gtk_box_append(GTK_BOX(box), label_new("name", row->name, NULL, true));
	gtk_box_append(GTK_BOX(box), value);
	GtkWidget *widget = row->leads ? whole_new(list, row, number, box) : box;
	gtk_widget_set_margin_start(widget, STEP_PX * row->depth);
	return widget;
}

static GtkWidget *more_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	if (!row->leads)
		return label_new("name", row->name, "dim-label", true);
	return button_new(list, number, label_new("name", row->name, NULL, false), row->name);
}

/* Creates a large number with its name below. */
static GtkWidget *figure_new(const struct weft_row *row)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0), *value = label_new("value", row->value, "numeric", false);
	gtk_box_append(GTK_BOX(box), value);
	gtk_box_append(GTK_BOX(box), label_new("name", row->name, "dim-label", false));
	return box;
}

static GtkWidget *sentence_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	GtkWidget *label = label_new("name", row->name, row->tone == WEFT_TONE_DOUBT ? "warning" : NULL, true);
	return row->leads ? whole_new(list, row, number, label) : label;
}

/* Severity is shown by an icon too, because not all users see the colour. */
static const char *tone_icon(const struct weft_row *row)
{
	static const char *const icons[] = {[WEFT_TONE_PLAIN] = "dialog-information-symbolic",
	    [WEFT_TONE_ALARM] = "dialog-error-symbolic",
	    [WEFT_TONE_DOUBT] = "dialog-warning-symbolic",
	    [WEFT_TONE_CALM] = "dialog-information-symbolic"};
	return icons[row->tone];
}

/* Creates the table cells of a promise type side by side; in dumps, the first cell stands for all. */
static GtkWidget *cells_new(const char *text)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 4);
	char **cells = g_strsplit(text, " \xc2\xb7 ", -1);
	gtk_box_set_homogeneous(GTK_BOX(box), TRUE);
	gtk_widget_add_css_class(box, "cells");
	for (char **cell = cells; *cell; cell++) {
		GtkWidget *label =
		    label_new(cell == cells ? "value" : "cell", cell == cells ? *cell : strchr(*cell, ' ') + 1, "numeric", false);
		gtk_label_set_xalign(GTK_LABEL(label), 1);
		gtk_box_append(GTK_BOX(box), label);
	}
	g_strfreev(cells);
	return box;
}

/* Creates the row of a promise type: the name, and below it the numbers under their headings. */
static GtkWidget *type_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0), *name = label_new("name", row->name, NULL, row->is_open);
	if (!row->is_open)
		gtk_label_set_ellipsize(GTK_LABEL(name), PANGO_ELLIPSIZE_MIDDLE);
	gtk_widget_set_tooltip_text(name, row->name);
	gtk_box_append(GTK_BOX(box), name);
	gtk_box_append(GTK_BOX(box), cells_new(row->value));
	GtkWidget *button = whole_new(list, row, number, box);
	gtk_accessible_update_state(GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_STATE_EXPANDED, row->is_open, -1);
	return button;
}

/* Creates the heading of a table column. */
static GtkWidget *column_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	GtkWidget *label = label_new("name", row->name, row->is_open ? "accent" : "dim-label", false);
	gtk_label_set_xalign(GTK_LABEL(label), 1);
	GtkWidget *button = flat_new(list, number, label, row->value);
	gtk_widget_set_tooltip_text(button, row->value);
	if (row->is_open)
		gtk_widget_add_css_class(button, "open");
	return button;
}

static GtkWidget *finding_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 2);
	GtkWidget *tag = label_new("value", row->value, tone_class(row), true), *title = label_new("name", row->name, NULL, true);
	gtk_widget_add_css_class(tag, "caption-heading");
	gtk_widget_set_visible(tag, row->value[0] != '\0');
	GtkWidget *line = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6), *icon = gtk_image_new_from_icon_name(tone_icon(row));
	gtk_widget_add_css_class(icon, tone_class(row));
	gtk_widget_set_visible(icon, row->topic == WEFT_ROWS_OF_FINDINGS);
	gtk_box_append(GTK_BOX(line), icon);
	gtk_box_append(GTK_BOX(line), tag);
	if (!row->is_open) {
		gtk_label_set_ellipsize(GTK_LABEL(title), PANGO_ELLIPSIZE_END);
		gtk_label_set_lines(GTK_LABEL(title), 3);
	}
	gtk_box_append(GTK_BOX(box), line);
	gtk_box_append(GTK_BOX(box), title);
	GtkWidget *button = whole_new(list, row, number, box);
	gtk_widget_set_sensitive(button, row->leads);
	gtk_accessible_update_state(GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_STATE_EXPANDED, row->is_open, -1);
	return button;
}

static GtkWidget *evidence_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 2), *when = label_new("value", row->value, "accent", false);
	gtk_widget_add_css_class(when, "numeric");
	gtk_widget_set_visible(when, row->value[0] != '\0');
	gtk_box_append(GTK_BOX(box), when);
	gtk_box_append(GTK_BOX(box), label_new("name", row->name, NULL, true));
	return row->leads ? whole_new(list, row, number, box) : box;
}

/* Creates a text with a button at its right; the button's label names the effect of a press. */
static GtkWidget *header_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	bool works = row->kind == WEFT_ROW_WORKING;
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6), *label = label_new("name", row->name, "heading", true);
	gtk_widget_set_hexpand(label, TRUE);
	gtk_box_append(GTK_BOX(box), label);
	if (works)
		gtk_box_append(GTK_BOX(box), label_new("value", row->value, "dim-label", false));
	if (!row->leads)
		return box;
	const char *name = works ? "Cancel" : row->value;
	GtkWidget *close = flat_new(list, number, gtk_image_new_from_icon_name("window-close-symbolic"), name);
	gtk_widget_add_css_class(close, "circular");
	gtk_widget_set_valign(close, GTK_ALIGN_START);
	gtk_widget_set_tooltip_text(close, name);
	gtk_box_append(GTK_BOX(box), close);
	return box;
}

static GtkWidget *nothing_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	GtkWidget *page = adw_status_page_new();
	char *description = g_markup_escape_text(row->value, -1);
	adw_status_page_set_title(ADW_STATUS_PAGE(page), row->name);
	adw_status_page_set_description(ADW_STATUS_PAGE(page), description);
	gtk_widget_add_css_class(page, "compact");
	gtk_widget_set_vexpand(page, TRUE);
	if (row->leads) {
		GtkWidget *button = button_new(list, number, gtk_label_new("Analyse Again"), "Analyse Again");
		gtk_widget_set_halign(button, GTK_ALIGN_CENTER);
		adw_status_page_set_child(ADW_STATUS_PAGE(page), button);
	}
	g_free(description);
	return page;
}

static GtkWidget *row_new(WeftRowList *list, const struct weft_row *row, unsigned number)
{
	switch ((enum weft_row_kind)row->kind) {
	case WEFT_ROW_TITLE: return title_new(list, row, number);
	case WEFT_ROW_LINK: return link_new(list, row, number);
	case WEFT_ROW_MORE: return more_new(list, row, number);
	case WEFT_ROW_FINDING:
		return row->topic == WEFT_ROWS_OF_TABLE ? type_new(list, row, number) : finding_new(list, row, number);
	case WEFT_ROW_COLUMN: return column_new(list, row, number);
	case WEFT_ROW_ENTRY: return entry_new(list, row, number);
	case WEFT_ROW_FIGURE: return figure_new(row);
	case WEFT_ROW_SENTENCE: return sentence_new(list, row, number);
	case WEFT_ROW_EVIDENCE: return evidence_new(list, row, number);
	case WEFT_ROW_NOTHING: return nothing_new(list, row, number);
	case WEFT_ROW_ANSWER:
	case WEFT_ROW_SUMMARY:
	case WEFT_ROW_WORKING: return header_new(list, row, number);
	case WEFT_ROW_TEXT:
	case WEFT_ROW_NOTE: return label_new("name", row->name, NULL, true);
	default: return pair_new(row);
	}
}

/* ---- The list ---- */

/* Returns the button of a row, or NULL. */
static GtkWidget *find_inner_button(GtkWidget *widget)
{
	if (GTK_IS_BUTTON(widget) && g_object_get_data(G_OBJECT(widget), "number"))
		return widget;
	for (GtkWidget *child = gtk_widget_get_first_child(widget); child; child = gtk_widget_get_next_sibling(child)) {
		GtkWidget *found = find_inner_button(child);
		if (found)
			return found;
	}
	return NULL;
}

/* Calls a function for the widget of each row, inside or outside of cards. */
static void each_row(WeftRowList *list, void (*call)(WeftRowList *, GtkWidget *, unsigned, void *), void *ctx)
{
	for (GtkWidget *part = gtk_widget_get_first_child(list->box); part; part = gtk_widget_get_next_sibling(part)) {
		bool is_card = gtk_widget_has_css_class(part, "card-rows") || gtk_widget_has_css_class(part, "side-by-side");
		for (GtkWidget *row = is_card ? gtk_widget_get_first_child(part) : part; row;
		     row = is_card ? gtk_widget_get_next_sibling(row) : NULL)
			call(list, row, GPOINTER_TO_UINT(g_object_get_data(G_OBJECT(row), "row")) - 1, ctx);
	}
}

static bool is_same_row(const struct weft_row *a, const struct weft_row *b)
{
	return a->kind == b->kind && a->of_answer == b->of_answer && a->promise == b->promise && a->finding == b->finding &&
	       a->line == b->line && a->key == b->key;
}

static bool is_same_widget(const struct weft_row *a, const struct weft_row *b)
{
	return is_same_row(a, b) && a->tone == b->tone && a->leads == b->leads && a->is_open == b->is_open &&
	       a->depth == b->depth && strcmp(a->name, b->name) == 0 && strcmp(a->value, b->value) == 0;
}

static void find_focus(WeftRowList *list, GtkWidget *widget, unsigned number, void *found)
{
	GtkRoot *root = gtk_widget_get_root(widget);
	GtkWidget *focus = root ? gtk_root_get_focus(root) : NULL;
	if (focus && (focus == widget || gtk_widget_is_ancestor(focus, widget)))
		*(const struct weft_row **)found = &list->shown.rows[number];
}

struct focus {
	const struct weft_row *row; /* row that had the focus; NULL for any row of a kind, preferably an open link */
	int kind;
	GtkWidget *button;
	bool is_open;
};

static void find_button(WeftRowList *list, GtkWidget *widget, unsigned number, void *ctx)
{
	struct focus *focus = ctx;
	GtkWidget *button = find_inner_button(widget);
	const struct weft_row *row = &list->shown.rows[number];
	bool is_open = row->kind == WEFT_ROW_LINK && row->is_open;
	if (button && (!focus->button || is_open > focus->is_open) &&
	    (focus->row ? is_same_row(row, focus->row) : row->kind == focus->kind)) {
		focus->button = button;
		focus->is_open = is_open;
	}
}

static void find_pressed(WeftRowList *list, GtkWidget *widget, unsigned number, void *found)
{
	GtkWidget *button = find_inner_button(widget);
	*(bool *)found |= button && gtk_widget_get_state_flags(button) & GTK_STATE_FLAG_ACTIVE;
}

static bool is_side_by_side(const struct weft_row *row)
{
	return row->kind == WEFT_ROW_FIGURE || row->kind == WEFT_ROW_COLUMN;
}

/* Returns whether a row begins outside of the card above it. */
static bool ends_card(const struct weft_row *row, GtkWidget *card)
{
	if (row->kind == WEFT_ROW_MORE || row->kind == WEFT_ROW_SUMMARY || row->kind == WEFT_ROW_WORKING ||
	    row->kind == WEFT_ROW_SENTENCE)
		return true;
	if (row->kind == WEFT_ROW_HEADING && card && !gtk_widget_has_css_class(card, "open"))
		return true;
	return !is_side_by_side(row) && card && gtk_widget_has_css_class(card, "side-by-side");
}

static void build_widgets(WeftRowList *list)
{
	GtkWidget *child, *card = NULL;
	while ((child = gtk_widget_get_first_child(list->box)))
		gtk_box_remove(GTK_BOX(list->box), child);
	list->is_stale = !gtk_widget_get_mapped(GTK_WIDGET(list));
	for (unsigned i = 0; i < list->shown.count && !list->is_stale; i++) {
		const struct weft_row *row = &list->shown.rows[i];
		GtkWidget *widget = row_new(list, row, i);
		g_object_set_data(G_OBJECT(widget), "row", GUINT_TO_POINTER(i + 1));
		gtk_widget_add_css_class(widget, weft_row_kind_name((enum weft_row_kind)row->kind));
		if (row->kind == WEFT_ROW_FINDING) {
			card = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
			gtk_widget_add_css_class(card, "card-rows");
			if (row->is_open)
				gtk_widget_add_css_class(card, "open");
			gtk_box_append(GTK_BOX(list->box), card);
		} else if (is_side_by_side(row) && !(card && gtk_widget_has_css_class(card, "side-by-side"))) {
			card = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, row->kind == WEFT_ROW_FIGURE ? 6 : 4);
			gtk_box_set_homogeneous(GTK_BOX(card), TRUE);
			gtk_widget_add_css_class(card, "side-by-side");
			gtk_widget_add_css_class(card, row->kind == WEFT_ROW_FIGURE ? "figures" : "columns");
			gtk_box_append(GTK_BOX(list->box), card);
		} else if (ends_card(row, card)) {
			card = NULL;
		}
		gtk_box_append(GTK_BOX(card ? card : list->box), widget);
	}
}

struct weft_rows *weft_row_list_next(WeftRowList *list)
{
	return &list->next;
}

/* Scrolls to the open link after GTK has laid out the rows. */
static gboolean reveal_open(GtkWidget *widget, GdkFrameClock *clock, gpointer data)
{
	WeftRowList *list = WEFT_ROW_LIST(widget);
	struct focus focus = {.kind = WEFT_ROW_LINK};
	double x, y = 0;
	each_row(list, find_button, &focus);
	if (focus.is_open && place_in(focus.button, list->box, 0, 0, &x, &y))
		gtk_adjustment_clamp_page(gtk_scrolled_window_get_vadjustment(GTK_SCROLLED_WINDOW(list->scrolled)), y,
		    y + gtk_widget_get_height(focus.button));
	return G_SOURCE_REMOVE;
}

static gboolean build_now(gpointer data)
{
	WeftRowList *list = data;
	struct weft_rows before = list->shown;
	struct focus focus = {.kind = list->wants_focus};
	bool is_pressed = false;
	each_row(list, find_pressed, &is_pressed);
	if (is_pressed) { /* the pressed button must exist until the user releases it, so the rows are built later */
		list->build_later = g_timeout_add(PRESSED_MS, build_now, list);
		return G_SOURCE_REMOVE;
	}
	bool is_other = before.count == 0 || list->next.count == 0 || strcmp(before.rows[0].name, list->next.rows[0].name) != 0;
	list->build_later = 0;
	each_row(list, find_focus, &focus.row);
	list->shown = list->next;
	list->next = before; /* the old rows are kept, so that the row that had the focus can be found in the new list */
	build_widgets(list);
	if (list->is_stale)
		return G_SOURCE_REMOVE;
	if (focus.row || list->wants_focus >= 0)
		each_row(list, find_button, &focus);
	if (focus.button) {
		gtk_widget_grab_focus(focus.button);
		list->wants_focus = -1;
	}
	gtk_widget_add_tick_callback(GTK_WIDGET(list), reveal_open, NULL, NULL);
	if (is_other && list->shown.count > 0 && list->shown.rows[0].kind == WEFT_ROW_TITLE)
		gtk_adjustment_set_value(gtk_scrolled_window_get_vadjustment(GTK_SCROLLED_WINDOW(list->scrolled)), 0);
	return G_SOURCE_REMOVE;
}

/* Builds the widgets later, because the handler of the pressed button may still be running. */
void weft_row_list_show(WeftRowList *list)
{
	bool same = list->next.count == list->shown.count;
	for (size_t i = 0; same && i < list->shown.count; i++)
		same = is_same_widget(&list->shown.rows[i], &list->next.rows[i]);
	if (same && list->build_later)
		g_clear_handle_id(&list->build_later, g_source_remove);
	else if (!same && !list->build_later)
		list->build_later = g_idle_add_full(GDK_PRIORITY_REDRAW - 4, build_now, list, NULL);
}

const struct weft_row *weft_row_list_row(WeftRowList *list, unsigned number)
{
	return number < list->shown.count ? &list->shown.rows[number] : NULL;
}

void weft_row_list_limit(WeftRowList *list, int max_px)
{
	gtk_scrolled_window_set_propagate_natural_height(GTK_SCROLLED_WINDOW(list->scrolled), TRUE);
	gtk_scrolled_window_set_max_content_height(GTK_SCROLLED_WINDOW(list->scrolled), max_px);
	gtk_widget_set_size_request(GTK_WIDGET(list), LIMITED_WIDTH_PX, -1);
	list->is_limited = true;
}

void weft_row_list_focus(WeftRowList *list, enum weft_row_kind kind)
{
	struct focus focus = {.kind = (int)kind};
	list->wants_focus = (int)kind;
	each_row(list, find_button, &focus);
	if (focus.button && gtk_widget_grab_focus(focus.button))
		list->wants_focus = -1;
}

/* Handles arrow keys, which would otherwise move the picture. */
static gboolean on_key(GtkEventControllerKey *keys, guint key, guint code, GdkModifierType state, WeftRowList *list)
{
	bool is_up = key == GDK_KEY_Up || key == GDK_KEY_KP_Up, is_down = key == GDK_KEY_Down || key == GDK_KEY_KP_Down;
	if ((!is_up && !is_down) || state & (GDK_SHIFT_MASK | GDK_CONTROL_MASK | GDK_ALT_MASK))
		return FALSE;
	return gtk_widget_child_focus(list->box, is_up ? GTK_DIR_UP : GTK_DIR_DOWN) || is_down;
}

/* ---- Dumps ---- */

static const char *text_of(GtkWidget *widget, const char *part)
{
	if (ADW_IS_STATUS_PAGE(widget))
		return part[0] == 'n' ? adw_status_page_get_title(ADW_STATUS_PAGE(widget))
				      : adw_status_page_get_description(ADW_STATUS_PAGE(widget));
	if (GTK_IS_LABEL(widget) && g_object_get_data(G_OBJECT(widget), part))
		return gtk_widget_get_visible(widget) ? gtk_label_get_text(GTK_LABEL(widget)) : "";
	for (GtkWidget *child = gtk_widget_get_first_child(widget); child; child = gtk_widget_get_next_sibling(child)) {
		const char *text = text_of(child, part);
		if (text)
			return text;
	}
	if (gtk_widget_get_tooltip_text(widget) && part[0] == 'v' && GTK_IS_BUTTON(widget) &&
	    gtk_widget_has_css_class(widget, "circular"))
		return gtk_widget_get_tooltip_text(widget);
	return NULL;
}

static void dump_row(WeftRowList *list, GtkWidget *widget, unsigned number, void *ctx)
{
	GString *out = ctx;
	const struct weft_row *row = &list->shown.rows[number];
	const char *name = text_of(widget, "name"), *value = text_of(widget, "value");
	g_string_append_printf(out, "%s[\"%s\",\"%s\",%s,%s,", out->str[out->len - 1] == '[' ? "" : ",",
	    weft_row_kind_name((enum weft_row_kind)row->kind), weft_row_tone_name((enum weft_row_tone)row->tone),
	    row->is_open ? "true" : "false",
	    find_inner_button(widget) && gtk_widget_get_sensitive(find_inner_button(widget)) ? "true" : "false");
	dump_string(out, name ? name : "");
	g_string_append_c(out, ',');
	dump_string(out, value ? value : "");
	g_string_append_c(out, ']');
}

void weft_row_list_dump(WeftRowList *list, GString *out)
{
	g_string_append_c(out, '[');
	each_row(list, dump_row, out);
	g_string_append_c(out, ']');
}

/* ---- Life ---- */

static void dispose(GObject *object)
{
	g_clear_handle_id(&WEFT_ROW_LIST(object)->build_later, g_source_remove);
	G_OBJECT_CLASS(weft_row_list_parent_class)->dispose(object);
}

static void finalize(GObject *object)
{
	weft_rows_finish(&WEFT_ROW_LIST(object)->shown);
	weft_rows_finish(&WEFT_ROW_LIST(object)->next);
	G_OBJECT_CLASS(weft_row_list_parent_class)->finalize(object);
}

static void map(GtkWidget *widget)
{
	WeftRowList *list = WEFT_ROW_LIST(widget);
	GTK_WIDGET_CLASS(weft_row_list_parent_class)->map(widget);
	if (list->is_stale)
		build_widgets(list);
	if (list->wants_focus >= 0)
		weft_row_list_focus(list, (enum weft_row_kind)list->wants_focus);
}

static void weft_row_list_class_init(WeftRowListClass *class)
{
	G_OBJECT_CLASS(class)->dispose = dispose;
	G_OBJECT_CLASS(class)->finalize = finalize;
	GTK_WIDGET_CLASS(class)->map = map;
	gtk_widget_class_set_css_name(GTK_WIDGET_CLASS(class), "rows");
	signals[PRESSED] =
	    g_signal_new("pressed", WEFT_TYPE_ROW_LIST, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
}

static void weft_row_list_init(WeftRowList *list)
{
	list->wants_focus = -1;
	list->box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
	list->scrolled = gtk_scrolled_window_new();
	gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(list->scrolled), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
	gtk_scrolled_window_set_child(GTK_SCROLLED_WINDOW(list->scrolled), list->box);
	GtkEventController *keys = gtk_event_controller_key_new();
	g_signal_connect(keys, "key-pressed", G_CALLBACK(on_key), list);
	gtk_widget_add_controller(list->scrolled, keys);
	gtk_widget_set_size_request(GTK_WIDGET(list), 320, -1);
	adw_bin_set_child(ADW_BIN(list), list->scrolled);
}
