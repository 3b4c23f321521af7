/* wait.h: the meaning of a blocked call (private to src/look).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_WAIT_H
#define WEFT_LOOK_WAIT_H

#include "look/target.h"

/* The wait of a thread. */
struct look_wait {
	enum weft_kind kind; /* of the awaited promise */
	bool is_awaited;     /* false: the thread runs, or nothing is known of its call */
	bool is_shared;      /* threads with the same object wait for one promise */
	uint64_t object;     /* address of the lock, condition or semaphore */
	int64_t owner;       /* of a lock: tid of the thread that has it; 0: none or unknown */
	int64_t joined;      /* tid of the awaited thread; 0: it does not join one */
	char label[LOOK_LABEL];
	size_t place; /* the frame whose wait it is; SIZE_MAX: unknown */
};

/* Finds out what a thread waits for.  `symbol` contains its futex; NULL: unknown. */
void weft__look_wait(
    struct look_wait *out, const struct look_target *target, const struct look_thread *thread, const char *symbol);

/* Returns whether a frame is the C library's, or the C++ library's: their functions only pass a wait on. */
bool weft__look_is_libc(const struct look_target *target, const struct look_thread *thread, size_t frame);

/* Returns the function in which a thread was started, or NULL: the last of its frames outside the C library. */
const char *weft__look_start_function(const struct look_target *target, const struct look_thread *thread);

#endif
