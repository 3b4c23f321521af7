/* signals.h: blocks signals while a lock is held (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_SIGNALS_H
#define WEFT_HOOK_SIGNALS_H

#include <signal.h>

/* Block and restore signals around a lock that the fork() handlers take too, because a signal handler that forks must not
 * interrupt the owner. */
void weft__hook_block_signals(sigset_t *before);
void weft__hook_restore_signals(const sigset_t *before);

#endif
