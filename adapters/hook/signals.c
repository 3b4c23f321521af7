/* signals.c: see signals.h.  SPDX-License-Identifier: ISC */
#include "adapters/hook/signals.h"

#include <pthread.h>

void weft__hook_block_signals(sigset_t *before)
{
	sigset_t every;
	sigfillset(&every);
	sigdelset(&every, SIGBUS); /* SIGBUS stays unblocked, because the recorder itself handles it for a truncated file */
	pthread_sigmask(SIG_SETMASK, &every, before);
}

void weft__hook_restore_signals(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}
