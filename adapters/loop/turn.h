/* turn.h: the turns of a thread's own loop (private to adapters/loop).  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_LOOP_TURN_H
#define WEFT_ADAPTERS_LOOP_TURN_H

#include "adapters/loop/loop.h"

/* Makes the promise run, and remembers its descriptor; only on threads with a loop of their own. */
void weft__loop_run(weft_id id, int fd);

/* Makes the promise run, which reads the answer of its request.  Returns false, with nothing recorded, on a thread without a loop
 * of its own. */
bool weft__loop_read(weft_id id, weft_id request, int fd);

/* Makes the request run that is answered now, and records its claim: the time since the last call on this thread was its own, or,
 * if another request was read in this very turn, may have been. */
void weft__loop_claim(weft_id request, int fd);

/* Returns whether the turn before this one was long. */
bool weft__loop_is_late(void);

/* Creates the promise of this thread's loop, if it has none. */
void weft__loop_begin_promise(void);

/* Notes that the descriptor was read with a question, or was answered; the oldest question of an earlier turn runs next. */
void weft__loop_enqueue(int fd);
void weft__loop_dequeue(int fd);

/* Notes that this turn used the descriptor.  At the end of the turn, weft__loop_end_answered() is called for it.  Returns false
 * if there is no such turn. */
bool weft__loop_use(int fd);
void weft__loop_end_answered(int fd);

/* Returns the descriptor's entry if it is known in this recording and its promise is still this source's. */
struct weft__loop_fd *weft__loop_find(int fd);

/* Finds listeners that are older than the recording, among the first descriptors: a connection that they accepted has their port.
 */
void weft__loop_find_listeners(void);

/* Repeats the promises of this source for a checkpoint of the ring. */
uint64_t weft__loop_list(void *data, uint64_t cursor, unsigned budget);

/* Returns the descriptor whose request runs on this thread; -1: none. */
int weft__loop_running_fd(void);

#endif
