/* flight.h: lets weft save and weft watch ask `weft record --kernel=flight` to write the kernel events that it keeps in memory.
 *
 * The requester connects to a socket in the session's folder, and waits until the recording closes the connection after writing
 * all events.  SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_FLIGHT_H
#define WEFT_KERNEL_FLIGHT_H

#include <stdbool.h>

#include "kernel/note.h"

/* Returns the listening socket, which the caller polls, or -1 on failure. */
int weft_kernel_flight_listen(const char *folder);

/* Returns the connection of a requester, which the caller closes when all events are written, or -1 if there is none. */
int weft_kernel_flight_accept(int socket);

/* Accepts -1. */
void weft_kernel_flight_close(int socket, const char *folder);

/* Removes the socket that a killed recording left behind. */
void weft_kernel_flight_remove(const char *folder);

/* Makes the recording that records a trace, or a folder of traces, write its kernel events.  Returns false if there is no
 * recording, or only a recording of a user who is not trusted in the folder.  The function waits at most ten seconds, and then
 * calls `note`. */
bool weft_kernel_flight_request(const char *path, kernel_note_fn *note);

#endif
