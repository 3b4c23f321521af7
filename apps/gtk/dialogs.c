/* dialogs.c: the dialogs of the viewer's window.  SPDX-License-Identifier: ISC */
#include "dialogs.h"

#include <errno.h>
#include <glib/gstdio.h>

#include "backends/cairo/cairo.h"
#include "base/duration.h"
#include "compat.h"
#include "loader.h"
#include "menus.h"
#include "window_private.h"

/* ---- Open ---- */

static void on_open(GtkWindow *window, const char *file, const void *compare)
{
	char *path = loader_trace_of(file);
	if (path && compare)
		weft_window_compare(WEFT_WINDOW(window), path);
	else if (path)
		weft_window_open(WEFT_WINDOW(window), path);
	g_free(path);
}

void dialogs_open(WeftWindow *window, bool compare)
{
	compat_choose_file(GTK_WINDOW(window), compare ? "Compare With" : "Open a Trace", compare ? "_Compare" : "_Open", NULL,
	    on_open, compare ? "compare" : NULL);
}

/* ---- Export ---- */

static int write_some(void *ctx, const void *bytes, size_t size)
{
	return fwrite(bytes, 1, size, ctx) != size;
}

/* Writes the picture of the active viewer in its size on the screen, with the time axis below the picture. */
static int export_to(WeftWindow *window, FILE *file, enum weft_picture format, struct weft_error *err)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	struct weft_cairo *cairo = NULL;
	struct weft_draw_list list = {0};
	if (weft_cairo_create(&cairo) < 0)
		return weft_error_set(err, WEFT_ENOMEM, "no memory for fonts");
	int status = weft_viewer_draw_file(viewer, &list, weft_cairo_measure, cairo, err);
	if (status == WEFT_OK)
		status = weft_cairo_write(cairo, &list, format, weft_canvas_theme(), write_some, file, err);
	weft_draw_finish(&list);
	weft_cairo_destroy(cairo);
	return status;
}

static void on_export(GtkWindow *parent, const char *path, const void *suffix)
{
	WeftWindow *window = WEFT_WINDOW(parent);
	enum weft_picture format = strcmp(suffix, "png") == 0 ? WEFT_PICTURE_PNG : WEFT_PICTURE_SVG;
	if (!weft_stage_viewer(window->stage))
		return;
	struct weft_error err = {0};
	FILE *file = g_fopen(path, "wb");
	int status = file ? export_to(window, file, format, &err) : weft_error_set(&err, WEFT_EIO, "%s", g_strerror(errno));
	if (file && fclose(file) != 0 && status == WEFT_OK)
		status = weft_error_set(&err, WEFT_EIO, "%s", g_strerror(errno));
	char *name = g_filename_display_basename(path);
	char *text = status == WEFT_OK ? g_strdup_printf("The picture was written to %s", name)
				       : g_strdup_printf("%s was not written: %s", name, err.what);
	weft__window_toast(window, text);
	g_free(text);
	g_free(name);
}

void dialogs_export(WeftWindow *window, const char *suffix)
{
	const char *path = weft_stage_paths(window->stage, weft_stage_viewers(window->stage)->active)[0];
	char *name = strcmp(path, "-") == 0 ? g_strdup("trace") : g_path_get_basename(path);
	char *dot = strrchr(name, '.');
	if (dot && dot != name)
		*dot = '\0';
	char *proposed = g_strdup_printf("%s.%s", name, suffix);
	compat_choose_file(GTK_WINDOW(window), "Export the Visible Part", "_Export", proposed, on_export, suffix);
	g_free(proposed);
	g_free(name);
}

/* ---- Start and duration ---- */

struct question {
	WeftWindow *window;
	GtkEntry *entry;
	GtkLabel *wrong;
	enum dialogs_time time;
};

/* By enum dialogs_time. */
static const struct {
	const char *name, *title, *hint;
	int (*set)(struct weft_viewer *viewer, const char *text, struct weft_error *err);
} times[] = {
    [DIALOGS_START] = {"Start", "Start of the Picture", "Time since the first event, for example 1.5ms", weft_viewer_set_start},
    [DIALOGS_MIDDLE] = {"Time", "Go to a Time", "Time since the first event, for example 4.2s", weft_viewer_go_to_time},
    [DIALOGS_DURATION] = {"Duration", "Duration of the Picture", "Duration of the visible interval, for example 20ms",
	weft_viewer_set_duration},
};

/* Each change of the entry takes effect at once, so that an error is shown while the dialog is still open. */
static void on_time(GtkEditable *entry, struct question *question)
{
	struct weft_viewer *viewer = weft_stage_viewer(question->window->stage);
	struct weft_error err = {0};
	const char *text = gtk_editable_get_text(entry);
	if (!viewer)
		return;
	int status = times[question->time].set(viewer, text, &err);
	if (status == WEFT_OK) {
		weft_compare_follow(weft_stage_viewers(question->window->stage));
		weft_stage_update(question->window->stage);
	}
	gtk_label_set_text(question->wrong, status == WEFT_OK ? "" : err.what);
}

