/* background_work.h: runs work on a separate OS thread while the caller does something else.  SPDX-License-Identifier: ISC */
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

/* Starts the work on a new thread, which takes about 50 us; that thread handles no signals.  If no thread can be created, as in
 * a web page, weft_background_work_finish() does the work. */
void weft_background_work_start(struct weft_background_work *task);

/* Waits until the work is done; does the work itself if it has not started. */
void weft_background_work_finish(struct weft_background_work *task);

#endif
