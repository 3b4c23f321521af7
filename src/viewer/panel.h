/* panel.h: what the side panel says about one promise.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_PANEL_H
#define WEFT_VIEWER_PANEL_H

#include "draw/ruler.h"
#include "viewer/rows.h"

/* At most this many links in a relation are shown. */
#define WEFT_PANEL_LINKS 8

/* Fills rows with what is known of a promise; of WEFT_NONE with a row that says so.  Some 20 us, whatever the trace. WEFT_ENOMEM:
 * there are no rows. */
int weft_panel_fill(struct weft_rows *rows, const struct weft_viewer *viewer, uint32_t promise, struct weft_error *err);

/* The same for who has no viewer.  Times are written as `clock` says; a press on the title of `selected` asks why. */
struct weft_panel_of {
	const struct weft_model *model;
	const struct weft_facts *facts;
	const struct weft_clock *clock;
	uint32_t selected;
};
int weft_panel_fill_of(struct weft_rows *rows, const struct weft_panel_of *of, uint32_t promise, struct weft_error *err);

/* The promise that the panel is about: the one under the pointer, else the selected one. */
uint32_t weft_panel_subject(const struct weft_viewer *viewer);

#endif
