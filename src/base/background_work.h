/* background_work.h: runs work on an OS thread of its own while the caller does something else.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_BACKGROUND_WORK_H
#define WEFT_BASE_BACKGROUND_WORK_H

#include <stdbool.h>
#ifndef __wasm__
#include <pthread.h>
#endif

struct weft_background_work {
	void (*work)(void *ctx);
	void *ctx;
	bool has_begun;
#ifndef __wasm__
	pthread_t thread;
#endif
};

/* Starts the work, in about 50 us; its thread handles no signals.  Where no thread can be made, as in a web page,
 * weft_background_work_finish() does the work. */
void weft_background_work_start(struct weft_background_work *task);

/* Returns when the work is done; does the work here if it has not started. */
void weft_background_work_finish(struct weft_background_work *task);

#endif
