/* flight.h: how weft save and weft watch ask a recording that keeps what the kernel says in memory (weft record --kernel=flight)
 * to write it.
 *
 * It connects to a socket in the session's folder, and waits until whoever records closes the connection: then all is written.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_FLIGHT_H
#define WEFT_CLI_FLIGHT_H

#include <stdbool.h>

/* Returns the socket, to be polled, or -1: nobody can ask. */
int flight_listen(const char *folder);

/* The connection of who asks, to be closed when all is written, or -1: nobody asks. */
int flight_asked(int socket);

/* Takes -1, too. */
void flight_end(int socket, const char *folder);

/* Removes the socket of a recording that was killed. */
void flight_forget(const char *folder);

/* Has whoever records into this trace, or into this folder of traces, write what the kernel said; false: nobody does.  Takes as
 * long as that, ten seconds at most, which is told. */
bool flight_ask(const char *path);

#endif
