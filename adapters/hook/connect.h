/* connect.h: connects that a program asks for by itself, by libc, and how each ends (private to adapters/hook).
 *
 * One that ends at once and well is not told of.  One that is under way is a promise, for which whoever stands for the connection
 * waits (carried.h), until the program learns how it ended: by SO_ERROR, by connect() itself, by what it reads or writes, or that
 * it closes the descriptor.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_CONNECT_H
#define WEFT_HOOK_CONNECT_H

#include <sys/socket.h>

#include "adapters/hook/label.h"

extern unsigned weft__hook_connecting; /* how many are under way at most; mostly none */

/* connect() has returned, and says so in errno; of a runtime, which tells of its connects itself, nothing but that it asked.
 * Keeps errno. */
void weft__hook_has_connected(int fd, const struct sockaddr *to, socklen_t size, int result, const void *caller);

/* It has ended with that error; 0: well, or nobody knows yet; below 0: the kernel is asked. */
void weft__hook_connect_ends(int fd, int error);

/* What a read or write of a descriptor returned. */
static inline void weft__hook_connect_is_used(int fd, ssize_t result, int error)
{
	if (__builtin_expect(__atomic_load_n(&weft__hook_connecting, __ATOMIC_RELAXED) > 0, 0))
		weft__hook_connect_ends(fd, result < 0 ? error : 0);
}

/* The promise of the connect that is under way there, which `id` waits for from now on. */
void weft__hook_connect_is_awaited(int fd, weft_id id);

/* Behind weft_pending() of who waits for it, for a ring that forgets. */
void weft__hook_still_connecting(int fd, weft_id id);

/* Whether this end asked for the stream there, which may not be connected yet; puts where to, if it is not. */
bool weft__hook_put_connecting(struct weft_hook_label *label, int fd);

#endif
