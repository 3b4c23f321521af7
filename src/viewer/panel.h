/* panel.h: what the side panel says about one promise, as rows: an application shows them, and selects the promise of a row that
 * is clicked.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_PANEL_H
#define WEFT_VIEWER_PANEL_H

#include "viewer/viewer.h"

enum weft_row_kind {
	WEFT_ROW_TITLE,   /* what the promise is called, and how it ended; the first row */
	WEFT_ROW_HEADING, /* of the rows below */
	WEFT_ROW_FACT,    /* a name and a value */
	WEFT_ROW_LINK,    /* another promise, and when */
	WEFT_ROW_MORE     /* how many links there are besides those shown */
};

struct weft_row {
	uint8_t kind;             /* enum weft_row_kind */
	bool alarming;            /* a failure, or what never came: to be shown in its colour */
	uint32_t promise;         /* of a link; else WEFT_NONE (a link to the system goes nowhere) */
	const char *name, *value; /* valid UTF-8 of one line; may be "" */
};

/* A zeroed one is empty. */
struct weft_panel {
	struct weft_row *rows;
	size_t count;
	struct weft_panel_private *priv;
};

/* At most this many links in a relation are shown. */
#define WEFT_PANEL_LINKS 8

/* Fills a panel with what is known of a promise; WEFT_NONE: nothing.  What it had before is gone.  Some 20 us, whatever the
 * trace. WEFT_ENOMEM: the panel is empty. */
int weft_panel_fill(struct weft_panel *panel, const struct weft_viewer *viewer, uint32_t promise, struct weft_error *err);
void weft_panel_finish(struct weft_panel *panel);

/* The promise that the panel is about: the one under the pointer, else the selected one. */
uint32_t weft_panel_subject(const struct weft_viewer *viewer);

#endif
