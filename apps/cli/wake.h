/* wake.h: OS threads of another process that are asleep are woken, and sleep on (private to apps/cli).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_WAKE_H
#define WEFT_CLI_WAKE_H

#include "wire/standby.h"

/* Wakes each OS thread of that process which sleeps in a call that goes on by itself (wire/standby.h); `memory` is a descriptor
 * of /proc/PID/mem.  Stops each for some us, as a debugger does.  Whoever may not be woken sleeps on. */
void cli_wake(long pid, int memory, const struct weft_standby *page, uint64_t page_at);

#endif
