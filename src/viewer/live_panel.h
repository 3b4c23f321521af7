/* live_panel.h: shows the live tables (live.h) one below the other, as rows of a narrow panel, for the newest moment of a trace.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_LIVE_PANEL_H
#define WEFT_VIEWER_LIVE_PANEL_H

#include "viewer/rows.h"

/* Fills rows with all live tables except the findings; a press on a promise in flight selects it.  Missing data of the model is
 * computed first, which takes about 0.5 us for each promise; the rest costs as much as in live.h.  On failure (WEFT_ENOMEM)
 * there are no rows. */
int weft_live_panel_fill(struct weft_rows *rows, struct weft_viewer *viewer, struct weft_error *err);

#endif
