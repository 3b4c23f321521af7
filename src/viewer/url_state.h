/* url_state.h: the state of a viewer as the fragment of a URL; such a link shows the same view to another user.
 *
 *   #t=1.2ms..3.4ms&y=12.5&find=ARP&filter=1&sel=18&metrics=0&threads=0&hold=1&sleep=0&focus=7
 *   &related=8, &mark=3,4,9, &group=kind, &fold=..., &open=18, &thin=1
 *
 * t: the visible interval; y: the slot in focus; sel: id of the selected promise; focus: only promises that belong to this id
 * are shown; related: the promises that this one became or came from are highlighted; mark: these promises are highlighted.  @57
 * is the 57th promise, if another one has its id.  All parameters are optional, and unknown names are ignored.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_URL_STATE_H
#define WEFT_VIEWER_URL_STATE_H

#include "viewer/viewer.h"

/* Writes the viewer's state as a terminated text without '#'.  Returns the text's length, as snprintf() does. */
size_t weft_viewer_place(const struct weft_viewer *viewer, char *buf, size_t size);

/* Sets the viewer's state from a text with or without '#'.  States that the text does not mention are unchanged, except that
 * search and selection end.  A search is only started; its steps must follow (search.h).  Returns WEFT_EINVAL or WEFT_ENOTFOUND
 * (no such promise); in these cases nothing changes. */
int weft_viewer_go(struct weft_viewer *viewer, const char *place, struct weft_error *err);

#endif