void dialogs_ask_time(WeftWindow *window, enum dialogs_time time)
{
	struct weft_viewer *viewer = weft_stage_viewer(window->stage);
	struct question *question = g_new0(struct question, 1);
	char now[WEFT_DURATION_BYTES];
	int64_t from, to;
	weft_viewer_times(viewer, &from, &to);
	weft_duration_format_exact(now, sizeof now,
	    time == DIALOGS_DURATION ? to - from
	    : time == DIALOGS_START  ? MAX(from, 0)
				     : from / 2 + to / 2);

	GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 6), *entry = gtk_entry_new(), *wrong = gtk_label_new("");
	*question = (struct question){window, GTK_ENTRY(entry), GTK_LABEL(wrong), time};
	gtk_editable_set_text(GTK_EDITABLE(entry), now);
	gtk_entry_set_activates_default(GTK_ENTRY(entry), TRUE);
	gtk_accessible_update_property(GTK_ACCESSIBLE(entry), GTK_ACCESSIBLE_PROPERTY_LABEL, times[time].name, -1);
	gtk_widget_add_css_class(wrong, "error");
	gtk_box_append(GTK_BOX(box), entry);
	gtk_box_append(GTK_BOX(box), wrong);
	g_signal_connect_data(entry, "changed", G_CALLBACK(on_time), question, (GClosureNotify)(void (*)(void))g_free, 0);
	compat_ask(GTK_WINDOW(window), times[time].title, times[time].hint, box, entry);
}

/* ---- Help ---- */

static void append_shortcut(GString *xml, enum weft_action action)
{
	const struct weft_action_info *info = weft_action_info(action);
	char *plain = menus_accelerators(action, 2), *keys = g_markup_escape_text(plain, -1);
	g_string_append_printf(xml,
	    "<child><object class=\"GtkShortcutsShortcut\"><property name=\"title\">%s</property>"
	    "<property name=\"accelerator\">%s</property></object></child>",
	    info->label, keys);
	g_free(keys);
	g_free(plain);
}

static void append_gesture(GString *xml, const struct weft_gesture *gesture)
{
	char *effect = g_markup_escape_text(gesture->effect, -1), *hand = g_markup_escape_text(gesture->gesture, -1);
	g_string_append_printf(xml,
	    "<child><object class=\"GtkShortcutsShortcut\"><property name=\"shortcut-type\">gesture</property>"
	    "<property name=\"title\">%s</property><property name=\"subtitle\">%s</property></object></child>",
	    effect, hand);
	g_free(hand);
	g_free(effect);
}

#define SECTION_END "</object></child></object></child>"
#define NEXT_COLUMN "</object></child><child><object class=\"GtkShortcutsGroup\">"
#define COLUMN_ROWS 12

/* Each group of shortcuts is a section of its own, because all groups together would be higher than a small screen. */
static void begin_section(GString *xml, const char *title)
{
	g_string_append_printf(xml,
	    "<child><object class=\"GtkShortcutsSection\"><property name=\"section-name\">%s</property><property "
	    "name=\"title\">%s"
	    "</property><property name=\"max-height\">14</property><child><object class=\"GtkShortcutsGroup\"><property "
	    "name=\"title\">%s</property>",
	    title, title, title);
}

/* The list of shortcuts is made from the tables of actions and gestures, so that it is complete. */
void dialogs_shortcuts(WeftWindow *window)
{
	GString *xml = g_string_new(
	    "<interface><object class=\"GtkShortcutsWindow\" id=\"shortcuts\"><property name=\"modal\">1</property>");
	for (int group = 0; group < WEFT_GROUPS; group++) {
		begin_section(xml, weft_action_group_label((enum weft_action_group)group));
		for (int a = 0, rows = 0; a < WEFT_ACTION_COUNT; a++)
			if (weft_action_info((enum weft_action)a)->group == group &&
			    g_action_map_lookup_action(G_ACTION_MAP(window), weft_action_info((enum weft_action)a)->name)) {
				if (rows++ == COLUMN_ROWS) {
					g_string_append(xml, NEXT_COLUMN);
					rows = 1;
				}
				append_shortcut(xml, (enum weft_action)a);
			}
		g_string_append(xml, SECTION_END);
	}
	begin_section(xml, "Pointer");
	size_t count;
	const struct weft_gesture *gestures = weft_gestures(&count);
	for (size_t i = 0; i < count; i++)
		append_gesture(xml, &gestures[i]);
	g_string_append(xml, SECTION_END "</object></interface>");
	GtkBuilder *builder = gtk_builder_new_from_string(xml->str, (gssize)xml->len);
	GtkWindow *shortcuts = GTK_WINDOW(gtk_builder_get_object(builder, "shortcuts"));
	gtk_window_set_transient_for(shortcuts, GTK_WINDOW(window));
	gtk_window_present(shortcuts);
	g_object_unref(builder);
	g_string_free(xml, TRUE);
}

void dialogs_about(WeftWindow *window)
{
	compat_show_about(window, "application-name", "weft", "application-icon", "org.weft.View", "version", WEFT_VERSION,
	    "comments", "Shows what an asynchronous program did, promise by promise", "license-type", GTK_LICENSE_CUSTOM,
	    "license", "ISC", NULL);
}
