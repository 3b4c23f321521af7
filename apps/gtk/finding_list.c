/* finding_list.c: findings as widgets: each a button that leads there; below the one that was pressed last, its evidence.
 * SPDX-License-Identifier: ISC */
#include "finding_list.h"

#include <string.h>

#define SHOWN 20u /* so many at once: widgets are made in the main loop, and cost a ms each */

struct _WeftFindingList {
	AdwBin parent_instance;
	GtkStack *stack;
	GtkWidget *rows;
	AdwStatusPage *nothing;
	struct weft_viewer *viewer;
	const struct weft_findings *findings;
	struct weft_findings *answer;
	const struct weft_finding *open; /* whose evidence is seen, of either; or NULL */
	char *open_title;                /* of findings, so that it is found again in those of the trace read anew; or NULL */
	size_t shown;
	bool is_stale;    /* nobody saw it when it was to be built */
	bool wants_focus; /* once it is built */
	guint rebuild;
};

G_DEFINE_FINAL_TYPE(WeftFindingList, weft_finding_list, ADW_TYPE_BIN)

enum { WENT, SIGNALS };
static guint signals[SIGNALS];

static void build(WeftFindingList *list);

static gboolean build_later(gpointer data)
{
	WeftFindingList *list = data;
	list->rebuild = 0;
	build(list);
	return G_SOURCE_REMOVE;
}

static GtkWidget *label_new(const char *text, const char *class)
{
	GtkWidget *label = gtk_label_new(text);
	gtk_label_set_xalign(GTK_LABEL(label), 0);
	gtk_label_set_wrap(GTK_LABEL(label), TRUE);
	gtk_label_set_wrap_mode(GTK_LABEL(label), PANGO_WRAP_WORD_CHAR);
	if (class)
		gtk_widget_add_css_class(label, class);
	return label;
}

static GtkWidget *button_new(const char *name, const void *about)
{
	GtkWidget *button = gtk_button_new(), *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 2);
	gtk_button_set_child(GTK_BUTTON(button), box);
	gtk_widget_add_css_class(button, "flat");
	gtk_accessible_update_property(GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
	g_object_set_data(G_OBJECT(button), "about", (gpointer)about);
	return button;
}

static void on_evidence(GtkWidget *button, WeftFindingList *list)
{
	if (!list->viewer)
		return;
	weft_viewer_go_to_evidence(list->viewer, g_object_get_data(G_OBJECT(button), "about"));
	g_signal_emit(list, signals[WENT], 0);
}

static GtkWidget *evidence_new(WeftFindingList *list, const struct weft_evidence *line)
{
	char time[80];
	weft_evidence_time(list->viewer, line, time);
	GtkWidget *text = label_new(line->text, NULL), *when = label_new(time, "accent");
	gtk_widget_add_css_class(when, "numeric");
	gtk_widget_set_visible(when, time[0] != '\0');
	if (!weft_viewer_has_evidence(list->viewer, line)) {
		gtk_widget_add_css_class(text, "plain");
		return text;
	}
	GtkWidget *button = button_new(line->text, line), *box = gtk_button_get_child(GTK_BUTTON(button));
	gtk_box_append(GTK_BOX(box), when);
	gtk_box_append(GTK_BOX(box), text);
	g_signal_connect_object(button, "clicked", G_CALLBACK(on_evidence), list, 0);
	return button;
}

static void append_details(WeftFindingList *list, GtkWidget *card, const struct weft_finding *finding)
{
	for (int role = 0; role <= WEFT_EVIDENCE_NOTE; role++) {
		bool is_first = true;
		for (size_t i = 0; i < finding->evidence_count; i++) {
			if ((int)finding->evidence[i].role != role)
				continue;
			if (is_first)
				gtk_box_append(
				    GTK_BOX(card), label_new(weft_evidence_heading(finding->evidence[i].role), "heading-row"));
			is_first = false;
			gtk_box_append(GTK_BOX(card), evidence_new(list, &finding->evidence[i]));
		}
	}
	if (!finding->next[0])
		return;
	gtk_box_append(GTK_BOX(card), label_new("What to look at next", "heading-row"));
	gtk_box_append(GTK_BOX(card), label_new(finding->next, "plain"));
}

