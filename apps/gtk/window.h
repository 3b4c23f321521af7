/* window.h: a window for one trace, or for several traces that are compared.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_WINDOW_H
#define WEFT_GTK_WINDOW_H

#include "trace_pane.h"
#include "viewer/actions.h"

#define WEFT_TYPE_WINDOW (weft_window_get_type())
G_DECLARE_FINAL_TYPE(WeftWindow, weft_window, WEFT, WINDOW, AdwApplicationWindow)

WeftWindow *weft_window_new(GtkApplication *application);

/* Reads `path` ("-" is standard input) and shows the trace, in this window if it is empty, else in a new window. */
void weft_window_open(WeftWindow *window, const char *path);

/* Read `path`, or several paths together (loader.h), and show the trace below the window's other traces. */
void weft_window_compare(WeftWindow *window, const char *path);
void weft_window_add(WeftWindow *window, const char *const *paths);

/* Goes to a place in the picture (viewer/url_state.h) after all traces have been read. */
void weft_window_go(WeftWindow *window, const char *place);

/* Appends the contents of the window to `out` as JSON, for tests. */
void weft_window_dump(WeftWindow *window, GString *out);

#endif
