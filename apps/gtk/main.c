/* main.c: weft-view, the program of the window that `weft view` starts.  SPDX-License-Identifier: ISC */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop_monitor.h"
#include "settings.h"
#include "window.h"

#define DUMP_MS 30

static struct {
	char **paths;
	gboolean compare, together, version;
	char *place;
	const char *dump; /* file for the contents of the window, which tests read; or NULL */
	GString *dumped;
	unsigned beats;
} args;

static const GOptionEntry options[] = {
    {"compare", 'c', 0, G_OPTION_ARG_NONE, &args.compare, "Show the traces one above the other, in one window", NULL},
    {"together", 't', 0, G_OPTION_ARG_NONE, &args.together, "Show the traces as one picture", NULL},
    {"place", 'p', 0, G_OPTION_ARG_STRING, &args.place,
	"Show the time and the promise of a link from weft explain or from a viewer", "LINK"},
    {"version", 0, 0, G_OPTION_ARG_NONE, &args.version, "Print the version", NULL},
    {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &args.paths, NULL, "TRACE..."},
    {0},
};

/* Writes the number of times that the main loop was idle, so that tests can distinguish an idle window from a slow window. */
static void write_beat(void)
{
	char *path = g_strconcat(args.dump, ".beat", NULL), *number = g_strdup_printf("%u", ++args.beats);
	g_file_set_contents_full(path, number, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0600, NULL);
	g_free(number);
	g_free(path);
}

/* Writes the contents of all windows to a file when they change; the new file replaces the old file atomically. */
static gboolean write_dump(gpointer application)
{
	GString *out = g_string_new("{\"windows\":[");
	const char *comma = "";
	for (GList *w = gtk_application_get_windows(application); w; w = w->next) {
		if (!WEFT_IS_WINDOW(w->data))
			continue;
		g_string_append(out, comma);
		weft_window_dump(w->data, out);
		comma = ",";
	}
	g_string_append(out, "]}\n");
	if (args.dumped && g_string_equal(args.dumped, out)) {
		g_string_free(out, TRUE);
		write_beat();
		return G_SOURCE_CONTINUE;
	}
	g_file_set_contents_full(args.dump, out->str, (gssize)out->len, G_FILE_SET_CONTENTS_CONSISTENT, 0600, NULL);
	if (args.dumped)
		g_string_free(args.dumped, TRUE);
	args.dumped = out;
	write_beat();
	return G_SOURCE_CONTINUE;
}

static WeftWindow *new_window(GtkApplication *application)
{
	WeftWindow *window = weft_window_new(application);
	gtk_window_present(GTK_WINDOW(window));
	return window;
}

static void on_activate(GtkApplication *application, gpointer data)
{
	WeftWindow *window = NULL;
	if (!args.paths)
		new_window(application);
	for (char **path = args.paths; path && *path; path += args.together ? g_strv_length(path) : 1) {
		if (!window || !args.compare)
			window = new_window(application);
		weft_window_add(window, args.together ? (const char *const *)path : (const char *const[]){*path, NULL});
		if (args.place)
			weft_window_go(window, args.place);
	}
	if (args.dump)
		g_timeout_add_full(G_PRIORITY_LOW, DUMP_MS, write_dump, application, NULL);
}

/* Windows save their state when they are closed, so they are closed before the program ends. */
static void on_quit(GSimpleAction *action, GVariant *parameter, gpointer application)
{
	GList *windows = g_list_copy(gtk_application_get_windows(application));
	for (GList *w = windows; w; w = w->next)
		gtk_window_close(w->data);
	g_list_free(windows);
}

static void on_startup(GtkApplication *application, gpointer data)
{
	gtk_application_set_accels_for_action(application, "win.close", (const char *[]){"<Control>w", NULL});
	gtk_application_set_accels_for_action(application, "app.quit", (const char *[]){"<Control>q", NULL});
	g_action_map_add_action_entries(
	    G_ACTION_MAP(application), (const GActionEntry[]){{.name = "quit", .activate = on_quit}}, 1, application);
	settings_start();
}

int main(int argc, char **argv)
{
	GError *error = NULL;
	setlocale(LC_ALL, "");
	g_set_prgname("weft-view");
	g_set_application_name("weft");
	GOptionContext *context = g_option_context_new(NULL);
	g_option_context_add_main_entries(context, options, NULL);
	bool parsed = g_option_context_parse(context, &argc, &argv, &error);
	g_option_context_free(context);
	if (!parsed) {
		fprintf(stderr, "weft: view: %s\n", error->message);
		g_error_free(error);
		return 2;
	}
	if (args.version) {
		puts("weft " WEFT_VERSION);
		return 0;
	}
	if (!gtk_init_check()) {
		fputs(
		    "weft: view: cannot open a display; use weft html TRACE -o page.html to make a page of the trace\n", stderr);
		return 2;
	}
	args.dump = getenv("WEFT_VIEW_DUMP");
	watch_start();
	/* Each call of weft-view runs in its own process, because standard input and working directory differ. */
	AdwApplication *application = adw_application_new("org.weft.View", G_APPLICATION_NON_UNIQUE);
	g_signal_connect(application, "startup", G_CALLBACK(on_startup), NULL);
	g_signal_connect(application, "activate", G_CALLBACK(on_activate), NULL);
	int status = g_application_run(G_APPLICATION(application), 0, NULL);
	g_object_unref(application);
	g_strfreev(args.paths);
	g_free(args.place);
	return status;
}
