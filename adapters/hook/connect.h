/* connect.h: records connects that the program makes through libc, and how each connect ends (private to adapters/hook).
 *
 * A connect() that succeeds at once is not recorded.  A connect in progress is a promise, which the promise of the connection
 * awaits (fd_table.h).  The promise of a connect ends when the program learns the result: by SO_ERROR, by another connect(), by
 * a read or write, or by closing the descriptor.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_CONNECT_H
#define WEFT_HOOK_CONNECT_H

#include <sys/socket.h>

#include "adapters/hook/label.h"

extern unsigned weft__hook_connecting_count; /* upper bound of the number of connects in progress, mostly 0 */

/* Records the result of a connect(); call it after connect(), with the result and errno.  A connect of a runtime's own code can
 * only end an earlier connect, because adapters record the connects of runtimes.  `connection` is the promise of the descriptor;
 * 0: none.  Keeps errno. */
void weft__hook_connect_returned(
    int fd, const struct sockaddr *to, socklen_t size, int result, weft_id connection, const void *caller);

/* Ends the descriptor's connect with error number `error`.  0 means success if the socket is connected; below 0, the function
 * asks the kernel. */
void weft__hook_connect_check_end(int fd, int error);

/* Ends the connect of the descriptor if the result of a read or write shows that the connect has ended. */
static inline void weft__hook_connect_check_io(int fd, ssize_t result, int error)
{
	if (__builtin_expect(__atomic_load_n(&weft__hook_connecting_count, __ATOMIC_RELAXED) > 0, 0))
		weft__hook_connect_check_end(fd, result < 0 ? error : 0);
}

/* Records that promise `id` awaits the connect in progress on the descriptor. */
void weft__hook_connect_await(int fd, weft_id id);

/* Records the connect that promise `id` awaits again, for a checkpoint of the ring; call it after weft_pending() of `id`. */
void weft__hook_connect_list_pending(int fd, weft_id id);

/* Appends the address that the descriptor is connecting to.  Returns false if no connect is in progress. */
bool weft__hook_connect_append_label(struct weft_hook_label *label, int fd);

#endif
