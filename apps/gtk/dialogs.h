/* dialogs.h: the dialogs of the viewer's window.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_DIALOGS_H
#define WEFT_GTK_DIALOGS_H

#include "window.h"

/* Asks the user for a trace to open, or for a trace to compare with. */
void dialogs_open(WeftWindow *window, bool compare);

/* Asks the user for a file, and writes the visible picture to the file; `suffix` is "svg" or "png". */
void dialogs_export(WeftWindow *window, const char *suffix);

/* Asks the user for the start, the middle or the duration of the visible interval. */
/* Time that a dialog asks for: the start, the middle or the duration of the visible interval. */
enum dialogs_time { DIALOGS_START, DIALOGS_MIDDLE, DIALOGS_DURATION };
void dialogs_ask_time(WeftWindow *window, enum dialogs_time time);

void dialogs_shortcuts(WeftWindow *window);
void dialogs_about(WeftWindow *window);

#endif
