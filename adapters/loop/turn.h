/* turn.h: records the iterations ("turns") of a thread's own loop (private to adapters/loop).  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_LOOP_TURN_H
#define WEFT_ADAPTERS_LOOP_TURN_H

#include "adapters/loop/loop.h"

/* Makes `id` the running promise and remembers its descriptor; has an effect only on threads with a loop of their own. */
void weft__loop_run(weft_id id, int fd);

/* Makes `id` the running promise as weft__loop_run() does, but records no event, because the caller records one.  Returns false
 * on a thread without a loop of its own. */
bool weft__loop_continue(weft_id id, int fd);

/* Makes the answered request the running promise, and records its claim: the time since this thread's last call was spent for
 * this request, or may have been, if another request was read in this iteration.  A thread without a loop of its own records the
 * claim, and goes on for itself. */
void weft__loop_claim(weft_id request, int fd);

/* Returns whether the previous iteration of this thread's loop was long. */
bool weft__loop_is_late(void);

/* Creates the promise of this thread's loop, if the loop has none. */
void weft__loop_begin_promise(void);

/* Adds a descriptor from which a question was read to the queue, or removes one that was answered; the oldest question of an
 * earlier iteration runs next. */
void weft__loop_enqueue(int fd);
void weft__loop_dequeue(int fd);

/* Notes that the current iteration has used the descriptor.  At the end of the iteration, weft__loop_end_answered() is called
 * for each used descriptor.  Returns false if this thread has no loop of its own, or the list is full. */
bool weft__loop_use(int fd);
void weft__loop_end_answered(int fd);

/* Returns the state of a descriptor that is known in this recording and still has a promise of adapters/loop; else NULL. */
struct weft__loop_fd *weft__loop_find(int fd);

/* Finds listeners that are older than the recording, because the connections that a listener accepted have its port. */
void weft__loop_find_listeners(void);

/* Records the promises of connections and requests again, for a checkpoint of the ring. */
uint64_t weft__loop_list(void *data, uint64_t cursor, unsigned budget);

/* Returns the descriptor whose request runs on this thread; -1 if no request runs. */
int weft__loop_running_fd(void);

#endif
