/* wake.h: wakes sleeping OS threads of another process for a moment (private to apps).  SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_WAKE_H
#define WEFT_CONTROL_WAKE_H

#include "wire/standby.h"

/* Wakes each OS thread that sleeps in a call that libweft-hook continues (wire/standby.h); `memory_fd` is a descriptor of
 * /proc/PID/mem.  The function stops each thread for a few us, as a debugger does.  Threads that cannot be woken before
 * `deadline_ns` (deadline.h) stay asleep. */
void cli_wake_threads(long pid, int memory_fd, const struct weft_standby *page, uint64_t page_at, int64_t deadline_ns);

#endif
