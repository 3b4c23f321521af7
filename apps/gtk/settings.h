/* settings.h: settings that are kept between runs, in a key file in $XDG_CONFIG_HOME/weft, and the desktop's list of recent
 * files.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_SETTINGS_H
#define WEFT_GTK_SETTINGS_H

#include "split.h"

/* Returns the theme: "desktop", "light" or "dark". */
const char *settings_theme(void);
void settings_set_theme(const char *theme); /* also saves it */

/* Reads the settings file and sets the colours.  Call this function once, after GTK was initialised. */
void settings_start(void);

void settings_restore_window(GtkWindow *window, WeftSplit *split);
void settings_keep_window(GtkWindow *window, gboolean panel);

/* Returns the paths of recently opened traces, the newest first; the caller frees them with g_strfreev(). */
char **settings_recent(void);
void settings_add_recent(const char *path);

#endif
