/* fd_table.h: knows the connection of each file descriptor and its byte positions, so that the traces of both ends can be
 * joined.
 *
 * All adapters share one table.  An adapter assigns one of its promises to the connection of a descriptor.  The bytes that libc
 * then reads and writes are recorded for that promise, until the descriptor is closed, replaced, or assigned to another promise.
 * No function of this header takes a lock; signal handlers may call all of them.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_FD_TABLE_H
#define WEFT_HOOK_FD_TABLE_H

#include <weft/record.h>

#include "adapters/hook/hook.h"
#include "adapters/loop/loop.h"

struct iovec;
struct msghdr;

/* Returns whether a libc write of this thread comes from the program itself.  The function is needed because runtimes record
 * their own writes. */
typedef bool weft_hook_is_own_write(void);

struct weft__hook_fd_info {
	enum weft__hook_fd_state {
		WEFT__HOOK_FD_UNUSED,
		WEFT__HOOK_FD_DATAGRAM,       /* a datagram socket */
		WEFT__HOOK_FD_DUPLICATE,      /* state of a duplicate of descriptor `first`, while `first` is open */
		WEFT__HOOK_FD_UNIDENTIFIED,   /* state of a connection that the trace has not identified yet */
		WEFT__HOOK_FD_IDENTIFYING,    /* state while a thread identifies the connection */
		WEFT__HOOK_FD_RACED,          /* state after another thread transferred bytes during the identification */
		WEFT__HOOK_FD_UNIDENTIFIABLE, /* state of a connection that cannot be identified */
		WEFT__HOOK_FD_IDENTIFIED,
		WEFT__HOOK_FD_REATTACHED, /* state of a connection that was identified for an earlier promise of the descriptor */
	} state;
	unsigned epoch;
	weft_id id;
	weft_hook_is_own_write *is_own_write;
	struct weft_positions positions;
	int first;
	bool is_client; /* whether this end called connect(); other connections count as accepted */
	/* Whether the promise has ended; writes are recorded for an ended promise until another promise is assigned. */
	bool is_ended;
	bool is_idle; /* whether another promise may take the descriptor over */
	struct weft__loop_fd loop;
};

/* Entries of the first descriptors; entries of higher descriptors are allocated when they are used, in chunks of the same
 * size. */
extern struct weft__hook_fd_info weft__hook_fd_info[WEFT__HOOK_MAX_FDS];

/* Returns the entry of a descriptor beyond the first chunk; NULL if it never had an entry. */
struct weft__hook_fd_info *weft__hook_fd_beyond(int fd);
static inline struct weft__hook_fd_info *weft__hook_fd_at(int fd)
{
	return __builtin_expect((unsigned)fd < WEFT__HOOK_MAX_FDS, 1) ? &weft__hook_fd_info[fd] : weft__hook_fd_beyond(fd);
}

/* Returns the descriptor's entry and allocates it if necessary; NULL without memory, or if fd is below 0. */
struct weft__hook_fd_info *weft__hook_fd_make(int fd);

/* Returns a number that is higher than all descriptors with an entry. */
int weft__hook_fd_limit(void);

extern unsigned weft__hook_epoch;

/* Returns the descriptor's entry; NULL if nothing is known of the descriptor. */
static inline struct weft__hook_fd_info *weft__hook_fd_find(int fd)
{
	for (int names = 0; names < 2; names++) {
		struct weft__hook_fd_info *c = weft__hook_fd_at(fd);
		if (__builtin_expect(!c, 0))
			return NULL;
		const unsigned state = __atomic_load_n(&c->state, __ATOMIC_RELAXED);
		if (__builtin_expect(!state || c->epoch != weft__hook_epoch, 1))
			return NULL;
		if (state != WEFT__HOOK_FD_DUPLICATE)
			return c;
		fd = c->first;
	}
	return NULL;
}

/* Returns the original of a duplicate descriptor, and the descriptor itself if it is no duplicate. */
static inline int weft__hook_fd_original(int fd)
{
	const struct weft__hook_fd_info *c = weft__hook_fd_at(fd);
	return c && c->epoch == weft__hook_epoch && __atomic_load_n(&c->state, __ATOMIC_RELAXED) == WEFT__HOOK_FD_DUPLICATE
		   ? c->first
		   : fd;
}

/* Returns the promise of the descriptor; 0: none. */
static inline weft_id weft_hook_fd_promise(int fd)
{
	const struct weft__hook_fd_info *c = weft__hook_fd_find(fd);
	return c ? __atomic_load_n(&c->id, __ATOMIC_RELAXED) : 0;
}

