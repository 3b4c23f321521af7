/* window.h: a window for a trace, or for several that are compared.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_WINDOW_H
#define WEFT_GTK_WINDOW_H

#include "stage.h"
#include "viewer/actions.h"

#define WEFT_TYPE_WINDOW (weft_window_get_type())
G_DECLARE_FINAL_TYPE(WeftWindow, weft_window, WEFT, WINDOW, AdwApplicationWindow)

WeftWindow *weft_window_new(GtkApplication *application);

/* Reads `path` ("-" is standard input) and shows it; in this window if it shows nothing yet, else in a new one. */
void weft_window_open(WeftWindow *window, const char *path);

/* Reads `path`, or what several paths name together (loader.h), and shows it below the traces of the window. */
void weft_window_compare(WeftWindow *window, const char *path);
void weft_window_add(WeftWindow *window, const char *const *paths);

/* Goes to a place (viewer/place.h) once all traces are read. */
void weft_window_go(WeftWindow *window, const char *place);

/* What the window shows, as JSON, for tests; appends to `out`. */
void weft_window_dump(WeftWindow *window, GString *out);

#endif
