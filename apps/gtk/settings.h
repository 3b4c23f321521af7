/* settings.h: what is kept between runs: a key file in $XDG_CONFIG_HOME/weft, and the desktop's list of recent
 * files. SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_SETTINGS_H
#define WEFT_GTK_SETTINGS_H

#include <adwaita.h>

/* "desktop", "light" or "dark" */
const char *settings_theme(void);
void settings_set_theme(const char *theme); /* sets and keeps it */

/* Reads the file and sets the colours; once, after GTK was initialised. */
void settings_start(void);

void settings_restore_window(GtkWindow *window, AdwFlap *flap);
void settings_keep_window(GtkWindow *window, gboolean panel);

/* Paths of traces that were opened recently, newest first; to be freed with g_strfreev(). */
char **settings_recent(void);
void settings_add_recent(const char *path);

#endif