/* Assign the descriptor's connection (or datagram socket) to promise `id`.  If is_own_write is NULL, the adapter itself records
 * neither the connection's writes nor received datagrams.  A descriptor that is out of range is ignored. */
void weft_hook_fd_attach(int fd, weft_id id, weft_hook_is_own_write *is_own_write);
void weft_hook_fd_attach_datagrams(int fd, weft_id id, weft_hook_is_own_write *is_own_write);

/* Assigns the descriptor to promise `id` if the descriptor has no promise, or an idle promise. */
void weft_hook_fd_attach_if_free(int fd, weft_id id, bool has_datagrams);

/* Change a descriptor that belongs to promise `id`: mark_idle lets another promise take the descriptor over, and detach notes
 * that the promise has ended. */
void weft_hook_fd_mark_idle(int fd, weft_id id);
void weft_hook_fd_detach(int fd, weft_id id);

/* Record bytes that an adapter is about to write (record_write), and retract bytes that were not written. */
void weft_hook_fd_record_write(int fd, weft_id id, size_t bytes);
void weft_hook_fd_retract_write(int fd, weft_id id, size_t bytes);

/* Records the identity and byte positions of the connection again, for a checkpoint of the ring; call it after
 * weft_pending(). */
void weft_hook_fd_still_connected(int fd, weft_id id);

/* Computes a digest of a datagram that is about to be sent. */
struct weft_digest weft_hook_digest(const struct iovec *pieces, size_t count);

/* ---- For libc_*.c.  All functions keep errno ---- */

/* Adds up the lengths of the pieces.  Returns false if the list of pieces cannot be read; the real call then fails with
 * EFAULT. */
bool weft__hook_count_bytes(const struct iovec *pieces, size_t count, size_t *bytes);

/* Call before a write.  The message must be readable; the function checks only its list of pieces.  Returns the number of
 * recorded bytes. */
size_t weft__hook_fd_before_write(struct weft__hook_fd_info *carried, int fd, const struct msghdr *message);
void weft__hook_fd_short_write(struct weft__hook_fd_info *carried, size_t missing);
void weft__hook_fd_after_read(struct weft__hook_fd_info *carried, int fd, size_t bytes);

/* Records a received datagram of `bytes` bytes; call it after the datagram was received into the pieces of `into`. */
void weft__hook_fd_after_datagram(const struct weft__hook_fd_info *carried, int fd, const struct msghdr *into, size_t bytes);

static inline bool weft__hook_fd_is_datagram(const struct weft__hook_fd_info *carried)
{
	return __atomic_load_n(&carried->state, __ATOMIC_ACQUIRE) == WEFT__HOOK_FD_DATAGRAM;
}

/* One bit for each descriptor, set if the descriptor is a file or non-blocking.  A read of a descriptor whose bit is not set may
 * wait. */
extern uint64_t weft__hook_fds_without_waits[WEFT__HOOK_MAX_FDS / 64] WEFT_HOOK_SHARED;

static inline bool weft__hook_fd_never_waits(int fd)
{
	return (unsigned)fd < WEFT__HOOK_MAX_FDS &&
	       __atomic_load_n(&weft__hook_fds_without_waits[fd / 64], __ATOMIC_RELAXED) >> fd % 64 & 1;
}

static inline void weft__hook_fd_note_no_waits(int fd)
{
	if ((unsigned)fd < WEFT__HOOK_MAX_FDS)
		__atomic_or_fetch(&weft__hook_fds_without_waits[fd / 64], (uint64_t)1 << fd % 64, __ATOMIC_RELAXED);
}

static inline void weft__hook_fd_may_wait(int fd)
{
	if (weft__hook_fd_never_waits(fd))
		__atomic_and_fetch(&weft__hook_fds_without_waits[fd / 64], ~((uint64_t)1 << fd % 64), __ATOMIC_RELAXED);
}

/* Forgets a descriptor that was closed or is about to refer to another file. */
void weft__hook_fd_reset(int fd);
/* Notes that `fd` (if >= 0) becomes a duplicate of `as`. */
void weft__hook_fd_duplicate(int fd, int as);
/* Forgets all descriptors from `first` to `last`. */
void weft__hook_fd_reset_range(unsigned first, unsigned last);

/* Marks the descriptor as the end that called connect().  Unmarked connections count as accepted, because most connections that
 * are older than the recording are accepted ones. */
void weft__hook_fd_mark_client(int fd);

#endif
