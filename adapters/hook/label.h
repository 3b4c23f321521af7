/* label.h: what things are called (private to adapters/).
 *
 * A label is put together from parts, and told when it is whole.  What does not fit is cut.  No printf: labels are on hot paths.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_LABEL_H
#define WEFT_HOOK_LABEL_H

#include <sys/socket.h>

#include "adapters/hook/hook.h"

enum { WEFT_HOOK_LABEL = 80 };

struct weft_hook_label {
	uint8_t length;
	char text[WEFT_HOOK_LABEL];
};

void weft_hook_put(struct weft_hook_label *label, const char *text);
void weft_hook_put_number(struct weft_hook_label *label, uint64_t number);
void weft_hook_put_ms(struct weft_hook_label *label, uint64_t ms);        /* "100 s", "5 min", "far off, 115 d" */
void weft_hook_put_path(struct weft_hook_label *label, const char *path); /* its end, if it is long */
void weft_hook_put_address(struct weft_hook_label *label, const struct sockaddr *address);
void weft_hook_put_fd(struct weft_hook_label *label, int fd); /* what it is: its peer, its address, its path */
/* A descriptor of a loop; returns what that is, and whether it is a socket for datagrams of UDP. */
enum weft_kind weft_hook_put_watched(struct weft_hook_label *label, int fd, bool reads, bool *has_datagrams);
bool weft_hook_has_datagrams(int fd);
bool weft_hook_may_connect(int fd); /* a stream of TCP that is not connected, and may be so soon */
void weft_hook_put_function(struct weft_hook_label *label, const void *function); /* " NAME", if it has one */

/* The label is whole: the trace has it, of that promise. */
void weft_hook_say(struct weft_hook_label *label, weft_id promise);

#endif
