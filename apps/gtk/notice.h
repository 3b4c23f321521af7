/* notice.h: what a window says of a trace in words.  Each returns a text to be freed.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_NOTICE_H
#define WEFT_GTK_NOTICE_H

#include <glib.h>

#include "viewer/viewer.h"

/* The last part of a path, as it can be shown. */
char *file_name(const char *path);

/* "10,078 events · 1,817 promises · 5.9 s" */
char *notice_summary(const struct weft_viewer *viewer);

/* The selected promise, or else the one under the pointer, in a sentence. */
char *notice_selected(const struct weft_viewer *viewer);

#endif
