/* panel.h: shows the details of one promise in the side panel.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_PANEL_H
#define WEFT_VIEWER_PANEL_H

#include "draw/ruler.h"
#include "viewer/rows.h"

/* Maximum number of links that are shown for one relation. */
#define WEFT_PANEL_LINKS 8

/* Fills rows with the details of a promise; for WEFT_NONE, with one row that says that no promise is selected.  The function
 * takes about 20 us, whatever the size of the trace.  On failure (WEFT_ENOMEM) there are no rows. */
int weft_panel_fill(struct weft_rows *rows, const struct weft_viewer *viewer, uint32_t promise, struct weft_error *err);

/* Fills rows with the details of a promise, for callers without a viewer.  `clock` is the format of times; a press on the title
 * of the promise `selected` asks "why?". */
struct weft_panel_source {
	const struct weft_model *model;
	const struct weft_promise_info *facts;
	const struct weft_clock *clock;
	uint32_t selected;
};
int weft_panel_fill_from(
    struct weft_rows *rows, const struct weft_panel_source *source, uint32_t promise, struct weft_error *err);

/* Returns the promise that the panel shows: the promise under the pointer, or else the selected promise. */
uint32_t weft_panel_subject(const struct weft_viewer *viewer);

#endif
