/* place.h: where one is in a trace, as the fragment of a URL: a link shows a colleague the same.
 *
 *   #t=1.2ms..3.4ms&y=12.5&find=ARP&filter=1&sel=18&metrics=0&threads=0&hold=1&sleep=0&focus=7
 *   &related=8 (what it became and came from is highlighted), &mark=3,4,9 (so are these), &group=kind, &fold=..., &open=18,
 * &thin=1
 *
 * t: what is seen, y: the slot in focus, sel: the id of what is selected, focus: of what only what belongs to it is shown (@57:
 * the 57th promise, where another has its id).  All are optional; names that are not known are passed over.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_PLACE_H
#define WEFT_VIEWER_PLACE_H

#include "viewer/viewer.h"

/* Without the '#', terminated; returns its length, as snprintf does. */
size_t weft_viewer_place(const struct weft_viewer *viewer, char *buf, size_t size);

/* Goes there; what is not named stays, but for search and selection, which end.  A search begins only (search.h).  With or
 * without '#'. WEFT_EINVAL, WEFT_ENOTFOUND (no such promise), and then nothing has changed. */
int weft_viewer_go(struct weft_viewer *viewer, const char *place, struct weft_error *err);

#endif
