/* flight.h: lets weft save and weft watch request that weft record --kernel=flight writes the kernel events that it keeps in
 * memory.
 *
 * The requester connects to a socket in the session's folder and waits until the recording closes the connection, after writing
 * everything.  SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_FLIGHT_H
#define WEFT_KERNEL_FLIGHT_H

#include <stdbool.h>

#include "kernel/note.h"

/* Returns the socket, to be polled, or -1 on failure. */
int weft_kernel_flight_listen(const char *folder);

/* Returns the connection of a requester, to be closed when all is written, or -1 for none. */
int weft_kernel_flight_accept(int socket);

/* Accepts -1. */
void weft_kernel_flight_close(int socket, const char *folder);

/* Removes the socket of a recording that was killed. */
void weft_kernel_flight_remove(const char *folder);

/* Makes the recording of a trace, or of a folder of traces, write its kernel events.  Returns false if there is none, or only
 * one of a user who has no say in the folder.  Waits up
 * to ten seconds, and then calls `note`. */
bool weft_kernel_flight_request(const char *path, kernel_note_fn *note);

#endif