static void on_finding(GtkWidget *button, WeftFindingList *list)
{
	const struct weft_finding *finding = g_object_get_data(G_OBJECT(button), "about");
	if (!list->viewer)
		return;
	list->open = finding;
	if (finding->kind != WEFT_FINDING_ANSWER) {
		g_free(list->open_title);
		list->open_title = g_strdup(finding->title);
	}
	weft_viewer_go_to_finding(list->viewer, finding);
	g_signal_emit(list, signals[WENT], 0);
	/* Not now, as the button is still at work. */
	if (!list->rebuild)
		list->rebuild = g_idle_add(build_later, list);
}

static const char *what(const struct weft_finding *finding)
{
	return finding->kind == WEFT_FINDING_ANSWER ? "why" : weft_finding_name(finding->kind);
}

static GtkWidget *card_new(WeftFindingList *list, const struct weft_finding *finding)
{
	bool is_open = finding == list->open;
	GtkWidget *card = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
	char *name = g_strdup_printf("%s%s: %s", what(finding), finding->sure ? "" : ", not certain", finding->title);
	GtkWidget *button = button_new(name, finding), *box = gtk_button_get_child(GTK_BUTTON(button));
	char *kind = g_strdup_printf("%s%s", what(finding), finding->sure ? "" : " · not certain");
	kind[0] = g_ascii_toupper(kind[0]);
	GtkWidget *caption = label_new(kind, finding->kind == WEFT_FINDING_ANSWER ? "accent"
					     : finding->sure                      ? "error"
										  : "warning"),
		  *title = label_new(finding->title, NULL);
	gtk_widget_add_css_class(caption, "caption-heading");
	gtk_widget_set_visible(caption, finding->kind != WEFT_FINDING_ANSWER); /* a heading says it */
	if (!is_open) {
		gtk_label_set_ellipsize(GTK_LABEL(title), PANGO_ELLIPSIZE_END);
		gtk_label_set_lines(GTK_LABEL(title), 3);
	}
	gtk_box_append(GTK_BOX(box), caption);
	gtk_box_append(GTK_BOX(box), title);
	gtk_widget_add_css_class(button, "title-row");
	gtk_accessible_update_state(GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_STATE_EXPANDED, is_open, -1);
	g_signal_connect_object(button, "clicked", G_CALLBACK(on_finding), list, 0);
	gtk_box_append(GTK_BOX(card), button);
	gtk_widget_add_css_class(card, "finding");
	if (is_open) {
		gtk_widget_add_css_class(card, "open");
		append_details(list, card, finding);
	}
	g_free(kind);
	g_free(name);
	return card;
}

static void on_more(WeftFindingList *list)
{
	list->shown += SHOWN;
	if (!list->rebuild)
		list->rebuild = g_idle_add(build_later, list);
}

static void on_close_answer(WeftFindingList *list)
{
	weft_finding_list_answer(list, NULL);
}

static void append_answer(WeftFindingList *list)
{
	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 0), *label = label_new("Why It Is as It Is", "heading"),
		  *close = gtk_button_new_from_icon_name("window-close-symbolic");
	gtk_widget_set_hexpand(label, TRUE);
	gtk_widget_add_css_class(box, "part");
	gtk_widget_add_css_class(close, "flat");
	gtk_widget_add_css_class(close, "circular");
	gtk_widget_set_tooltip_text(close, "Close the Answer");
	gtk_accessible_update_property(GTK_ACCESSIBLE(close), GTK_ACCESSIBLE_PROPERTY_LABEL, "Close the Answer", -1);
	g_signal_connect_object(close, "clicked", G_CALLBACK(on_close_answer), list, G_CONNECT_SWAPPED);
	gtk_box_append(GTK_BOX(box), label);
	gtk_box_append(GTK_BOX(box), close);
	gtk_box_append(GTK_BOX(list->rows), box);
	for (size_t i = 0; i < list->answer->count; i++)
		gtk_box_append(GTK_BOX(list->rows), card_new(list, &list->answer->findings[i]));
}

