/* loop.h: records programs with an event loop of their own, by the calls of libc that they make (private to adapters/).
 *
 * The wrappers of libc's functions call the functions in this header.  The functions act on threads whose wait belongs to no
 * runtime that weft knows, in processes where such a thread waits for descriptors.  A connection is a promise; a question that
 * begins on the connection is a promise of kind request, which ends with the answer.
 *
 * At the time of a call, the recorder does not know for which request the loop works, because libraries with promises read in
 * one iteration and work in a later iteration.  So the recorder writes the likely request, and at each answer the claim of the
 * answered request; the model then attributes the time before the answer to that request.
 *
 * All functions keep errno and take no lock; a descriptor that another thread or an interrupted function is using is not
 * recorded.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_LOOP_H
#define WEFT_ADAPTERS_LOOP_H

#include <sys/types.h>

#include "adapters/hook/label.h"
#include "adapters/hook/request.h"
#include "adapters/hook/thread.h"
#include "protocol/protocol.h"

struct msghdr;
struct sockaddr;
struct weft_hook_sleep;

enum weft__loop_role {
	WEFT__LOOP_NOTHING, /* no stream socket, or a socket whose promise belongs to a runtime */
	WEFT__LOOP_LISTENER,
	WEFT__LOOP_ACCEPTED,
	WEFT__LOOP_CONNECTED,
	WEFT__LOOP_EITHER /* socket that is older than the recording; its first question shows which end it is */
};

/* State of a descriptor, a member of the descriptor's entry (hook/fd_table.h).  If epoch is 0 or of an older recording, nothing
 * is known of the descriptor.  A runtime's adapter may keep the requests of its own connection in a state with the role
 * WEFT__LOOP_NOTHING (adapters/uv/question.c). */
struct weft__loop_fd {
	unsigned epoch;          /* atomic */
	uint8_t is_busy;         /* whether a thread is changing the other fields; atomic */
	uint8_t role;            /* atomic */
	bool is_cut;             /* whether the last write took fewer bytes than the program offered */
	bool is_at_end;          /* whether the other end sends nothing more */
	uint32_t failed_accepts; /* number of accepts on a listener that failed for lack of file descriptors */
	bool is_used;            /* whether the descriptor is listed in the current iteration of its thread's loop */
	weft_id connection, by;
	int asker_fd;     /* descriptor of the connection on which the asker's own request came; -1: none */
	int maker_fd;     /* descriptor of the connection whose request made the program connect this one; -1: none */
	weft_id maker;    /* that request */
	weft_id written;  /* the request whose answer a thread is writing or has written; 0: none */
	weft_id answerer; /* the OS thread that wrote the answer without running another promise; 0: none */
	const void *list; /* identity of the thread that records these promises again in checkpoints */
	uint64_t since;
	struct weft_record_place *site;
	struct weft_protocol_state protocol;
	struct weft_hook_label label;
	struct weft__hook_request request;
};

/* Returns whether the state belongs to the current recording. */
static inline bool weft__loop_is_known(const struct weft__loop_fd *c)
{
	return __atomic_load_n(&c->epoch, __ATOMIC_ACQUIRE) == weft__hook_epoch;
}

/* Returns whether the descriptor is known to have no promise that adapters/loop made. */
static inline bool weft__loop_is_nothing(const struct weft__loop_fd *c)
{
	return weft__loop_is_known(c) && __atomic_load_n(&c->role, __ATOMIC_RELAXED) == WEFT__LOOP_NOTHING;
}

/* Tries to lock the state; returns true if the caller may change the state, and must release it afterwards.  The pointer to the
 * state may be NULL. */
static inline bool weft__loop_take(struct weft__loop_fd *c)
{
	return c && !__atomic_exchange_n(&c->is_busy, 1, __ATOMIC_ACQUIRE);
}

static inline void weft__loop_release(struct weft__loop_fd *c)
{
	__atomic_store_n(&c->is_busy, 0, __ATOMIC_RELEASE);
}

/* Resets a locked state for the current recording. */
void weft__loop_begin_entry(struct weft__loop_fd *c, enum weft__loop_role role);

/* The recording in which a thread of this process has an event loop of its own, or talks over a blocking socket; atomic. */
extern unsigned weft__loop_epoch;

/* Returns whether this thread's calls may belong to an event loop of the program's own.  Recording must be on. */
static inline bool weft__loop_is_watched(void)
{
	return __builtin_expect(__atomic_load_n(&weft__loop_epoch, __ATOMIC_RELAXED) == weft__hook_epoch, 0) &&
	       weft__hook_get_thread()->wait_owner != WEFT_HOOK_WAIT_OF_RUNTIME;
}

/* Handles the start of a wait or of a blocking call; call it if the wait belongs to no runtime and no callback is on the stack.
 * Returns false if the call delays the running request and is therefore no sleep. */
bool weft__loop_before_wait(const struct weft_hook_sleep *sleep);

/* Notes a successful connect; call it after the connect.  A thread without an event loop may talk over this blocking socket, and
 * then sleeps in the call that reads the answer. */
void weft__loop_begin_talk(int fd, const void *caller);

/* Notes that the wait of a thread's own loop is over. */
void weft__loop_begin_turn(void);

/* Ends the answered requests of the current iteration; call it when the program ends inside of an iteration. */
void weft__loop_end_program(void);

/* Returns whether a call that waits for a time or a disk delays this thread's own loop, which has served requests. */
bool weft__loop_is_held_up(const void *caller);

/* Record a read; call after_read after a read of `result` bytes into the message, or after the end of the input. */
void weft__loop_before_read(int fd, const void *caller);
void weft__loop_after_read(int fd, const struct msghdr *message, ssize_t result, const void *caller);

/* Record a write; call the first before the write, and the second after it with the number of recorded bytes. */
void weft__loop_before_write(int fd, const struct msghdr *message, const void *caller);
void weft__loop_after_write(int fd, const struct msghdr *message, size_t bytes, ssize_t result);

/* Record new connections: accepted after an accept, connects after a connect that succeeded or is in progress. */
void weft__loop_accepted(int listener, int fd, const void *caller);
/* Records that an accept failed for lack of file descriptors: the first failure, and whenever the number has doubled. */
void weft__loop_accept_failed(int listener, const void *caller);
void weft__loop_connects(int fd, const struct sockaddr *to, socklen_t size, const void *caller);

/* Call when a runtime has made the promise of a listening socket: a loop of another thread makes no second one. */
void weft__loop_leave_listener(int fd);

/* Call before a descriptor is closed or replaced. */
void weft__loop_closes(int fd);

#endif
