/* compat.h: shows dialogs with the functions that the version of GTK and libadwaita has.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_COMPAT_H
#define WEFT_GTK_COMPAT_H

#include <adwaita.h>

/* Callback that receives the path of a chosen file. */
typedef void compat_chosen_fn(GtkWindow *window, const char *path, const void *data);

/* Asks for a file to open or, if `name` is given, for a file to save with that proposed name.  `chosen` is not called if the
 * user cancels or the window is gone; `data` must live until the dialog ends. */
void compat_choose_file(
    GtkWindow *window, const char *title, const char *accept, const char *name, compat_chosen_fn *chosen, const void *data);

/* Shows a question with a widget below the text, and one button that closes the dialog.  `focus` gets the keyboard. */
void compat_ask(GtkWindow *window, const char *title, const char *text, GtkWidget *widget, GtkWidget *focus);

/* Returns whether a dialog is inside of the window; libadwaita 1.5 and later place some dialogs there. */
gboolean compat_has_dialog(GtkWindow *window);

#if ADW_CHECK_VERSION(1, 5, 0)
#define compat_show_about(window, ...) adw_show_about_dialog(GTK_WIDGET(window), __VA_ARGS__)
#else
#define compat_show_about(window, ...) adw_show_about_window(GTK_WINDOW(window), __VA_ARGS__)
#endif

#endif
