/* settings.h: settings kept between runs: a key file in $XDG_CONFIG_HOME/weft, and the desktop's list of recent files.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_SETTINGS_H
#define WEFT_GTK_SETTINGS_H

#include "split.h"

/* Returns "desktop", "light" or "dark". */
const char *settings_theme(void);
void settings_set_theme(const char *theme); /* also saves it */

/* Reads the file and sets the colours.  Must be called once, after GTK was initialised. */
void settings_start(void);

void settings_restore_window(GtkWindow *window, WeftSplit *split);
void settings_keep_window(GtkWindow *window, gboolean panel);

/* Returns paths of recently opened traces, newest first; the caller frees them with g_strfreev(). */
char **settings_recent(void);
void settings_add_recent(const char *path);

#endif
