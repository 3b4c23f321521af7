/* drag.c: a small window out of which a file can be dragged, as out of a file manager: drag FILE.  SPDX-License-Identifier: ISC
 */
#include <gtk/gtk.h>

int main(int argc, char **argv)
{
	if (argc != 2 || !gtk_init_check())
		return 2;
	GSList files = {.data = g_file_new_for_commandline_arg(argv[1])};
	GdkFileList *list = gdk_file_list_new_from_list(&files);
	GtkWidget *window = gtk_window_new(), *label = gtk_label_new("Drag me");
	GtkDragSource *source = gtk_drag_source_new();
	gtk_drag_source_set_content(source, gdk_content_provider_new_typed(GDK_TYPE_FILE_LIST, list));
	gtk_widget_add_controller(label, GTK_EVENT_CONTROLLER(source));
	gtk_window_set_child(GTK_WINDOW(window), label);
	gtk_window_set_default_size(GTK_WINDOW(window), 150, 150);
	gtk_window_set_title(GTK_WINDOW(window), "drag");
	gtk_window_present(GTK_WINDOW(window));
	while (g_list_model_get_n_items(gtk_window_get_toplevels()) > 0)
		g_main_context_iteration(NULL, TRUE);
	return 0;
}
