/* live_panel.h: the tables of live.h below one another, as rows for a narrow panel: what is in flight at the newest moment of a
 * trace, which is its end if its program has ended.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_LIVE_PANEL_H
#define WEFT_VIEWER_LIVE_PANEL_H

#include "viewer/rows.h"

/* Fills rows with all tables but that of findings; a press on who is in flight leads there.  What is not known yet of this model
 * is found out: some 0.5 us a promise; then it costs what live.h says.  WEFT_ENOMEM: there are no rows. */
int weft_live_panel_fill(struct weft_rows *rows, struct weft_viewer *viewer, struct weft_error *err);

#endif
