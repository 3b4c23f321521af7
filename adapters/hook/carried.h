/* carried.h: which connection each descriptor is, and how far it has come, so that the traces of both ends can be put together.
 *
 * One table for all adapters, by descriptor.  An adapter says which of its promises stands for the connection there; whatever
 * reads and writes the descriptor then, by libc, is told of, until it is closed, is made another's, or another promise stands for
 * it.  Without locks, and in signal handlers too.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_HOOK_CARRIED_H
#define WEFT_ADAPTERS_HOOK_CARRIED_H

#include <weft/record.h>

struct iovec;
struct msghdr;

/* Whether what this OS thread writes by libc is the program's own; a runtime tells of what it writes itself. */
typedef bool weft_hook_is_own_write(void);

enum { WEFT__HOOK_DESCRIPTORS = 4096 };

extern struct weft__hook_carried {
	enum weft__hook_carried_state {
		WEFT__HOOK_NO_CONNECTION,
		WEFT__HOOK_DATAGRAMS, /* a socket for them */
		WEFT__HOOK_SAME,      /* one more name of the descriptor `first`, as long as that is open */
		WEFT__HOOK_NEW,       /* the trace does not know yet which connection it is ... */
		WEFT__HOOK_ASKING,    /* ... an OS thread asks ... */
		WEFT__HOOK_MISSED,    /* ... while another one moves bytes ... */
		WEFT__HOOK_STRANGER,  /* ... or nobody can say */
		WEFT__HOOK_KNOWN,
		WEFT__HOOK_MOVED, /* it does, of another promise that stood for it */
	} state;
	unsigned epoch;
	weft_id id;
	weft_hook_is_own_write *is_own_write;
	struct weft_positions positions;
	int first;
	bool is_ended; /* who stands for it has; what is written is told of it all the same, until another one does */
	bool is_idle;  /* who stands for it gives way to who wants to */
} weft__hook_carried[WEFT__HOOK_DESCRIPTORS];

extern unsigned weft__hook_epoch;

/* NULL: nothing is known of that descriptor. */
static inline struct weft__hook_carried *weft__hook_carried_at(int fd)
{
	for (int names = 0; names < 2 && (unsigned)fd < WEFT__HOOK_DESCRIPTORS; names++) {
		struct weft__hook_carried *c = &weft__hook_carried[fd];
		const unsigned state = __atomic_load_n(&c->state, __ATOMIC_RELAXED);
		if (__builtin_expect(!state || c->epoch != weft__hook_epoch, 1))
			return NULL;
		if (state != WEFT__HOOK_SAME)
			return c;
		fd = c->first;
	}
	return NULL;
}

/* The promise that stands for it; 0: none. */
static inline weft_id weft_hook_carrier(int fd)
{
	const struct weft__hook_carried *c = weft__hook_carried_at(fd);
	return c ? __atomic_load_n(&c->id, __ATOMIC_RELAXED) : 0;
}

/* The promise stands for the connection, or, `datagrams`, for the socket.  is_own_write: NULL: the adapter tells nothing of what
 * is written, nor of datagrams that come.  A descriptor that is out of range is none. */
void weft_hook_carries(int fd, weft_id id, weft_hook_is_own_write *is_own_write);
void weft_hook_carries_datagrams(int fd, weft_id id, weft_hook_is_own_write *is_own_write);

/* The same, if nobody else stands for it who has not given way. */
void weft_hook_may_carry(int fd, weft_id id, bool has_datagrams);

/* If that promise stands for it: it gives way from now on; it has ended. */
void weft_hook_gives_way(int fd, weft_id id);
void weft_hook_carries_no_more(int fd, weft_id id);

/* What an adapter tells itself: so many bytes are about to be written; so many of them were not taken. */
void weft_hook_goes_out(int fd, weft_id id, size_t bytes);
void weft_hook_fell_short(int fd, weft_id id, size_t bytes);

/* Behind weft_pending(), for a ring that forgets: what stands for a connection that the trace knows. */
void weft_hook_still_connected(int fd, weft_id id);

/* Of a datagram that is to be sent. */
struct weft_digest weft_hook_digest(const struct iovec *pieces, size_t count);

/* ---- For sleep.c, of calls of libc.  All keep errno ---- */

/* Before a write, of which the list of pieces can be read, or is not yet known to be.  Returns how many bytes were told. */
size_t weft__hook_writes(struct weft__hook_carried *carried, int fd, const struct msghdr *message);
void weft__hook_wrote_less(struct weft__hook_carried *carried, size_t missing);
void weft__hook_has_read(struct weft__hook_carried *carried, int fd, size_t bytes);

/* A datagram has come, which lies in those pieces, as many bytes of it as the call returned. */
void weft__hook_datagram_came(const struct weft__hook_carried *carried, int fd, const struct msghdr *into, size_t bytes);

static inline bool weft__hook_has_datagrams(const struct weft__hook_carried *carried)
{
	return __atomic_load_n(&carried->state, __ATOMIC_ACQUIRE) == WEFT__HOOK_DATAGRAMS;
}

/* The number is another thing's from now on, or nothing's. */
void weft__hook_is_another(int fd);
/* It is one more name of that one, too; below 0: it is not. */
void weft__hook_is_same(int fd, int as);
/* All from that one to that one. */
void weft__hook_are_others(unsigned first, unsigned last);

/* It asked to be connected; other ends are those that were accepted, as what a server has since before a recording mostly was. */
void weft__hook_connects(int fd);

#endif
