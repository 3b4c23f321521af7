/* wait.h: interprets a blocked syscall (private to src/look).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_WAIT_H
#define WEFT_LOOK_WAIT_H

#include "look/target.h"

/* The wait of a blocked thread. */
struct look_wait {
	enum weft_kind kind; /* of the awaited promise */
	bool is_awaited;     /* whether the thread waits; false if it runs, or if its syscall is unknown */
	bool is_shared;      /* whether all threads with the same object wait for one promise */
	uint64_t object;     /* address of the lock, condition or semaphore for which the thread waits */
	int64_t owner;       /* tid of the thread that holds the lock; 0 if there is none, or if it is unknown */
	int64_t joined;      /* tid of the thread that is being joined; 0 if the wait is no join */
	char label[LOOK_LABEL];
	size_t place; /* number of the frame to which the wait belongs; SIZE_MAX: unknown */
};

/* Finds out what a thread waits for.  `symbol` is the symbol that contains the thread's futex; NULL: unknown. */
void weft__look_wait(
    struct look_wait *out, const struct look_target *target, const struct look_thread *thread, const char *symbol);

/* Returns whether a frame belongs to the C library or the C++ library, whose functions only pass a wait on. */
bool weft__look_is_libc(const struct look_target *target, const struct look_thread *thread, size_t frame);

/* Returns the function in which a thread was started, or NULL: the function of the outermost frame outside of the C library. */
const char *weft__look_start_function(const struct look_target *target, const struct look_thread *thread);

#endif
