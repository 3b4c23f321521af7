/* summary.h: writes one-line descriptions of a trace and of a promise.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_SUMMARY_H
#define WEFT_VIEWER_SUMMARY_H

#include "viewer/viewer.h"

#define WEFT_SUMMARY_BYTES 600

/* Writes a summary such as "1,234 events · 56 promises · 2.3 s", and if sleep is folded, ", awake for 0.2 s; sleep is folded
 * (S)".  Returns `buf`. */
const char *weft_viewer_summary(const struct weft_viewer *viewer, char buf[WEFT_SUMMARY_BYTES]);

/* Describes the selected promise, or else the promise under the pointer, for users who cannot see the picture: name, kind, id,
 * start and end.  Returns `buf`. */
const char *weft_viewer_describe(const struct weft_viewer *viewer, char buf[WEFT_SUMMARY_BYTES]);

/* Write the two lines below a picture in a file: the program, and the trace, its record time and the visible interval.  Both
 * return `buf`. */
const char *weft_viewer_caption_title(const struct weft_viewer *viewer, char buf[WEFT_SUMMARY_BYTES]);
const char *weft_viewer_caption_facts(const struct weft_viewer *viewer, char buf[WEFT_SUMMARY_BYTES]);

/* Writes which subset is shown, as "Everything \xe2\x80\xba only promises of request 64 "GET /"".  If the last action changed
 * nothing, the reason for that is written instead, until the next action.  Returns false if the whole trace is shown. */
#define WEFT_CRUMB_BYTES 300
bool weft_viewer_crumb(const struct weft_viewer *viewer, char buf[WEFT_CRUMB_BYTES]);

/* Writes a sentence about the item under the pointer: an arrow, numbers of arrows that are not drawn, or a promise.  Returns
 * false if there is no item under the pointer. */
#define WEFT_TIP_BYTES 500
bool weft_viewer_tip(const struct weft_viewer *viewer, char buf[WEFT_TIP_BYTES]);

#endif
