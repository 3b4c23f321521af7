/* summary.h: what is said of a trace and of a promise in one line.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_SUMMARY_H
#define WEFT_VIEWER_SUMMARY_H

#include "viewer/viewer.h"

#define WEFT_SUMMARY_BYTES 600

/* "1,234 events · 56 promises · 2.3 s", and ", awake for 0.2 s; sleep is folded (S)" where it is.  Returns `buf`. */
const char *weft_viewer_summary(const struct weft_viewer *viewer, char buf[WEFT_SUMMARY_BYTES]);

/* The selected promise, or else the one under the pointer, for those who cannot see it: its name, kind, id, when it begins and
 * how it ends.  Returns `buf`. */
const char *weft_viewer_describe(const struct weft_viewer *viewer, char buf[WEFT_SUMMARY_BYTES]);

/* Where one is, if not everything is shown: "Everything \xe2\x80\xba request 64 "GET /"".  False: it is. */
#define WEFT_CRUMB_BYTES 300
bool weft_viewer_crumb(const struct weft_viewer *viewer, char buf[WEFT_CRUMB_BYTES]);

/* What is under the pointer, in a sentence: an arrow, what is told of arrows that are too many, a promise.  False: nothing is. */
#define WEFT_TIP_BYTES 500
bool weft_viewer_tip(const struct weft_viewer *viewer, char buf[WEFT_TIP_BYTES]);

#endif
