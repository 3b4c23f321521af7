/* canvas.h: the GTK widget that draws viewers and passes pointer input to them.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_CANVAS_H
#define WEFT_GTK_CANVAS_H

#include <adwaita.h>

#include "viewer/compare.h"

#define WEFT_TYPE_CANVAS (weft_canvas_get_type())
G_DECLARE_FINAL_TYPE(WeftCanvas, weft_canvas, WEFT, CANVAS, GtkWidget)

/* Sets the viewers to draw; NULL means none.  The caller keeps ownership. */
void weft_canvas_set_viewers(WeftCanvas *canvas, struct weft_compare *viewers);

/* Draws again if needed, and emits "changed" with bits of enum weft_changed; call it after viewers were changed. */
void weft_canvas_update(WeftCanvas *canvas);

/* Returns the number of widget pixels for each pixel of the view, so that text has the size that the desktop sets. */
double weft_canvas_text_scale(WeftCanvas *canvas);

enum weft_theme weft_canvas_theme(void);

#endif
