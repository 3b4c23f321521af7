/* menus.c: makes the menus of the window from the table of actions.  SPDX-License-Identifier: ISC */
#include "menus.h"
#include "place.h"

#include "settings.h"
#include "window_private.h"

#define METRICS 200u /* maximum number of counters that have a switch in the menu */

/* Returns the key with number n of an action in GTK's notation, as "<Control><Shift>g"; NULL if the action has fewer keys. */
static char *format_accelerator(enum weft_action action, int n)
{
	static const struct {
		const char *dom, *gtk;
	} names[] = {{"ArrowLeft", "Left"}, {"ArrowRight", "Right"}, {"ArrowUp", "Up"}, {"ArrowDown", "Down"},
	    {"PageUp", "Page_Up"}, {"PageDown", "Page_Down"}, {"Space", "space"}, {"Backspace", "BackSpace"}, {"/", "slash"},
	    {"+", "plus"}, {"-", "minus"}, {"=", "equal"}, {"?", "question"}, {"@", "at"}, {".", "period"}, {",", "comma"},
	    {"ContextMenu", "Menu"}};
	char key[16];
	unsigned modifiers = 0;
	if (!weft_action_key(action, n, key, &modifiers))
		return NULL;
	const char *name = key;
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		if (strcmp(names[i].dom, key) == 0)
			name = names[i].gtk;
	if (g_ascii_isupper(key[0]) && key[1] == '\0')
		modifiers |= WEFT_SHIFT;
	return g_strconcat(modifiers & WEFT_CONTROL ? "<Control>" : "", modifiers & WEFT_ALT ? "<Alt>" : "",
	    modifiers & WEFT_SHIFT ? "<Shift>" : "", name, NULL);
}

char *menus_accelerators(enum weft_action action, int max_keys)
{
	GString *all = g_string_new(NULL);
	char *one;
	for (int n = 0; n < max_keys && (one = format_accelerator(action, n)); n++) {
		g_string_append_printf(all, "%s%s", n > 0 ? " " : "", one);
		g_free(one);
	}
	return g_string_free(all, FALSE);
}

static void append_action(GMenu *menu, enum weft_action action)
{
	const struct weft_action_info *info = weft_action_info(action);
	char *detailed = g_strconcat("win.", info->name, NULL), *keys = format_accelerator(action, 0);
	GMenuItem *item = g_menu_item_new(info->label, detailed);
	if (keys)
		g_menu_item_set_attribute(item, "accel", "s", keys);
	g_menu_append_item(menu, item);
	g_object_unref(item);
	g_free(keys);
	g_free(detailed);
}

/* Appends those actions of a group that belong in a menu, as a section; appends nothing if there are none. */
static void append_group(WeftWindow *window, GMenu *menu, enum weft_action_group group, enum weft_menu which)
{
	GMenu *section = g_menu_new();
	for (int a = 0; a < WEFT_ACTION_COUNT; a++) {
		const struct weft_action_info *info = weft_action_info((enum weft_action)a);
		if (info->group == group && info->menus & which && g_action_map_lookup_action(G_ACTION_MAP(window), info->name))
			append_action(section, (enum weft_action)a);
	}
	if (g_menu_model_get_n_items(G_MENU_MODEL(section)) > 0)
		g_menu_append_section(menu, NULL, G_MENU_MODEL(section));
	g_object_unref(section);
}

void menus_show_metrics(WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	for (size_t i = 0; viewer && i < viewer->model->counter_count && i < METRICS; i++) {
		GSimpleAction *action = weft__window_metric_action(window, i);
		g_simple_action_set_state(action, g_variant_new_boolean(!viewer->hidden_metrics[i]));
		g_simple_action_set_enabled(action, viewer->metrics);
	}
}

/* Returns a menu with a switch for each counter; NULL if there are no counters. */
static GMenu *metrics_menu(WeftWindow *window)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	if (!viewer || viewer->model->counter_count == 0)
		return NULL;
	GMenu *menu = g_menu_new(), *section = g_menu_new();
	for (size_t i = 0; i < viewer->model->counter_count && i < METRICS; i++) {
		struct weft_str name = viewer->model->counters[i].name;
		char *text = g_utf8_make_valid(name.ptr, name.len), *action = g_strdup_printf("win.metric-%zu", i);
		char **parts = g_strsplit(text, "_", -1), *label = g_strjoinv("__", parts);
		weft__window_metric_action(window, i);
		g_menu_append(section, label, action);
		g_strfreev(parts);
		g_free(label);
		g_free(action);
		g_free(text);
	}
	menus_show_metrics(window);
	g_menu_append_section(menu, NULL, G_MENU_MODEL(section));
	g_object_unref(section);
	return menu;
}

