/* watch.h: how long the main loop is away from its users, for benchmarks.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_WATCH_H
#define WEFT_GTK_WATCH_H

/* Where $WEFT_VIEW_TIMES names a file, adds a line to it for each turn of the main loop that takes 10 ms or longer: "turn AT MS
 * RAN QUEUED": when it ended, in us of the monotonic clock; how long it took, for how long of that it ran, and for how long
 * others had the processors.  Once, before the loop. */
void watch_start(void);

#endif