static void append_findings(WeftFindingList *list)
{
	char text[200];
	GtkWidget *summary = label_new(weft_findings_summary(list->findings, text), "heading");
	gtk_widget_add_css_class(summary, "part");
	gtk_box_append(GTK_BOX(list->rows), summary);
	for (size_t i = 0; i < list->findings->count && i < list->shown; i++)
		gtk_box_append(GTK_BOX(list->rows), card_new(list, &list->findings->findings[i]));
	if (list->shown >= list->findings->count)
		return;
	GtkWidget *more = gtk_button_new_with_label("Show More");
	gtk_widget_add_css_class(more, "more");
	g_signal_connect_object(more, "clicked", G_CALLBACK(on_more), list, G_CONNECT_SWAPPED);
	gtk_box_append(GTK_BOX(list->rows), more);
}

/* Whose button has the keyboard, so that it keeps it. */
static const void *focused(WeftFindingList *list)
{
	GtkRoot *root = gtk_widget_get_root(GTK_WIDGET(list));
	GtkWidget *focus = root ? gtk_root_get_focus(root) : NULL;
	return focus && gtk_widget_is_ancestor(focus, list->rows) ? g_object_get_data(G_OBJECT(focus), "about") : NULL;
}

static void focus_on(WeftFindingList *list, const void *about)
{
	for (GtkWidget *card = gtk_widget_get_first_child(list->rows); card; card = gtk_widget_get_next_sibling(card))
		for (GtkWidget *at = gtk_widget_get_first_child(card); at; at = gtk_widget_get_next_sibling(at))
			if (g_object_get_data(G_OBJECT(at), "about") &&
			    (!about || g_object_get_data(G_OBJECT(at), "about") == about)) {
				gtk_widget_grab_focus(at);
				return;
			}
}

static void build(WeftFindingList *list)
{
	GtkWidget *child;
	const void *about = focused(list);
	char text[200];
	while ((child = gtk_widget_get_first_child(list->rows)))
		gtk_box_remove(GTK_BOX(list->rows), child);
	list->is_stale = !gtk_widget_get_mapped(GTK_WIDGET(list));
	if (list->is_stale || !list->viewer)
		return;
	if (list->answer)
		append_answer(list);
	if (list->findings->count > 0 || list->answer)
		append_findings(list);
	adw_status_page_set_description(list->nothing, list->findings->doubt
							   ? weft_findings_summary(list->findings, text)
							   : "Nothing went wrong that this trace could tell of");
	gtk_stack_set_visible_child_name(list->stack, gtk_widget_get_first_child(list->rows) ? "list" : "nothing");
	if (about || list->wants_focus)
		focus_on(list, about);
	list->wants_focus = false;
}

static bool is_of(const struct weft_findings *findings, const struct weft_finding *one)
{
	return findings && one && one >= findings->findings && one < findings->findings + findings->count;
}

/* Until findings are there, those before are still seen, so that a trace that is followed does not flicker; they lead nowhere. */
void weft_finding_list_show(WeftFindingList *list, struct weft_viewer *viewer, const struct weft_findings *findings)
{
	if (findings && viewer == list->viewer && findings == list->findings)
		return;
	if (!findings) {
		list->viewer = NULL;
		list->findings = NULL;
		if (!is_of(list->answer, list->open))
			list->open = NULL;
		if (!gtk_widget_get_first_child(list->rows))
			gtk_stack_set_visible_child_name(list->stack, viewer ? "looking" : "blank");
		return;
	}
	list->viewer = viewer;
	list->findings = findings;
	for (size_t i = 0; !list->open && list->open_title && i < findings->count; i++)
		if (strcmp(findings->findings[i].title, list->open_title) == 0)
			list->open = &findings->findings[i];
	build(list);
}

