/* compat.c: shows dialogs with the functions that the version of GTK and libadwaita has.  SPDX-License-Identifier: ISC */
#include "compat.h"

/* ---- Files ---- */

struct choice {
	GWeakRef window;
	compat_chosen_fn *chosen;
	const void *data;
};

static struct choice *new_choice(GtkWindow *window, compat_chosen_fn *chosen, const void *data)
{
	struct choice *choice = g_new0(struct choice, 1);
	g_weak_ref_init(&choice->window, window);
	choice->chosen = chosen;
	choice->data = data;
	return choice;
}

/* Ends and frees the choice, and takes over the file, which may be NULL. */
static void end_choice(struct choice *choice, GFile *file)
{
	GtkWindow *window = g_weak_ref_get(&choice->window);
	char *path = file ? g_file_get_path(file) : NULL;
	if (window && path)
		choice->chosen(window, path, choice->data);
	g_free(path);
	g_clear_object(&file);
	g_clear_object(&window);
	g_weak_ref_clear(&choice->window);
	g_free(choice);
}

#if GTK_CHECK_VERSION(4, 10, 0)
static void on_opened(GObject *dialog, GAsyncResult *result, gpointer choice)
{
	end_choice(choice, gtk_file_dialog_open_finish(GTK_FILE_DIALOG(dialog), result, NULL));
}

static void on_saved(GObject *dialog, GAsyncResult *result, gpointer choice)
{
	end_choice(choice, gtk_file_dialog_save_finish(GTK_FILE_DIALOG(dialog), result, NULL));
}

void compat_choose_file(
    GtkWindow *window, const char *title, const char *accept, const char *name, compat_chosen_fn *chosen, const void *data)
{
	GtkFileDialog *dialog = gtk_file_dialog_new();
	gtk_file_dialog_set_title(dialog, title);
	gtk_file_dialog_set_accept_label(dialog, accept);
	gtk_file_dialog_set_initial_name(dialog, name);
	if (name)
		gtk_file_dialog_save(dialog, window, NULL, on_saved, new_choice(window, chosen, data));
	else
		gtk_file_dialog_open(dialog, window, NULL, on_opened, new_choice(window, chosen, data));
	g_object_unref(dialog);
}
#else
static void on_response(GtkNativeDialog *dialog, int response, struct choice *choice)
{
	end_choice(choice, response == GTK_RESPONSE_ACCEPT ? gtk_file_chooser_get_file(GTK_FILE_CHOOSER(dialog)) : NULL);
	g_object_unref(dialog);
}

void compat_choose_file(
    GtkWindow *window, const char *title, const char *accept, const char *name, compat_chosen_fn *chosen, const void *data)
{
	GtkFileChooserNative *dialog = gtk_file_chooser_native_new(
	    title, window, name ? GTK_FILE_CHOOSER_ACTION_SAVE : GTK_FILE_CHOOSER_ACTION_OPEN, accept, NULL);
	if (name)
		gtk_file_chooser_set_current_name(GTK_FILE_CHOOSER(dialog), name);
	gtk_native_dialog_set_modal(GTK_NATIVE_DIALOG(dialog), TRUE);
	g_signal_connect(dialog, "response", G_CALLBACK(on_response), new_choice(window, chosen, data));
	gtk_native_dialog_show(GTK_NATIVE_DIALOG(dialog));
}
#endif

/* ---- Questions ---- */

#if ADW_CHECK_VERSION(1, 5, 0)
void compat_ask(GtkWindow *window, const char *title, const char *text, GtkWidget *widget, GtkWidget *focus)
{
	AdwDialog *dialog = adw_alert_dialog_new(title, text);
	AdwAlertDialog *alert = ADW_ALERT_DIALOG(dialog);
	adw_alert_dialog_set_extra_child(alert, widget);
	adw_alert_dialog_add_response(alert, "done", "_Done");
	adw_alert_dialog_set_default_response(alert, "done");
	adw_alert_dialog_set_close_response(alert, "done");
	adw_alert_dialog_set_response_appearance(alert, "done", ADW_RESPONSE_SUGGESTED);
	adw_dialog_set_focus(dialog, focus);
	adw_dialog_present(dialog, GTK_WIDGET(window));
}

gboolean compat_has_dialog(GtkWindow *window)
{
	return adw_application_window_get_visible_dialog(ADW_APPLICATION_WINDOW(window)) != NULL;
}
#else
void compat_ask(GtkWindow *window, const char *title, const char *text, GtkWidget *widget, GtkWidget *focus)
{
	GtkWidget *dialog = adw_message_dialog_new(window, title, text);
	AdwMessageDialog *message = ADW_MESSAGE_DIALOG(dialog);
	adw_message_dialog_set_extra_child(message, widget);
	adw_message_dialog_add_response(message, "done", "_Done");
	adw_message_dialog_set_default_response(message, "done");
	adw_message_dialog_set_close_response(message, "done");
	adw_message_dialog_set_response_appearance(message, "done", ADW_RESPONSE_SUGGESTED);
	gtk_window_present(GTK_WINDOW(dialog));
	gtk_widget_grab_focus(focus);
}

gboolean compat_has_dialog(GtkWindow *window)
{
	return FALSE;
}
#endif
