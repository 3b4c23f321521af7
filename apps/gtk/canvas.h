/* canvas.h: the widget that draws viewers and tells them what the pointer does.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_CANVAS_H
#define WEFT_GTK_CANVAS_H

#include <adwaita.h>

#include "viewer/compare.h"

#define WEFT_TYPE_CANVAS (weft_canvas_get_type())
G_DECLARE_FINAL_TYPE(WeftCanvas, weft_canvas, WEFT, CANVAS, GtkWidget)

/* Sets the viewers to draw, which stay the caller's; NULL for none. */
void weft_canvas_set_viewers(WeftCanvas *canvas, struct weft_compare *viewers);

/* To be called when something was done with the viewers: draws again if needed, and emits "changed" with bits of enum
 * weft_changed. */
void weft_canvas_update(WeftCanvas *canvas);

/* How many px of the widget are one px of the view, so that text has the size that the desktop asks for. */
double weft_canvas_text_scale(WeftCanvas *canvas);

enum weft_theme weft_canvas_theme(void);

#endif