void weft_finding_list_answer(WeftFindingList *list, struct weft_findings *answer)
{
	if (!answer && !list->answer)
		return;
	if (answer || is_of(list->answer, list->open))
		list->open = answer && answer->count > 0 ? &answer->findings[0] : NULL;
	weft_findings_destroy(list->answer);
	list->answer = answer;
	build(list);
}

void weft_finding_list_focus(WeftFindingList *list)
{
	list->wants_focus = list->is_stale;
	if (!list->is_stale)
		focus_on(list, NULL);
}

static void append_text(GString *text, const struct weft_findings *findings, const struct weft_finding *open)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct weft_finding *f = &findings->findings[i];
		g_string_append_printf(text, "%s%s%s: %s\n", f == open ? "*" : "", what(f), f->sure ? "" : "?", f->title);
		for (size_t k = 0; f == open && k < f->evidence_count; k++)
			g_string_append_printf(text, "  %s\n", f->evidence[k].text);
	}
}

char *weft_finding_list_text(WeftFindingList *list)
{
	GString *text = g_string_new(NULL);
	if (list->viewer && list->answer)
		append_text(text, list->answer, list->open);
	if (list->viewer)
		append_text(text, list->findings, list->open);
	if (list->viewer && !list->is_stale && strcmp(gtk_stack_get_visible_child_name(list->stack), "nothing") == 0)
		g_string_append(text, adw_status_page_get_title(list->nothing));
	return g_string_free(text, FALSE);
}

static void dispose(GObject *object)
{
	WeftFindingList *list = WEFT_FINDING_LIST(object);
	g_clear_handle_id(&list->rebuild, g_source_remove);
	g_clear_pointer(&list->answer, weft_findings_destroy);
	g_clear_pointer(&list->open_title, g_free);
	list->viewer = NULL;
	list->findings = NULL;
	list->open = NULL;
	G_OBJECT_CLASS(weft_finding_list_parent_class)->dispose(object);
}

static void map(GtkWidget *widget)
{
	GTK_WIDGET_CLASS(weft_finding_list_parent_class)->map(widget);
	if (WEFT_FINDING_LIST(widget)->is_stale)
		build(WEFT_FINDING_LIST(widget));
}

static void weft_finding_list_class_init(WeftFindingListClass *class)
{
	G_OBJECT_CLASS(class)->dispose = dispose;
	GTK_WIDGET_CLASS(class)->map = map;
	gtk_widget_class_set_css_name(GTK_WIDGET_CLASS(class), "findings");
	signals[WENT] = g_signal_new("went", WEFT_TYPE_FINDING_LIST, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static AdwStatusPage *page_new(const char *icon, const char *title)
{
	GtkWidget *page = adw_status_page_new();
	adw_status_page_set_icon_name(ADW_STATUS_PAGE(page), icon);
	adw_status_page_set_title(ADW_STATUS_PAGE(page), title);
	gtk_widget_add_css_class(page, "compact");
	return ADW_STATUS_PAGE(page);
}

static void weft_finding_list_init(WeftFindingList *list)
{
	list->shown = SHOWN;
	list->stack = GTK_STACK(gtk_stack_new());
	list->rows = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
	GtkWidget *scrolled = gtk_scrolled_window_new();
	gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(scrolled), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
	gtk_scrolled_window_set_child(GTK_SCROLLED_WINDOW(scrolled), list->rows);
	list->nothing = page_new("emblem-ok-symbolic", "Nothing Found");
	gtk_stack_add_named(list->stack, adw_bin_new(), "blank");
	gtk_stack_add_named(
	    list->stack, GTK_WIDGET(page_new("system-search-symbolic", "Looking for What Went Wrong\xe2\x80\xa6")), "looking");
	gtk_stack_add_named(list->stack, GTK_WIDGET(list->nothing), "nothing");
	gtk_stack_add_named(list->stack, scrolled, "list");
	adw_bin_set_child(ADW_BIN(list), GTK_WIDGET(list->stack));
}
