/* background_work.c: runs each piece of work on its own OS thread, which ends with the work.  SPDX-License-Identifier: ISC
 */
#include "base/background_work.h"

#ifdef __wasm__

void weft_background_work_start(struct weft_background_work *task)
{
	(void)task;
}

void weft_background_work_finish(struct weft_background_work *task)
{
	task->work(task->ctx);
}

#else

#include <signal.h>

static void *run_work(void *ctx)
{
	const struct weft_background_work *task = ctx;
	task->work(task->ctx);
	return NULL;
}

void weft_background_work_start(struct weft_background_work *task)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	task->has_begun = pthread_create(&task->thread, NULL, run_work, task) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void weft_background_work_finish(struct weft_background_work *task)
{
	if (task->has_begun)
		pthread_join(task->thread, NULL);
	else
		task->work(task->ctx);
}

#endif
