/* window.c: the viewer's window, its actions, and its keys.  SPDX-License-Identifier: ISC */
#include "window.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/number.h"
#include "compat.h"
#include "dialogs.h"
#include "loader.h"
#include "menus.h"
#include "settings.h"
#include "viewer/findings.h"
#include "viewer/live_panel.h"
#include "viewer/matches.h"
#include "viewer/panel.h"
#include "viewer/search.h"
#include "viewer/summary.h"
#include "viewer/summary_panel.h"
#include "viewer/table.h"
#include "viewer/warnings.h"
#include "window_private.h"

#define MATCHES_PX 300 /* maximum height in px of the list of matches, which leaves part of the picture visible */

G_DEFINE_FINAL_TYPE(WeftWindow, weft_window, ADW_TYPE_APPLICATION_WINDOW)

/* ---- Texts ---- */

static void show_title(WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	GString *names = g_string_new(NULL);
	const char *const *paths;
	size_t count = 0;
	for (; (paths = weft_stage_paths(window->stage, count)); count++) {
		char *name = loader_name_of(paths);
		g_string_append_printf(names, "%s%s", count > 0 ? "  ∕  " : "", name);
		g_free(name);
	}
	char summary[WEFT_SUMMARY_BYTES];
	char *facts = g_strdup(viewer ? weft_viewer_summary(viewer, summary) : "");
	gtk_window_set_title(GTK_WINDOW(window), count > 0 ? names->str : "weft");
	adw_window_title_set_title(window->heading, count > 0 ? names->str : "weft");
	if (weft_stage_is_live(window->stage)) {
		char *live = g_strdup_printf(
		    "%s · %s", facts, weft_stage_follows(window->stage) ? "live" : "changed on disk; F5 reads it again");
		g_free(facts);
		facts = live;
	}
	adw_window_title_set_subtitle(window->heading, count > 1 ? "compared, one above the other" : facts);
	g_free(facts);
	g_string_free(names, TRUE);
}

static void show_notice(WeftWindow *window)
{
	const struct weft_compare *viewers = weft_stage_viewers(window->stage);
	struct weft_rows notes = {0};
	GString *text = g_string_new(NULL);
	bool serious = false;
	for (size_t i = 0; i < viewers->count; i++) {
		if (weft_notes_fill(&notes, viewers->viewers[i]->model, NULL) != WEFT_OK)
			continue;
		for (size_t n = 0; n < notes.count; n++) {
			serious |= notes.rows[n].tone == WEFT_TONE_ALARM;
			g_string_append_printf(
			    text, "%s%s %s", text->len > 0 ? "\n" : "", notes.rows[n].name, notes.rows[n].value);
		}
	}
	weft_rows_finish(&notes);
	if (g_strcmp0(window->notice, text->str) != 0) {
		gtk_label_set_text(window->info_text, text->str);
		gtk_widget_remove_css_class(window->info_bar, serious ? "info" : "warning");
		gtk_widget_add_css_class(window->info_bar, serious ? "warning" : "info");
		gtk_revealer_set_reveal_child(window->info_revealer, text->len > 0);
		g_free(window->notice);
		window->notice = g_strdup(text->str);
	}
	g_string_free(text, TRUE);
}

/* Shows the number of matches and the current match; the list is over the picture while the search bar is open. */
static void show_found(WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	char count[WEFT_MATCHES_BYTES] = "";
	if (viewer && !window->search_is_wrong)
		weft_matches_count(weft_stage_viewers(window->stage), count);
	if (g_str_equal(count, "not found"))
		gtk_widget_add_css_class(GTK_WIDGET(window->search_entry), "error");
	else if (!window->search_is_wrong)
		gtk_widget_remove_css_class(GTK_WIDGET(window->search_entry), "error");
	if (!window->search_is_wrong)
		gtk_label_set_text(window->search_count, count);
	if (!viewer)
		return;
	struct weft_rows *rows = weft_row_list_next(window->matches);
	weft_matches_fill(rows, viewer, NULL);
	gtk_widget_set_visible(
	    GTK_WIDGET(window->matches), rows->count > 0 && gtk_search_bar_get_search_mode(window->search_bar));
	weft_row_list_show(window->matches);
}

/* The search may also have been started elsewhere, as by the action "Find similar promises". */
static void show_search(WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	if (viewer && viewer->search_text[0] && !window->search_is_wrong &&
	    strcmp(viewer->search_text, gtk_editable_get_text(GTK_EDITABLE(window->search_entry))) != 0) {
		gtk_editable_set_text(GTK_EDITABLE(window->search_entry), viewer->search_text);
		gtk_search_bar_set_search_mode(window->search_bar, TRUE);
	}
}

