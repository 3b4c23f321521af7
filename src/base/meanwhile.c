/* meanwhile.c: one OS thread for each piece of work, which ends with it.  SPDX-License-Identifier: ISC */
#include "base/meanwhile.h"

#ifdef __wasm__

void weft_meanwhile_begin(struct weft_meanwhile *meanwhile)
{
	(void)meanwhile;
}

void weft_meanwhile_end(struct weft_meanwhile *meanwhile)
{
	meanwhile->work(meanwhile->ctx);
}

#else

#include <signal.h>

static void *run(void *ctx)
{
	const struct weft_meanwhile *meanwhile = ctx;
	meanwhile->work(meanwhile->ctx);
	return NULL;
}

void weft_meanwhile_begin(struct weft_meanwhile *meanwhile)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	meanwhile->has_begun = pthread_create(&meanwhile->thread, NULL, run, meanwhile) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void weft_meanwhile_end(struct weft_meanwhile *meanwhile)
{
	if (meanwhile->has_begun)
		pthread_join(meanwhile->thread, NULL);
	else
		meanwhile->work(meanwhile->ctx);
}

#endif
