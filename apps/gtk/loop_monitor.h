/* loop_monitor.h: measures how long the main loop keeps input waiting, for benchmarks.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_LOOP_MONITOR_H
#define WEFT_GTK_LOOP_MONITOR_H

/* If $WEFT_VIEW_TIMES names a file, appends a line "turn AT MS RAN QUEUED" to it for each iteration of the main loop that takes
 * 10 ms or longer.  AT is the end of the iteration in us of the monotonic clock, and MS is its duration; RAN and QUEUED are the
 * times that this OS thread was on CPU, and was runnable but off CPU.  Call this function once, before the loop. */
void watch_start(void);

#endif
