/* canvas.h: the widget that draws viewers and tells them what the pointer does.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_CANVAS_H
#define WEFT_GTK_CANVAS_H

#include <adwaita.h>

#include "viewer/compare.h"

#define WEFT_TYPE_CANVAS (weft_canvas_get_type())
G_DECLARE_FINAL_TYPE(WeftCanvas, weft_canvas, WEFT, CANVAS, GtkWidget)

/* What it draws stays the caller's; NULL for none. */
void weft_canvas_set_viewers(WeftCanvas *canvas, struct weft_compare *viewers);

/* Says that something was done with the viewers: draws again if that shows, and emits "changed" with what is different, as bits
 * of enum weft_changed. */
void weft_canvas_update(WeftCanvas *canvas);

/* How many px of the widget one px of the view is: text is as large as the desktop wants it. */
double weft_canvas_text_scale(WeftCanvas *canvas);

enum weft_theme weft_canvas_theme(void);

#endif
