/* loop.h: records programs with an event loop of their own, by what they ask of libc (private to adapters/).
 *
 * The wrappers of libc call these functions.  They act on threads whose wait belongs to no runtime that weft knows, in processes
 * where such a thread waits for descriptors.  A connection is a promise; a question that begins on it is a promise of kind
 * request, which ends with the answer.
 *
 * Which request a loop works for is unknown at the time of a call: libraries with promises read in one turn and work in a later
 * one.  So the recorder writes what is likely, and at each answer the claim of the request that is answered; the model gives the
 * time before the answer to that request.
 *
 * All functions keep errno and take no lock; a descriptor in use by another thread, or by the code that a signal interrupted, is
 * not recorded.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_LOOP_H
#define WEFT_ADAPTERS_LOOP_H

#include <sys/types.h>

#include "adapters/hook/label.h"
#include "adapters/hook/thread.h"
#include "protocol/protocol.h"

struct msghdr;
struct sockaddr;
struct weft_hook_sleep;

enum weft__loop_role {
	WEFT__LOOP_NOTHING, /* no stream socket, or one whose promise a runtime has */
	WEFT__LOOP_LISTENER,
	WEFT__LOOP_ACCEPTED,
	WEFT__LOOP_CONNECTED,
	WEFT__LOOP_EITHER /* older than the recording: the first question tells */
};

/* The state of a descriptor: a member of its entry (hook/fd_table.h).  Zero, or of an older epoch: nothing is known.  The adapter
 * of a runtime may keep the requests of its own connection in a state of the role WEFT__LOOP_NOTHING (adapters/uv/question.c). */
struct weft__loop_fd {
	unsigned epoch;     /* atomic */
	uint8_t is_busy;    /* a thread changes the other fields; atomic */
	uint8_t role;       /* atomic */
	bool is_unanswered; /* the request has no byte of an answer yet */
	bool must_answer;   /* the protocol has an answer to each such question */
	bool is_cut;        /* the last write took fewer bytes than the program had */
	bool is_at_end;     /* the other end sends nothing more */
	bool is_used;       /* listed in the turn of its thread */
	weft_id connection, by;
	weft_id request;  /* open request; 0: none */
	weft_id asker;    /* the promise that awaits the request, if this end asks */
	int asker_fd;     /* the descriptor whose request that promise is; -1: none */
	int maker_fd;     /* the request that connected this descriptor was of that one; -1: none */
	weft_id maker;    /* that request */
	const void *list; /* the thread that repeats these promises for a ring's checkpoints */
	uint64_t since, asked_since;
	struct weft_record_place *site, *asked_site;
	struct weft_record_site *asked_line; /* in a language; NULL: `asked_site` is the place */
	struct weft_protocol_state protocol;
	struct weft_hook_label label, name;
};

/* Returns whether the state is of this recording. */
static inline bool weft__loop_is_known(const struct weft__loop_fd *c)
{
	return __atomic_load_n(&c->epoch, __ATOMIC_ACQUIRE) == weft__hook_epoch;
}

/* Returns whether the descriptor is known to have no promise of this source. */
static inline bool weft__loop_is_nothing(const struct weft__loop_fd *c)
{
	return weft__loop_is_known(c) && __atomic_load_n(&c->role, __ATOMIC_RELAXED) == WEFT__LOOP_NOTHING;
}

/* Returns whether the caller may change the state now, which it releases then.  The state may be NULL. */
static inline bool weft__loop_take(struct weft__loop_fd *c)
{
	return c && !__atomic_exchange_n(&c->is_busy, 1, __ATOMIC_ACQUIRE);
}

static inline void weft__loop_release(struct weft__loop_fd *c)
{
	__atomic_store_n(&c->is_busy, 0, __ATOMIC_RELEASE);
}

/* Resets a taken state for this recording. */
void weft__loop_begin_entry(struct weft__loop_fd *c, enum weft__loop_role role);

/* The recording in which a thread of this process has a loop of its own, or talks over a blocking socket; atomic. */
extern unsigned weft__loop_epoch;

/* Returns whether this thread's calls may belong to a loop of its own.  Recording must be on. */
static inline bool weft__loop_is_watched(void)
{
	return __builtin_expect(__atomic_load_n(&weft__loop_epoch, __ATOMIC_RELAXED) == weft__hook_epoch, 0) &&
	       weft__hook_thread.wait_owner != WEFT_HOOK_WAIT_OF_RUNTIME;
}

/* Call before a wait or a call that blocks, if it is of no runtime and no callback is on the stack.  Returns false if the call
 * holds up the request that runs: then it is no sleep. */
bool weft__loop_before_wait(const struct weft_hook_sleep *sleep);

/* Call after a connect that succeeded: a thread without an event loop may talk over this blocking socket, and then it sleeps in
 * the call that reads the answer. */
void weft__loop_begin_talk(int fd, const void *caller);

/* Call when a thread's own wait is over. */
void weft__loop_begin_turn(void);

/* Call when the program ends in the middle of a turn: what it has answered is over. */
void weft__loop_end_program(void);

/* Returns whether a call that waits for a time or a disk holds up this thread's own loop, which has served requests. */
bool weft__loop_is_held_up(const void *caller);

/* Call after a read of `result` bytes into the message, or after an end of input. */
void weft__loop_before_read(int fd, const void *caller);
void weft__loop_after_read(int fd, const struct msghdr *message, ssize_t result, const void *caller);

/* Call before a write, and after it with the number of bytes that were recorded. */
void weft__loop_before_write(int fd, const struct msghdr *message, const void *caller);
void weft__loop_after_write(int fd, const struct msghdr *message, size_t bytes, ssize_t result);

/* Call after an accept, and after a connect that succeeded or is in progress. */
void weft__loop_accepted(int listener, int fd, const void *caller);
void weft__loop_connects(int fd, const struct sockaddr *to, socklen_t size, const void *caller);

/* Call when a runtime has made the promise of a listening socket: a loop of another thread makes no second one. */
void weft__loop_leave_listener(int fd);

/* Call before a descriptor is closed or replaced. */
void weft__loop_closes(int fd);

#endif
