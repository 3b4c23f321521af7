/* fd_table.h: the connection of each file descriptor, and its positions, so that the traces of both ends can be joined.
 *
 * One table serves all adapters.  An adapter says which of its promises represents the connection.  Bytes that libc then reads
 * and writes are recorded for that promise, until the descriptor is closed, replaced, or assigned to another promise.  No
 * function takes a lock; all may be called in signal handlers.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_FD_TABLE_H
#define WEFT_HOOK_FD_TABLE_H

#include <weft/record.h>

#include "adapters/hook/hook.h"
#include "adapters/loop/loop.h"

struct iovec;
struct msghdr;

/* Returns whether a libc write of this thread comes from the program.  Runtimes record what they write themselves. */
typedef bool weft_hook_is_own_write(void);

struct weft__hook_fd_info {
	enum weft__hook_fd_state {
		WEFT__HOOK_FD_UNUSED,
		WEFT__HOOK_FD_DATAGRAM,       /* a datagram socket */
		WEFT__HOOK_FD_DUPLICATE,      /* a duplicate of the descriptor `first`, while `first` is open */
		WEFT__HOOK_FD_UNIDENTIFIED,   /* the trace has not identified the connection yet */
		WEFT__HOOK_FD_IDENTIFYING,    /* a thread is identifying it */
		WEFT__HOOK_FD_RACED,          /* another thread transferred bytes meanwhile */
		WEFT__HOOK_FD_UNIDENTIFIABLE, /* the connection cannot be identified */
		WEFT__HOOK_FD_IDENTIFIED,
		WEFT__HOOK_FD_REATTACHED, /* identified, for an earlier promise of the descriptor */
	} state;
	unsigned epoch;
	weft_id id;
	weft_hook_is_own_write *is_own_write;
	struct weft_positions positions;
	int first;
	bool is_client; /* this end called connect(); other connections count as accepted */
	bool is_ended;  /* the promise has ended; writes are still recorded for it until another promise is assigned */
	bool is_idle;   /* another promise may take the descriptor over */
	struct weft__loop_fd loop;
};

/* The entries of the first descriptors; more are allocated in chunks of the same size when they are used. */
extern struct weft__hook_fd_info weft__hook_fd_info[WEFT__HOOK_MAX_FDS];

/* Returns the descriptor's entry; NULL: it never had one. */
struct weft__hook_fd_info *weft__hook_fd_beyond(int fd);
static inline struct weft__hook_fd_info *weft__hook_fd_at(int fd)
{
	return __builtin_expect((unsigned)fd < WEFT__HOOK_MAX_FDS, 1) ? &weft__hook_fd_info[fd] : weft__hook_fd_beyond(fd);
}

/* Returns the descriptor's entry, which it allocates; NULL: out of memory, or below 0. */
struct weft__hook_fd_info *weft__hook_fd_make(int fd);

/* Returns a number above all descriptors with an entry. */
int weft__hook_fd_limit(void);

extern unsigned weft__hook_epoch;

/* Returns what is known of the descriptor; NULL: nothing. */
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

/* Returns the original of a duplicate descriptor, and any other descriptor itself. */
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

/* Assign the connection (or the datagram socket) to promise `id`.  If is_own_write is NULL, the adapter itself records neither
 * writes nor received datagrams.  A descriptor that is out of range is ignored. */
void weft_hook_fd_attach(int fd, weft_id id, weft_hook_is_own_write *is_own_write);
void weft_hook_fd_attach_datagrams(int fd, weft_id id, weft_hook_is_own_write *is_own_write);

/* Does the same if the descriptor has no promise, or an idle one. */
void weft_hook_fd_attach_if_free(int fd, weft_id id, bool has_datagrams);

/* If promise `id` has the descriptor: mark_idle lets another promise take it over; detach notes that the promise has ended. */
void weft_hook_fd_mark_idle(int fd, weft_id id);
void weft_hook_fd_detach(int fd, weft_id id);

/* Record bytes that an adapter is about to write; retract those that were not written. */
void weft_hook_fd_record_write(int fd, weft_id id, size_t bytes);
void weft_hook_fd_retract_write(int fd, weft_id id, size_t bytes);

/* Repeats the identity and positions of the connection for a checkpoint of the ring; call it after weft_pending(). */
void weft_hook_fd_still_connected(int fd, weft_id id);

/* Computes the digest of a datagram that is to be sent. */
struct weft_digest weft_hook_digest(const struct iovec *pieces, size_t count);

/* ---- For libc_*.c.  All functions keep errno ---- */

/* Sums the lengths of the pieces.  Returns false if the list cannot be read; the real call then fails with EFAULT. */
bool weft__hook_count_bytes(const struct iovec *pieces, size_t count, size_t *bytes);

/* Call before a write.  The message must be readable; its list of pieces is checked.  Returns how many bytes were recorded. */
size_t weft__hook_fd_before_write(struct weft__hook_fd_info *carried, int fd, const struct msghdr *message);
void weft__hook_fd_short_write(struct weft__hook_fd_info *carried, size_t missing);
void weft__hook_fd_after_read(struct weft__hook_fd_info *carried, int fd, size_t bytes);

/* Call when a datagram of `bytes` bytes has been received into the pieces of `into`. */
void weft__hook_fd_after_datagram(const struct weft__hook_fd_info *carried, int fd, const struct msghdr *into, size_t bytes);

static inline bool weft__hook_fd_is_datagram(const struct weft__hook_fd_info *carried)
{
	return __atomic_load_n(&carried->state, __ATOMIC_ACQUIRE) == WEFT__HOOK_FD_DATAGRAM;
}

/* Descriptors that are files or non-blocking: a bit each.  A read of another one may wait. */
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

/* Forgets the descriptor: it is closed, or is about to name another file. */
void weft__hook_fd_reset(int fd);
/* `fd` (if >= 0) becomes a duplicate of `as`. */
void weft__hook_fd_duplicate(int fd, int as);
/* Forgets all descriptors from first to last. */
void weft__hook_fd_reset_range(unsigned first, unsigned last);

/* Marks the descriptor as the connecting end.  Other connections count as accepted, as most that are older than the recording
 * are. */
void weft__hook_fd_mark_client(int fd);

#endif
