/* settings.c: stores settings, and the list of recent traces.  SPDX-License-Identifier: ISC */
#include "settings.h"

#define GROUP "window"
#define RECENT 12u
#define MIME_TYPE "application/x-weft-trace"

static GKeyFile *keys;

static char *path_of_file(void)
{
	return g_build_filename(g_get_user_config_dir(), "weft", "view.ini", NULL);
}

static void save_settings(void)
{
	char *path = path_of_file(), *folder = g_path_get_dirname(path);
	/* If the settings file cannot be written, the settings are lost without a message. */
	if (g_mkdir_with_parents(folder, 0700) == 0)
		g_key_file_save_to_file(keys, path, NULL);
	g_free(folder);
	g_free(path);
}

static void apply_theme(void)
{
	const char *theme = settings_theme();
	adw_style_manager_set_color_scheme(
	    adw_style_manager_get_default(), strcmp(theme, "dark") == 0    ? ADW_COLOR_SCHEME_FORCE_DARK
					     : strcmp(theme, "light") == 0 ? ADW_COLOR_SCHEME_FORCE_LIGHT
									   : ADW_COLOR_SCHEME_DEFAULT);
}

void settings_start(void)
{
	char *path = path_of_file();
	keys = g_key_file_new();
	g_key_file_load_from_file(keys, path, G_KEY_FILE_KEEP_COMMENTS, NULL);
	g_free(path);
	apply_theme();
}

const char *settings_theme(void)
{
	char *stored = g_key_file_get_string(keys, GROUP, "colours", NULL);
	const char *theme = g_strcmp0(stored, "dark") == 0 ? "dark" : g_strcmp0(stored, "light") == 0 ? "light" : "desktop";
	g_free(stored);
	return theme;
}

void settings_set_theme(const char *theme)
{
	g_key_file_set_string(keys, GROUP, "colours", theme);
	apply_theme();
	save_settings();
}

void settings_restore_window(GtkWindow *window, WeftSplit *split)
{
	int width = g_key_file_get_integer(keys, GROUP, "width", NULL),
	    height = g_key_file_get_integer(keys, GROUP, "height", NULL);
	if (width >= 300 && height >= 200 && width <= 16384 && height <= 16384)
		gtk_window_set_default_size(window, width, height);
	if (g_key_file_get_boolean(keys, GROUP, "maximized", NULL))
		gtk_window_maximize(window);
	weft_split_set_open(
	    split, !g_key_file_has_key(keys, GROUP, "panel", NULL) || g_key_file_get_boolean(keys, GROUP, "panel", NULL));
}

void settings_keep_window(GtkWindow *window, gboolean panel)
{
	int width = 0, height = 0;
	gtk_window_get_default_size(window, &width, &height);
	g_key_file_set_integer(keys, GROUP, "width", width);
	g_key_file_set_integer(keys, GROUP, "height", height);
	g_key_file_set_boolean(keys, GROUP, "maximized", gtk_window_is_maximized(window));
	g_key_file_set_boolean(keys, GROUP, "panel", panel);
	save_settings();
}

/* ---- Recent traces ---- */

static gint newest_first(gconstpointer a, gconstpointer b)
{
	return g_date_time_compare(
	    gtk_recent_info_get_modified((GtkRecentInfo *)b), gtk_recent_info_get_modified((GtkRecentInfo *)a));
}

char **settings_recent(void)
{
	GList *all = g_list_sort(gtk_recent_manager_get_items(gtk_recent_manager_get_default()), newest_first);
	GPtrArray *paths = g_ptr_array_new();
	for (GList *item = all; item; item = item->next) {
		char *path = gtk_recent_info_has_application(item->data, g_get_application_name())
				 ? g_filename_from_uri(gtk_recent_info_get_uri(item->data), NULL, NULL)
				 : NULL;
		if (path && paths->len < RECENT && g_file_test(path, G_FILE_TEST_EXISTS))
			g_ptr_array_add(paths, path);
		else
			g_free(path);
	}
	g_list_free_full(all, (GDestroyNotify)gtk_recent_info_unref);
	g_ptr_array_add(paths, NULL);
	return (char **)g_ptr_array_free(paths, FALSE);
}

void settings_add_recent(const char *path)
{
	char *absolute = g_canonicalize_filename(path, NULL), *uri = g_filename_to_uri(absolute, NULL, NULL);
	GtkRecentData data = {
	    .mime_type = (char *)MIME_TYPE, .app_name = (char *)g_get_application_name(), .app_exec = (char *)"weft-view %f"};
	if (uri)
		gtk_recent_manager_add_full(gtk_recent_manager_get_default(), uri, &data);
	g_free(uri);
	g_free(absolute);
}
