/* panel.h: the contents of the side panel for one promise.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_PANEL_H
#define WEFT_VIEWER_PANEL_H

#include "draw/ruler.h"
#include "viewer/rows.h"

/* Maximum number of links shown for a relation. */
#define WEFT_PANEL_LINKS 8

/* Fills rows with the details of a promise; WEFT_NONE gives one row that says so.  Takes about 20 us, independent of the trace.
 * On failure (WEFT_ENOMEM) there are no rows. */
int weft_panel_fill(struct weft_rows *rows, const struct weft_viewer *viewer, uint32_t promise, struct weft_error *err);

/* Fills rows without a viewer.  `clock` is the format of times; a press on the title of `selected` asks "why?". */
struct weft_panel_source {
	const struct weft_model *model;
	const struct weft_promise_info *facts;
	const struct weft_clock *clock;
	uint32_t selected;
};
int weft_panel_fill_from(
    struct weft_rows *rows, const struct weft_panel_source *source, uint32_t promise, struct weft_error *err);

/* Returns the promise for the panel: the one under the pointer, else the selected one. */
uint32_t weft_panel_subject(const struct weft_viewer *viewer);

#endif