/* Describes the selected promise for screen readers. */
static void describe_selection(WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	const char *const *paths = weft_stage_paths(window->stage, weft_stage_viewers(window->stage)->active);
	char *name = paths ? loader_name_of(paths) : g_strdup("nothing");
	char *label = g_strdup_printf("Promises of %s", name);
	char said[WEFT_SUMMARY_BYTES], *text = g_utf8_make_valid(viewer ? weft_viewer_describe(viewer, said) : "", -1);
	gtk_accessible_update_property(GTK_ACCESSIBLE(weft_stage_canvas(window->stage)), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
	    GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, text, -1);
	g_free(text);
	g_free(label);
	g_free(name);
}

static void set_enabled(WeftWindow *window, const char *name, bool enabled)
{
	g_simple_action_set_enabled(G_SIMPLE_ACTION(g_action_map_lookup_action(G_ACTION_MAP(window), name)), enabled);
}

static void show_actions(WeftWindow *window)
{
	static const char *const of_viewer[] = {
	    "export-svg", "export-png", "go-time", "set-start", "set-duration", "find", "compare", "copy-link"};
	const struct weft_compare *viewers = weft_stage_viewers(window->stage);
	for (int a = 0; a < WEFT_ACTION_COUNT; a++) {
		const struct weft_action_info *info = weft_action_info((enum weft_action)a);
		GAction *action = g_action_map_lookup_action(G_ACTION_MAP(window), info->name);
		if (!action || info->who != WEFT_BY_CORE)
			continue;
		unsigned state = weft_compare_action_state(viewers, (enum weft_action)a);
		g_simple_action_set_enabled(G_SIMPLE_ACTION(action), viewers->count > 0 && state & WEFT_ACTION_ENABLED);
		if (g_action_get_state_type(action))
			g_simple_action_set_state(G_SIMPLE_ACTION(action), g_variant_new_boolean((state & WEFT_ACTION_ON) != 0));
	}
	set_enabled(window, "reload", weft_stage_can_reload(window->stage));
	for (size_t i = 0; i < G_N_ELEMENTS(of_viewer); i++)
		set_enabled(window, of_viewer[i], viewers->count > 0);
}

/* ---- Changes ---- */

/* Returns whether a page of the side panel is visible; pages that are expensive to compute are updated only then. */
static bool is_page_visible(WeftWindow *window, WeftRowList *page)
{
	GtkWidget *visible = gtk_stack_get_visible_child(window->side);
	return weft_split_is_open(window->split) && visible &&
	       (visible == GTK_WIDGET(page) || gtk_widget_is_ancestor(GTK_WIDGET(page), visible));
}

static void show_panel(WeftWindow *window)
{
	const struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	if (!viewer || !weft_split_is_open(window->split))
		return;
	weft_panel_fill(weft_row_list_next(window->panel), viewer, weft_panel_subject(viewer), NULL);
	weft_row_list_show(window->panel);
}

static void show_summary(WeftWindow *window)
{
	const struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	if (!viewer || !is_page_visible(window, window->summary))
		return;
	weft_summary_fill(weft_row_list_next(window->summary), viewer, NULL);
	weft_row_list_show(window->summary);
}

