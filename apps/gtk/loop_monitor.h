/* loop_monitor.h: measures how long the main loop keeps input waiting, for benchmarks.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_LOOP_MONITOR_H
#define WEFT_GTK_LOOP_MONITOR_H

/* If $WEFT_VIEW_TIMES names a file, appends a line to it for each turn of the main loop that takes 10 ms or longer: "turn AT MS
 * RAN QUEUED".  AT is the end of the turn, in us of the monotonic clock; MS is its duration; RAN and QUEUED are the times that
 * this OS thread was on CPU and runnable but off CPU.  Must be called once, before the loop. */
void watch_start(void);

#endif
