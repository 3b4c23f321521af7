/* split.h: a widget with a picture and a side panel that slides in.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_SPLIT_H
#define WEFT_GTK_SPLIT_H

#include <adwaita.h>

/* A widget with the properties "content", "side" and "open".  The side panel is beside the content, at the end of the line; if
 * there is no space for both, the panel is above the content. */
#define WEFT_TYPE_SPLIT weft_split_get_type()
G_DECLARE_FINAL_TYPE(WeftSplit, weft_split, WEFT, SPLIT, GtkWidget)

gboolean weft_split_is_open(WeftSplit *split);
void weft_split_set_open(WeftSplit *split, gboolean open);

#endif
