/* search.h: finding promises as one types.  What is found is highlighted; the language is that of view/query.h.
 *
 * A search works in steps, so that nobody waits for it: after weft_viewer_search(), weft_viewer_search_step() until it answers
 * false. SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_SEARCH_H
#define WEFT_VIEWER_SEARCH_H

#include "viewer/viewer.h"

/* Begins to search, in place of what was searched for; "" finds nothing.  WEFT_EINVAL with what is wrong with the text, which is
 * kept, and then nothing is found. */
int weft_viewer_search(struct weft_viewer *viewer, const char *text, struct weft_error *err);

/* Begins to search for all with the label, or the site, and the kind of a promise. */
void weft_viewer_search_like(struct weft_viewer *viewer, uint32_t promise);

/* Looks at so many promises more (100,000 take a few ms); whether there is more to do. */
bool weft_viewer_search_step(struct weft_viewer *viewer, uint32_t promises);
bool weft_viewer_is_searching(const struct weft_viewer *viewer);

/* Selects and reveals the next or previous of those that are highlighted, in order of their starts, from the selected one, or
 * from what is seen; goes round at the end.  WEFT_NONE if there is none.  Linear in the highlighted ones: 5 ns each. */
uint32_t weft_viewer_next_match(struct weft_viewer *viewer);
uint32_t weft_viewer_previous_match(struct weft_viewer *viewer);

/* "3 of 17": the place of the selected one among the highlighted, from 1; 0 if it is none of them. */
size_t weft_viewer_match_number(const struct weft_viewer *viewer);

#endif
