/* socket.h: types of sockets (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_SOCKET_H
#define WEFT_HOOK_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

bool weft__hook_is_internet_socket(int fd);

/* Returns the protocol; -1 if the descriptor is no socket.  IPPROTO_UDP is returned only for internet sockets, because other
 * families may use the same number. */
int weft__hook_socket_protocol(int fd);

/* Returns whether the descriptor is a UDP socket.  Keeps errno. */
bool weft_hook_has_datagrams(int fd);

bool weft__hook_is_listener(int fd);

/* Place at which a search through the open descriptors of this process continues.  A search begins with a place of zeros. */
struct weft__hook_fd_search {
	int64_t next;
	bool is_over; /* whether each descriptor was seen */
};

typedef void weft__hook_found_fd(int fd);

/* Calls `found` for each listening socket among the next open descriptors.  One call looks at about 1,000 descriptors; the caller
 * continues the search with the same place.  Keeps errno, and allocates nothing. */
void weft__hook_find_listeners(struct weft__hook_fd_search *search, weft__hook_found_fd *found);

#endif
