/* fd_label.h: labels of file descriptors (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_FD_LABEL_H
#define WEFT_HOOK_FD_LABEL_H

#include "adapters/hook/label.h"

/* Address of the peer, else the socket's own address, else the path. */
void weft_hook_append_fd(struct weft_hook_label *label, int fd);
/* Appends the label of a descriptor that an event loop watches.  Returns the promise kind for the descriptor, and in
 * *has_datagrams whether it is a UDP socket. */
enum weft_kind weft_hook_append_watched_fd(struct weft_hook_label *label, int fd, bool reads, bool *has_datagrams);
bool weft_hook_may_connect(int fd); /* returns whether it is a TCP socket that is not connected and may become connected */

#endif
