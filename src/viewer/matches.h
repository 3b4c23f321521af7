/* matches.h: shows the matches of a search as rows.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_MATCHES_H
#define WEFT_VIEWER_MATCHES_H

#include "viewer/compare.h"
#include "viewer/rows.h"

#define WEFT_MATCHES_SHOWN 100u

/* Fills rows with links to the page of matches around the selected match, which has an open row, or to the first page.  Rows
 * before and after the links show the number of further matches.  Without a search there are no rows.  Linear in the matches.
 * On failure (WEFT_ENOMEM) there are no rows. */
int weft_matches_fill(struct weft_rows *rows, const struct weft_viewer *viewer, struct weft_error *err);

/* Writes "3 of 1,234", "1,234 found" or "not found", with "…" during the search, or "" without a search.  Returns `buf`. */
#define WEFT_MATCHES_BYTES 80
const char *weft_matches_count(const struct weft_compare *compare, char buf[WEFT_MATCHES_BYTES]);

#endif
