/* matches.h: what a search found, as rows.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_MATCHES_H
#define WEFT_VIEWER_MATCHES_H

#include "viewer/compare.h"
#include "viewer/rows.h"

#define WEFT_MATCHES_SHOWN 100u

/* Fills rows with links to the matches around the selected one, which is open, or else to the first ones; before and after them
 * stands how many more there are.  None where nothing is searched for.  Linear in the matches.  WEFT_ENOMEM: there are no rows.
 */
int weft_matches_fill(struct weft_rows *rows, const struct weft_viewer *viewer, struct weft_error *err);

/* "3 of 1,234", "1,234 found", "not found", with "…" while the search goes on; "" where nothing is searched for.  Returns `buf`.
 */
#define WEFT_MATCHES_BYTES 80
const char *weft_matches_count(const struct weft_compare *compare, char buf[WEFT_MATCHES_BYTES]);

#endif
