/* dialogs.h: what a window asks.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_DIALOGS_H
#define WEFT_GTK_DIALOGS_H

#include "window.h"

/* Which trace to open, or to compare with. */
void dialogs_open(WeftWindow *window, bool compare);

/* Where to write what is seen, as "svg" or "png"; then it is written. */
void dialogs_export(WeftWindow *window, const char *suffix);

/* Where the picture starts, or how long a time it shows. */
void dialogs_ask_time(WeftWindow *window, bool start);

void dialogs_shortcuts(WeftWindow *window);
void dialogs_about(WeftWindow *window);

#endif
