/* thread.h: an OS thread as a whole, which the adapters share (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_THREAD_H
#define WEFT_HOOK_THREAD_H

#include "adapters/hook/hook.h"

enum { WEFT_HOOK_LISTS = 4 };

struct weft_hook_thread {
	unsigned epoch;
	bool is_met;    /* its promise is made, or being made */
	weft_id root;   /* its promise, which runs when nothing else does; 0: it has none */
	uint64_t since; /* when that was made */
	char name[16];
	struct {
		weft_list_pending_fn *list;
		void *data;
	} lists[WEFT_HOOK_LISTS];
	unsigned list_count;
};

extern __thread struct weft_hook_thread weft__hook_thread __attribute__((tls_model("initial-exec")));
extern unsigned weft__hook_epoch;

void weft__hook_meet(void);

/* The calling OS thread, whose promise is made if it has none in this recording; it then runs.  While something records.  In
 * signal handlers too. */
static inline struct weft_hook_thread *weft_hook_thread(void)
{
	if (weft__hook_thread.epoch != weft__hook_epoch || !weft__hook_thread.is_met)
		weft__hook_meet();
	return &weft__hook_thread;
}

/* weft_list_pending() for adapters, several of which may have promises of one OS thread.  It ends with the OS thread, or when
 * another recording begins.  Not in signal handlers. */
void weft_hook_list(weft_list_pending_fn *list, void *data);

/* Every OS thread is met anew: a recording begins, or this is the child of a fork. */
void weft__hook_threads_forget(void);

#endif
