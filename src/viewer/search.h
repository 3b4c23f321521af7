/* search.h: searches promises while the user types a query.  Matching promises are highlighted; view/query.h describes the query
 * language.
 *
 * A search runs in steps, so that it never blocks: after weft_viewer_search(), call weft_viewer_search_step() until it returns
 * false.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_SEARCH_H
#define WEFT_VIEWER_SEARCH_H

#include "viewer/viewer.h"

/* Starts a search in place of the previous search; the text "" matches no promise.  Returns WEFT_EINVAL for an invalid text,
 * which is kept and matches no promise. */
int weft_viewer_search(struct weft_viewer *viewer, const char *text, struct weft_error *err);

/* Starts a search for all promises with the same kind, and the same label or call site. */
void weft_viewer_search_like(struct weft_viewer *viewer, uint32_t promise);

/* Examines at most so many more promises (100,000 promises take a few ms).  Returns whether there are more promises to
 * examine. */
bool weft_viewer_search_step(struct weft_viewer *viewer, uint32_t promises);
bool weft_viewer_is_searching(const struct weft_viewer *viewer);

/* Sets the order of matches, in the list and for the steps below.  A query with slowest:N sets the order by duration. */
void weft_viewer_sort_matches(struct weft_viewer *viewer, enum weft_match_order order);

/* Select and reveal the next or previous highlighted promise in the order of matches, relative to the selected promise or to the
 * visible interval; the search wraps around.  Return WEFT_NONE if no promise is highlighted.  The time is linear in the
 * highlighted promises, 5 ns each. */
uint32_t weft_viewer_next_match(struct weft_viewer *viewer);
uint32_t weft_viewer_previous_match(struct weft_viewer *viewer);

/* Returns the position of the selected promise among the highlighted promises, from 1 ("3 of 17"), or 0 if it is not
 * highlighted. */
size_t weft_viewer_match_number(const struct weft_viewer *viewer);

#endif
