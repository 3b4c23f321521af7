/* ahead.c: a ring of batches between two OS threads.  SPDX-License-Identifier: ISC */
#include "trace/ahead.h"

#include <stdlib.h>
#include <weft/status.h>

#ifdef __wasm__

struct weft_ahead *weft_ahead_begin(weft_ahead_fn *make, void *ctx)
{
	(void)make;
	(void)ctx;
	return NULL;
}

int weft_ahead_next(struct weft_ahead *ahead, const struct weft_event **events, size_t *count)
{
	(void)ahead;
	(void)events;
	(void)count;
	return WEFT_ENOTSUP;
}

void weft_ahead_end(struct weft_ahead *ahead)
{
	(void)ahead;
}

#else

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

enum { BATCHES = 8, ROOM = 1024 };

struct batch {
	size_t count;
	int status;
	struct weft_event events[ROOM];
};

struct weft_ahead {
	weft_ahead_fn *make;
	void *ctx;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t has_batch, has_room;
	size_t first, ready; /* batches that can be read, from `first` on; the one before it is being read */
	bool is_reading, is_over, maker_waits;
	struct batch batches[BATCHES];
};

static void *run(void *ctx)
{
	struct weft_ahead *a = ctx;
	bool goes_on = true;
	for (size_t at = 0; goes_on; at = (at + 1) % BATCHES) {
		struct batch *batch = &a->batches[at];
		batch->count = 0;
		batch->status = a->make(a->ctx, batch->events, ROOM, &batch->count);
		const bool is_last = batch->status < 0 || batch->count == 0;
		pthread_mutex_lock(&a->lock);
		a->ready++;
		pthread_cond_signal(&a->has_batch);
		while (!a->is_over && a->ready + a->is_reading == BATCHES) {
			a->maker_waits = true;
			pthread_cond_wait(&a->has_room, &a->lock);
		}
		a->maker_waits = false;
		goes_on = !is_last && !a->is_over;
		pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

static bool begin_thread(struct weft_ahead *a)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const bool has_begun = pthread_create(&a->thread, NULL, run, a) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return has_begun;
}

static void drop(struct weft_ahead *a)
{
	pthread_cond_destroy(&a->has_batch);
	pthread_cond_destroy(&a->has_room);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

struct weft_ahead *weft_ahead_begin(weft_ahead_fn *make, void *ctx)
{
	struct weft_ahead *a = malloc(sizeof *a);
	if (!a)
		return NULL;
	a->make = make;
	a->ctx = ctx;
	a->first = a->ready = 0;
	a->is_reading = a->is_over = a->maker_waits = false;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->has_batch, NULL);
	pthread_cond_init(&a->has_room, NULL);
	if (begin_thread(a))
		return a;
	drop(a);
	return NULL;
}

int weft_ahead_next(struct weft_ahead *a, const struct weft_event **events, size_t *count)
{
	pthread_mutex_lock(&a->lock);
	a->is_reading = false;
	/* Not for each batch: to wake somebody takes as long as to make some hundred events. */
	if (a->maker_waits && a->ready <= BATCHES / 2)
		pthread_cond_signal(&a->has_room);
	while (a->ready == 0)
		pthread_cond_wait(&a->has_batch, &a->lock);
	const struct batch *batch = &a->batches[a->first];
	const bool is_last = batch->status < 0 || batch->count == 0;
	if (!is_last) { /* the last one stays: who asks again gets the same answer */
		a->first = (a->first + 1) % BATCHES;
		a->ready--;
		a->is_reading = true;
	}
	pthread_mutex_unlock(&a->lock);
	*events = batch->events;
	*count = batch->count;
	return batch->status < 0 ? batch->status : batch->count > 0;
}

void weft_ahead_end(struct weft_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->is_over = true;
	pthread_cond_signal(&a->has_room);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	drop(a);
}

#endif