static void append_metrics(WeftWindow *window, GMenu *menu)
{
	GMenu *metrics = metrics_menu(window), *section = g_menu_new();
	if (metrics) {
		g_menu_append_submenu(section, "Show or Hide Counters", G_MENU_MODEL(metrics));
		g_menu_append_section(menu, NULL, G_MENU_MODEL(section));
		g_object_unref(metrics);
	}
	g_object_unref(section);
}

static void append_submenu(WeftWindow *window, GMenu *menu, enum weft_action_group group)
{
	GMenu *inner = g_menu_new();
	append_group(window, inner, group, WEFT_IN_MAIN);
	g_menu_append_submenu(menu, weft_action_group_label(group), G_MENU_MODEL(inner));
	g_object_unref(inner);
}

static GMenu *main_menu(WeftWindow *window)
{
	GMenu *menu = g_menu_new(), *groups = g_menu_new(), *appearance = g_menu_new(), *themes = g_menu_new(),
	      *last = g_menu_new();
	append_group(window, menu, WEFT_GROUP_FILE, WEFT_IN_MAIN);
	append_submenu(window, groups, WEFT_GROUP_VIEW);
	append_submenu(window, groups, WEFT_GROUP_FIND);
	append_submenu(window, groups, WEFT_GROUP_WALK);
	g_menu_append_section(menu, NULL, G_MENU_MODEL(groups));
	append_group(window, menu, WEFT_GROUP_SHOW, WEFT_IN_MAIN);
	append_metrics(window, menu);
	g_menu_append(appearance, "Follow the Recording", "win.follow");
	g_menu_append(themes, "Same as Desktop", "win.theme::desktop");
	g_menu_append(themes, "Light", "win.theme::light");
	g_menu_append(themes, "Dark", "win.theme::dark");
	g_menu_append_submenu(appearance, "Colours", G_MENU_MODEL(themes));
	g_menu_append_section(menu, NULL, G_MENU_MODEL(appearance));
	append_group(window, last, WEFT_GROUP_HELP, WEFT_IN_MAIN);
	g_menu_append(last, "About weft", "win.about");
	g_menu_append_section(menu, NULL, G_MENU_MODEL(last));
	g_object_unref(groups);
	g_object_unref(appearance);
	g_object_unref(themes);
	g_object_unref(last);
	return menu;
}

static GMenu *recent_menu(void)
{
	GMenu *menu = g_menu_new();
	char **paths = settings_recent();
	for (size_t i = 0; paths[i]; i++) {
		char *name = g_filename_display_basename(paths[i]);
		char **parts = g_strsplit(name, "_", -1), *label = g_strjoinv("__", parts);
		GMenuItem *item = g_menu_item_new(label, NULL);
		g_menu_item_set_action_and_target(item, "win.open-recent", "s", paths[i]);
		g_menu_append_item(menu, item);
		g_object_unref(item);
		g_strfreev(parts);
		g_free(label);
		g_free(name);
	}
	g_strfreev(paths);
	return menu;
}

static GMenu *context_menu(WeftWindow *window)
{
	GMenu *menu = g_menu_new();
	for (int group = 0; group < WEFT_GROUPS; group++)
		append_group(window, menu, (enum weft_action_group)group, WEFT_IN_CONTEXT);
	append_metrics(window, menu);
	GMenu *file = g_menu_new();
	append_action(file, WEFT_ACTION_EXPORT_SVG);
	g_menu_append_section(menu, NULL, G_MENU_MODEL(file));
	g_object_unref(file);
	return menu;
}

void menus_update(WeftWindow *window)
{
	GMenu *menu = main_menu(window), *recent = recent_menu();
	gtk_menu_button_set_menu_model(window->menu_button, G_MENU_MODEL(menu));
	adw_split_button_set_menu_model(window->open_button, G_MENU_MODEL(recent));
	g_object_unref(menu);
	g_object_unref(recent);
}

void menus_popup(WeftWindow *window, double x, double y)
{
	GtkWidget *canvas = GTK_WIDGET(weft_stage_canvas(window->stage));
	GMenu *menu = context_menu(window);
	/* The popover is a child of the window and not of the canvas, because the canvas lays out no children. */
	if (!window->popup) {
		window->popup = gtk_popover_menu_new_from_model(NULL);
		gtk_popover_set_has_arrow(GTK_POPOVER(window->popup), FALSE);
		gtk_widget_set_halign(window->popup, GTK_ALIGN_START);
		gtk_widget_set_parent(window->popup, GTK_WIDGET(window));
	}
	gtk_popover_menu_set_menu_model(GTK_POPOVER_MENU(window->popup), G_MENU_MODEL(menu));
	g_object_unref(menu);
	place_in(canvas, GTK_WIDGET(window), x, y, &x, &y);
	gtk_popover_set_pointing_to(GTK_POPOVER(window->popup), &(GdkRectangle){(int)x, (int)y, 1, 1});
	gtk_popover_popup(GTK_POPOVER(window->popup));
}
