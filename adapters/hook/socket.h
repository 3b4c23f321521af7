/* socket.h: types of sockets (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_SOCKET_H
#define WEFT_HOOK_SOCKET_H

#include <stdbool.h>

bool weft__hook_is_internet_socket(int fd);

/* Returns the protocol; -1 if the descriptor is no socket.  IPPROTO_UDP is returned only for internet sockets, because other
 * families may use the same number. */
int weft__hook_socket_protocol(int fd);

/* Returns whether the descriptor is a UDP socket.  Keeps errno. */
bool weft_hook_has_datagrams(int fd);

#endif