/* Lists the findings of the active trace; the number on the button counts the findings of all traces. */
static void show_findings(WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	size_t own = viewer ? weft_findings_count(viewer) : 0, all = weft_compare_findings(weft_stage_viewers(window->stage));
	if (!viewer)
		return;
	weft_findings_fill(weft_row_list_next(window->findings), viewer, NULL);
	weft_row_list_show(window->findings);
	char buf[2][WEFT_NUMBER_BYTES];
	const char *count = weft_number_text(buf[0], all);
	char *name = g_strdup_printf("Findings: %s", count),
	     *title = own > 0 ? g_strdup_printf("Findings (%s)", weft_number_text(buf[1], own)) : g_strdup("Findings");
	adw_button_content_set_label(window->findings_count, count);
	gtk_accessible_update_property(GTK_ACCESSIBLE(window->findings_button), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
	gtk_widget_set_visible(window->findings_button, all > 0);
	gtk_stack_page_set_title(gtk_stack_get_page(window->side, GTK_WIDGET(window->findings)), title);
	g_free(title);
	g_free(name);
}

static void show_groups(WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	if (!viewer || !is_page_visible(window, window->types))
		return;
	weft_table_fill(weft_row_list_next(window->types), viewer, NULL);
	weft_row_list_show(window->types);
}

static void show_live(WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	if (!viewer || !is_page_visible(window, window->live))
		return;
	weft_live_panel_fill(weft_row_list_next(window->live), viewer, NULL);
	weft_row_list_show(window->live);
}

/* The table of promise types is computed when the user opens its page. */
static void on_side(WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	show_summary(window);
	show_live(window);
	if (!viewer || !is_page_visible(window, window->types))
		return;
	weft_viewer_show_table(viewer);
	weft_stage_update(window->stage);
}

static void on_filter_types(WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	if (!viewer)
		return;
	weft_viewer_filter_table(viewer, gtk_editable_get_text(window->types_filter));
	weft_stage_update(window->stage);
}

static void show_side(WeftWindow *window, const char *page)
{
	gtk_stack_set_visible_child_name(window->side, page);
	weft_split_set_open(window->split, TRUE);
}

static void list_findings(WeftWindow *window)
{
	weft_compare_show_findings(weft_stage_viewers(window->stage));
	weft_stage_update(window->stage);
	show_findings(window);
	show_side(window, "findings");
	weft_row_list_focus(window->findings, WEFT_ROW_FINDING);
}

static void on_pressed(WeftRowList *list, unsigned number, WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	const struct weft_row *row = weft_row_list_row(list, number);
	if (!viewer || !row)
		return;
	/* A link in the panel is pressed by a user who reads the panel, so the focus returns to the picture. */
	if (row->kind == WEFT_ROW_LINK && list == window->panel)
		gtk_widget_grab_focus(GTK_WIDGET(weft_stage_canvas(window->stage)));
	const bool is_finding = list == window->summary && row->kind == WEFT_ROW_FINDING;
	weft_viewer_press_row(viewer, row);
	if (is_finding)
		show_side(window, "findings");
	weft_compare_follow(weft_stage_viewers(window->stage));
	weft_stage_update(window->stage);
}

/* The panel describes the selected promise instead of the trace, until no promise is selected. */
static void turn_page(WeftWindow *window, const struct weft_viewer *viewer)
{
	const bool is_selected = viewer && viewer->selected != WEFT_NONE;
	const char *from = is_selected ? "summary" : "promise";
	if (g_strcmp0(gtk_stack_get_visible_child_name(window->side), from) == 0)
		gtk_stack_set_visible_child_name(window->side, is_selected ? "promise" : "summary");
}

static void on_changed(WeftStage *stage, unsigned changes, WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(stage);
	if (changes & WEFT_CHANGED_SELECTION)
		turn_page(window, viewer);
	if (changes & (WEFT_CHANGED_FINDINGS | WEFT_CHANGED_SETTING | WEFT_CHANGED_SELECTION))
		show_summary(window);
	if (changes & (WEFT_CHANGED_SELECTION | WEFT_CHANGED_FINDINGS | WEFT_CHANGED_SETTING))
		show_findings(window);
	if (changes & WEFT_CHANGED_SPAN && weft_split_is_open(window->split))
		show_side(window, "types");
	if (changes & WEFT_CHANGED_TABLE)
		show_groups(window);
	if (changes & (WEFT_CHANGED_LIVE | WEFT_CHANGED_SETTING))
		show_live(window);
	if (changes & WEFT_CHANGED_ANSWER)
		show_side(window, "findings");
	if (changes & (WEFT_CHANGED_SELECTION | WEFT_CHANGED_HOVER | WEFT_CHANGED_SETTING)) {
		describe_selection(window);
		show_panel(window);
	}
	if (changes & (WEFT_CHANGED_SEARCH | WEFT_CHANGED_SELECTION))
		show_found(window);
	if (changes & WEFT_CHANGED_SEARCH)
		show_search(window);
	if (changes & ~(unsigned)(WEFT_CHANGED_HOVER | WEFT_CHANGED_PICTURE | WEFT_CHANGED_OVERLAY))
		show_actions(window);
	if (changes & WEFT_CHANGED_SETTING) {
		show_title(window);
		menus_show_metrics(window);
	}
	if (changes & WEFT_CHANGED_MENU && viewer)
		menus_popup(window, viewer->menu_x_px, viewer->menu_y_px);
}

static void go_to_pending_place(WeftWindow *window)
{
	struct weft_error err = {0};
	if (!window->place || weft_stage_viewers(window->stage)->count == 0 || weft_stage_is_loading(window->stage))
		return;
	if (weft_compare_go(weft_stage_viewers(window->stage), window->place, &err) < 0)
		weft__window_toast(window, err.what);
	g_clear_pointer(&window->place, g_free);
	weft_stage_update(window->stage);
}

void weft_window_go(WeftWindow *window, const char *place)
{
	char *copy = g_strdup(place);
	g_free(window->place);
	window->place = copy;
	go_to_pending_place(window);
}

/* Copies a link such as "#t=1.2ms..3.4ms&sel=18" to the clipboard. */
static void copy_link(WeftWindow *window)
{
	char link[4096] = "#";
	size_t length = weft_compare_place(weft_stage_viewers(window->stage), link + 1, sizeof link - 1);
	if (length == 0 || length >= sizeof link - 1)
		return;
	gdk_clipboard_set_text(gtk_widget_get_clipboard(GTK_WIDGET(window)), link);
	weft__window_toast(window, "Link copied; open it with weft view --place=LINK TRACE");
}

static void on_loaded(WeftStage *stage, WeftWindow *window)
{
	const struct weft_compare *viewers = weft_stage_viewers(stage);
	const char *const *paths = weft_stage_paths(stage, viewers->count - 1);
	if (!paths[1] && strcmp(paths[0], "-") != 0)
		settings_add_recent(paths[0]);
	show_title(window);
	show_notice(window);
	show_actions(window);
	describe_selection(window);
	show_findings(window);
	show_summary(window);
	show_panel(window);
	menus_update(window);
	go_to_pending_place(window);
}

static void on_live(WeftStage *stage, WeftWindow *window)
{
	bool follows = weft_stage_follows(stage), is_live = weft_stage_is_live(stage);
	GAction *action = g_action_map_lookup_action(G_ACTION_MAP(window), "follow");
	g_simple_action_set_state(G_SIMPLE_ACTION(action), g_variant_new_boolean(follows));
	gtk_widget_set_visible(GTK_WIDGET(window->follow_button), is_live || follows);
	show_title(window);
}

static void on_failed(WeftStage *stage, const char *why, WeftWindow *window)
{
	char *copy = g_strdup(why);
	g_free(window->error);
	window->error = copy;
	if (weft_stage_viewers(stage)->count > 0)
		weft__window_toast(window, why);
	show_title(window);
	show_actions(window);
}

void weft__window_toast(WeftWindow *window, const char *text)
{
	char *escaped = g_markup_escape_text(text, -1), *copy = g_strdup(text);
	g_free(window->toast);
	window->toast = copy;
	adw_toast_overlay_add_toast(window->toasts, adw_toast_new(escaped));
	g_free(escaped);
}

/* ---- Searching ---- */

void weft__window_search(WeftWindow *window)
{
	struct weft_error err = {0};
	bool is_open = gtk_search_bar_get_search_mode(window->search_bar);
	const char *text = is_open ? gtk_editable_get_text(GTK_EDITABLE(window->search_entry)) : "";
	bool ok = weft_stage_search(window->stage, text, &err);
	window->search_is_wrong = !ok;
	if (!ok) {
		gtk_label_set_text(window->search_count, err.what);
		gtk_widget_add_css_class(GTK_WIDGET(window->search_entry), "error");
	} else {
		gtk_widget_remove_css_class(GTK_WIDGET(window->search_entry), "error");
	}
	show_found(window);
}

static void on_search_mode(WeftWindow *window)
{
	weft__window_search(window);
	if (!gtk_search_bar_get_search_mode(window->search_bar))
		gtk_widget_grab_focus(GTK_WIDGET(weft_stage_canvas(window->stage)));
}

/* Moves the focus from the search text down into the list of matches, in which GTK's own keys work. */
static gboolean on_search_key(GtkEventControllerKey *keys, guint key, guint code, GdkModifierType state, WeftWindow *window)
{
	if ((key != GDK_KEY_Down && key != GDK_KEY_KP_Down) || !gtk_widget_get_mapped(GTK_WIDGET(window->matches)))
		return FALSE;
	weft_row_list_focus(window->matches, WEFT_ROW_LINK);
	return TRUE;
}

static void perform_action(WeftWindow *window, enum weft_action action)
{
	if (weft_compare_act(weft_stage_viewers(window->stage), action) == WEFT_OK)
		weft_stage_update(window->stage);
}

static void on_next_match(WeftWindow *window)
{
	perform_action(window, WEFT_ACTION_NEXT_MATCH);
}

static void on_previous_match(WeftWindow *window)
{
	perform_action(window, WEFT_ACTION_PREVIOUS_MATCH);
}

/* ---- Actions ---- */

static void perform_core_action(WeftWindow *window, enum weft_action action)
{
	/* The first press of Escape closes the search and clears its matches. */
	if (action == WEFT_ACTION_CLEAR && gtk_search_bar_get_search_mode(window->search_bar)) {
		gtk_search_bar_set_search_mode(window->search_bar, FALSE);
		return;
	}
	/* In the list of findings, Escape returns to the picture. */
	if (action == WEFT_ACTION_CLEAR)
		gtk_widget_grab_focus(GTK_WIDGET(weft_stage_canvas(window->stage)));
	perform_action(window, action);
}

static void on_core_action(GSimpleAction *simple, GVariant *parameter, gpointer data)
{
	enum weft_action action = weft_action_find(g_action_get_name(G_ACTION(simple)));
	if (action < WEFT_ACTION_COUNT)
		perform_core_action(data, action);
}

static void on_app_action(GSimpleAction *simple, GVariant *parameter, gpointer data)
{
	WeftWindow *window = data;
	switch ((int)weft_action_find(g_action_get_name(G_ACTION(simple)))) {
	case WEFT_ACTION_OPEN: dialogs_open(window, false); break;
	case WEFT_ACTION_COMPARE: dialogs_open(window, true); break;
	case WEFT_ACTION_RELOAD: weft_stage_reload(window->stage); break;
	case WEFT_ACTION_EXPORT_SVG: dialogs_export(window, "svg"); break;
	case WEFT_ACTION_EXPORT_PNG: dialogs_export(window, "png"); break;
	case WEFT_ACTION_SET_START: dialogs_ask_time(window, DIALOGS_START); break;
	case WEFT_ACTION_GO_TIME: dialogs_ask_time(window, DIALOGS_MIDDLE); break;
	case WEFT_ACTION_SET_DURATION: dialogs_ask_time(window, DIALOGS_DURATION); break;
	case WEFT_ACTION_FIND:
		gtk_search_bar_set_search_mode(window->search_bar, TRUE);
		gtk_widget_grab_focus(GTK_WIDGET(window->search_entry));
		gtk_editable_select_region(GTK_EDITABLE(window->search_entry), 0, -1);
		break;
	case WEFT_ACTION_COPY_LINK: copy_link(window); break;
	case WEFT_ACTION_FINDINGS: list_findings(window); break;
	case WEFT_ACTION_TABLE:
		show_side(window, "types");
		on_side(window);
		break;
	case WEFT_ACTION_LIVE:
		show_side(window, "live");
		show_live(window);
		weft_row_list_focus(window->live, WEFT_ROW_FINDING);
		break;
	case WEFT_ACTION_SHORTCUTS: dialogs_shortcuts(window); break;
	default: break;
	}
}

static void on_metric(GSimpleAction *action, GVariant *value, gpointer data)
{
	WeftWindow *window = data;
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	size_t counter = (size_t)g_ascii_strtoull(g_action_get_name(G_ACTION(action)) + strlen("metric-"), NULL, 10);
	if (!viewer || counter >= viewer->model->counter_count)
		return;
	weft_viewer_set_metric(viewer, counter, g_variant_get_boolean(value));
	weft_stage_update(window->stage);
}

GSimpleAction *weft__window_metric_action(WeftWindow *window, size_t counter)
{
	char *name = g_strdup_printf("metric-%zu", counter);
	GSimpleAction *action = G_SIMPLE_ACTION(g_action_map_lookup_action(G_ACTION_MAP(window), name));
	if (!action) {
		action = g_simple_action_new_stateful(name, NULL, g_variant_new_boolean(TRUE));
		g_signal_connect_object(action, "change-state", G_CALLBACK(on_metric), window, 0);
		g_action_map_add_action(G_ACTION_MAP(window), G_ACTION(action));
		g_object_unref(action); /* the map holds it */
	}
	g_free(name);
	return action;
}

static void on_open_recent(GSimpleAction *action, GVariant *parameter, gpointer data)
{
	weft_window_open(data, g_variant_get_string(parameter, NULL));
}

static void on_about(GSimpleAction *action, GVariant *parameter, gpointer data)
{
	dialogs_about(data);
}

static void on_close(GSimpleAction *action, GVariant *parameter, gpointer data)
{
	gtk_window_close(GTK_WINDOW(data));
}

static void on_follow(GSimpleAction *action, GVariant *value, gpointer data)
{
	weft_stage_set_follow(WEFT_WINDOW(data)->stage, g_variant_get_boolean(value));
}

static void on_theme(GSimpleAction *action, GVariant *value, gpointer data)
{
	settings_set_theme(g_variant_get_string(value, NULL));
	g_simple_action_set_state(action, value);
}

static void add_actions(WeftWindow *window)
{
	static const GActionEntry own[] = {
	    {.name = "open-recent", .activate = on_open_recent, .parameter_type = "s"},
	    {.name = "about", .activate = on_about},
	    {.name = "close", .activate = on_close},
	};
	GActionMap *map = G_ACTION_MAP(window);
	for (int a = 0; a < WEFT_ACTION_COUNT; a++) {
		const struct weft_action_info *info = weft_action_info((enum weft_action)a);
		if (a == WEFT_ACTION_PANEL) {
			GPropertyAction *panel = g_property_action_new(info->name, window->split, "open");
			g_action_map_add_action(map, G_ACTION(panel));
			g_object_unref(panel);
			continue;
		}
		bool is_switch = info->group == WEFT_GROUP_SHOW || a == WEFT_ACTION_FILTER;
		GSimpleAction *action = is_switch ? g_simple_action_new_stateful(info->name, NULL, g_variant_new_boolean(FALSE))
						  : g_simple_action_new(info->name, NULL);
		g_signal_connect_object(action, "activate",
		    info->who == WEFT_BY_CORE ? G_CALLBACK(on_core_action) : G_CALLBACK(on_app_action), window, 0);
		g_action_map_add_action(map, G_ACTION(action));
		g_object_unref(action);
	}
	g_action_map_add_action_entries(map, own, G_N_ELEMENTS(own), window);
	GSimpleAction *follow = g_simple_action_new_stateful("follow", NULL, g_variant_new_boolean(FALSE));
	g_signal_connect_object(follow, "change-state", G_CALLBACK(on_follow), window, 0);
	g_action_map_add_action(map, G_ACTION(follow));
	g_object_unref(follow);
	GSimpleAction *theme =
	    g_simple_action_new_stateful("theme", G_VARIANT_TYPE_STRING, g_variant_new_string(settings_theme()));
	g_signal_connect_object(theme, "change-state", G_CALLBACK(on_theme), window, 0);
	g_action_map_add_action(map, G_ACTION(theme));
	g_object_unref(theme);
}

/* ---- Keys ---- */

/* Returns the name of a key for weft_action_of_key(), which is the key's name in the DOM. */
static const char *key_name(guint keyval, char buf[16])
{
	static const struct {
		guint keyval;
		const char *name;
	} names[] = {{GDK_KEY_Left, "ArrowLeft"}, {GDK_KEY_Right, "ArrowRight"}, {GDK_KEY_Up, "ArrowUp"},
	    {GDK_KEY_Down, "ArrowDown"}, {GDK_KEY_Page_Up, "PageUp"}, {GDK_KEY_Page_Down, "PageDown"}, {GDK_KEY_Home, "Home"},
	    {GDK_KEY_End, "End"}, {GDK_KEY_Escape, "Escape"}, {GDK_KEY_BackSpace, "Backspace"}, {GDK_KEY_space, "Space"},
	    {GDK_KEY_KP_Add, "+"}, {GDK_KEY_KP_Subtract, "-"}, {GDK_KEY_Return, "Enter"}, {GDK_KEY_Menu, "ContextMenu"},
	    {GDK_KEY_Tab, "Tab"}};
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		if (names[i].keyval == keyval)
			return names[i].name;
	if (keyval >= GDK_KEY_F1 && keyval <= GDK_KEY_F12)
		return gdk_keyval_name(keyval);
	guint32 unicode = gdk_keyval_to_unicode(keyval);
	if (unicode < 0x20 || unicode == 0x7f)
		return NULL;
	buf[g_unichar_to_utf8(unicode, buf)] = '\0';
	return buf;
}

/* Handles keys that no text entry, button or list has used. */
static gboolean on_key(GtkEventControllerKey *keys, guint keyval, guint keycode, GdkModifierType state, WeftWindow *window)
{
	char buf[16];
	if (compat_has_dialog(GTK_WINDOW(window)))
		return GDK_EVENT_PROPAGATE;
	const char *name = key_name(keyval, buf);
	unsigned modifiers = (state & GDK_SHIFT_MASK ? WEFT_SHIFT : 0u) | (state & GDK_CONTROL_MASK ? WEFT_CONTROL : 0u) |
			     (state & GDK_ALT_MASK ? WEFT_ALT : 0u);
	enum weft_action action = name ? weft_action_of_key(name, modifiers) : WEFT_ACTION_COUNT;
	GtkWidget *focus = gtk_window_get_focus(GTK_WINDOW(window));
	if (keyval == GDK_KEY_Up && modifiers == 0 && focus && gtk_widget_is_ancestor(focus, GTK_WIDGET(window->matches)))
		return gtk_widget_grab_focus(GTK_WIDGET(window->search_entry));
	if (action == WEFT_ACTION_COUNT || !g_action_map_lookup_action(G_ACTION_MAP(window), weft_action_info(action)->name))
		return GDK_EVENT_PROPAGATE;
	/* The action is called without its GAction, because the GAction's "enabled" is updated only after the main loop has
	 * handled all keys. */
	if (weft_action_info(action)->who == WEFT_BY_CORE)
		perform_core_action(window, action);
	else
		g_action_group_activate_action(G_ACTION_GROUP(window), weft_action_info(action)->name, NULL);
	return GDK_EVENT_STOP;
}

/* ---- Life ---- */

static gboolean on_drop(GtkDropTarget *target, const GValue *value, double x, double y, WeftWindow *window)
{
	GdkFileList *list = g_value_get_boxed(value);
	for (GSList *file = gdk_file_list_get_files(list); file; file = file->next) {
		char *path = g_file_get_path(file->data), *trace = path ? loader_trace_of(path) : NULL;
		if (trace)
			weft_window_open(window, trace);
		g_free(trace);
		g_free(path);
	}
	return TRUE;
}

WeftWindow *weft_window_new(GtkApplication *application)
{
	return g_object_new(WEFT_TYPE_WINDOW, "application", application, NULL);
}

void weft_window_open(WeftWindow *window, const char *path)
{
	if (weft_stage_viewers(window->stage)->count > 0 || weft_stage_is_loading(window->stage)) {
		window = weft_window_new(gtk_window_get_application(GTK_WINDOW(window)));
		gtk_window_present(GTK_WINDOW(window));
	}
	weft_window_compare(window, path);
}

void weft_window_compare(WeftWindow *window, const char *path)
{
	weft_window_add(window, (const char *const[]){path, NULL});
}

void weft_window_add(WeftWindow *window, const char *const *paths)
{
	weft_stage_add(window->stage, paths);
	show_title(window);
}

static gboolean close_request(GtkWindow *window)
{
	settings_keep_window(window, weft_split_is_open(WEFT_WINDOW(window)->split));
	weft_stage_finish(WEFT_WINDOW(window)->stage);
	return GTK_WINDOW_CLASS(weft_window_parent_class)->close_request(window);
}

static void dispose(GObject *object)
{
	WeftWindow *window = WEFT_WINDOW(object);
	g_clear_pointer(&window->place, g_free);
	g_clear_pointer(&window->toast, g_free);
	g_clear_pointer(&window->error, g_free);
	g_clear_pointer(&window->notice, g_free);
	g_clear_pointer(&window->popup, gtk_widget_unparent);
	G_OBJECT_CLASS(weft_window_parent_class)->dispose(object);
}

static void weft_window_class_init(WeftWindowClass *class)
{
	GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
	G_OBJECT_CLASS(class)->dispose = dispose;
	GTK_WINDOW_CLASS(class)->close_request = close_request;
	g_type_ensure(WEFT_TYPE_STAGE);
	g_type_ensure(WEFT_TYPE_ROW_LIST);
	g_type_ensure(WEFT_TYPE_SPLIT);
	gtk_widget_class_set_template_from_resource(widget_class, "/org/weft/View/window.ui");
#define CHILD(name) gtk_widget_class_bind_template_child(widget_class, WeftWindow, name)
	CHILD(toasts);
	CHILD(heading);
	CHILD(open_button);
	CHILD(menu_button);
	CHILD(search_bar);
	CHILD(search_entry);
	CHILD(search_count);
	CHILD(info_bar);
	CHILD(info_revealer);
	CHILD(info_close);
	CHILD(info_text);
	CHILD(split);
	CHILD(stage);
	CHILD(side);
	CHILD(summary);
	CHILD(panel);
	CHILD(findings);
	CHILD(types);
	CHILD(types_filter);
	CHILD(live);
	CHILD(matches);
	CHILD(findings_button);
	CHILD(findings_count);
	CHILD(follow_button);
#undef CHILD
}

static void close_info(WeftWindow *window)
{
	gtk_revealer_set_reveal_child(window->info_revealer, FALSE);
}

static void weft_window_init(WeftWindow *window)
{
	gtk_widget_init_template(GTK_WIDGET(window));
	/* The button that opens the list of recent traces has no text. */
	for (GtkWidget *part = gtk_widget_get_first_child(GTK_WIDGET(window->open_button)); part;
	     part = gtk_widget_get_next_sibling(part))
		if (GTK_IS_MENU_BUTTON(part))
			gtk_accessible_update_property(GTK_ACCESSIBLE(part), GTK_ACCESSIBLE_PROPERTY_LABEL, "Recent Traces", -1);
	g_signal_connect_object(window->stage, "changed", G_CALLBACK(on_changed), window, 0);
	g_signal_connect_object(window->stage, "loaded", G_CALLBACK(on_loaded), window, 0);
	g_signal_connect_object(window->stage, "live", G_CALLBACK(on_live), window, 0);
	g_signal_connect_object(window->findings, "pressed", G_CALLBACK(on_pressed), window, 0);
	g_signal_connect_object(window->summary, "pressed", G_CALLBACK(on_pressed), window, 0);
	g_signal_connect_object(window->panel, "pressed", G_CALLBACK(on_pressed), window, 0);
	g_signal_connect_object(window->types, "pressed", G_CALLBACK(on_pressed), window, 0);
	g_signal_connect_object(window->types_filter, "search-changed", G_CALLBACK(on_filter_types), window, G_CONNECT_SWAPPED);
	g_signal_connect_object(window->live, "pressed", G_CALLBACK(on_pressed), window, 0);
	g_signal_connect_object(window->matches, "pressed", G_CALLBACK(on_pressed), window, 0);
	g_signal_connect_object(window->side, "notify::visible-child", G_CALLBACK(on_side), window, G_CONNECT_SWAPPED);
	g_signal_connect_object(window->split, "notify::open", G_CALLBACK(show_summary), window, G_CONNECT_SWAPPED);
	g_signal_connect_object(window->split, "notify::open", G_CALLBACK(show_panel), window, G_CONNECT_SWAPPED);
	g_signal_connect_object(window->split, "notify::open", G_CALLBACK(show_live), window, G_CONNECT_SWAPPED);
	g_signal_connect_object(window->stage, "failed", G_CALLBACK(on_failed), window, 0);
	weft_row_list_limit(window->matches, MATCHES_PX);
	add_actions(window);
	menus_update(window);

	g_signal_connect_object(
	    window->search_entry, "search-changed", G_CALLBACK(weft__window_search), window, G_CONNECT_SWAPPED);
	g_signal_connect_object(window->search_entry, "activate", G_CALLBACK(on_next_match), window, G_CONNECT_SWAPPED);
	g_signal_connect_object(window->search_entry, "next-match", G_CALLBACK(on_next_match), window, G_CONNECT_SWAPPED);
	g_signal_connect_object(window->search_entry, "previous-match", G_CALLBACK(on_previous_match), window, G_CONNECT_SWAPPED);
	gtk_search_bar_connect_entry(window->search_bar, GTK_EDITABLE(window->search_entry));
	g_signal_connect_object(
	    window->search_bar, "notify::search-mode-enabled", G_CALLBACK(on_search_mode), window, G_CONNECT_SWAPPED);
	g_signal_connect_object(window->info_close, "clicked", G_CALLBACK(close_info), window, G_CONNECT_SWAPPED);

	GtkEventController *keys = gtk_event_controller_key_new();
	gtk_event_controller_set_propagation_phase(keys, GTK_PHASE_CAPTURE);
	g_signal_connect(keys, "key-pressed", G_CALLBACK(on_search_key), window);
	gtk_widget_add_controller(GTK_WIDGET(window->search_entry), keys);

	keys = gtk_event_controller_key_new();
	g_signal_connect(keys, "key-pressed", G_CALLBACK(on_key), window);
	gtk_widget_add_controller(GTK_WIDGET(window), keys);

	GtkDropTarget *drop = gtk_drop_target_new(GDK_TYPE_FILE_LIST, GDK_ACTION_COPY);
	g_signal_connect(drop, "drop", G_CALLBACK(on_drop), window);
	gtk_widget_add_controller(GTK_WIDGET(window), GTK_EVENT_CONTROLLER(drop));

	settings_restore_window(GTK_WINDOW(window), window->split);
	show_actions(window);
}
