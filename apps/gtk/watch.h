/* watch.h: measures how long the main loop keeps input waiting, for benchmarks.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_WATCH_H
#define WEFT_GTK_WATCH_H

/* If $WEFT_VIEW_TIMES names a file, appends a line to it for each turn of the main loop that takes 10 ms or longer: "turn AT MS
 * RAN QUEUED", that is, when the turn ended, in us of the monotonic clock, how long it took, for how long of that this OS thread
 * ran, and for how long it was ready but did not run.  To be called once, before the loop. */
void watch_start(void);

#endif
