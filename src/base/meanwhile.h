/* meanwhile.h: work that an OS thread of its own does while its caller does something else.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_MEANWHILE_H
#define WEFT_BASE_MEANWHILE_H

#include <stdbool.h>
#ifndef __wasm__
#include <pthread.h>
#endif

struct weft_meanwhile {
	void (*work)(void *ctx);
	void *ctx;
	bool has_begun;
#ifndef __wasm__
	pthread_t thread;
#endif
};

/* Begins the work, about 50 us; no signal is handled there.  Where there is no OS thread to be had, as in a page, nothing happens
 * yet. */
void weft_meanwhile_begin(struct weft_meanwhile *meanwhile);

/* Returns when the work is done; what has not begun is done here. */
void weft_meanwhile_end(struct weft_meanwhile *meanwhile);

#endif
