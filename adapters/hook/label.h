/* label.h: builds labels of promises (private to adapters/).
 *
 * A label is built from parts, and recorded when all parts are appended.  Text that does not fit into the label is cut.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_LABEL_H
#define WEFT_HOOK_LABEL_H

#include <sys/socket.h>

#include "adapters/hook/hook.h"

enum { WEFT_HOOK_LABEL_BYTES = 80 };

struct weft_hook_label {
	uint8_t length;
	char text[WEFT_HOOK_LABEL_BYTES];
};

void weft_hook_append(struct weft_hook_label *label, const char *text);
void weft_hook_append_number(struct weft_hook_label *label, uint64_t number);
/* Appends a duration as "100 s", "5 min" or "far off, 115 d". */
void weft_hook_append_ms(struct weft_hook_label *label, uint64_t ms);
void weft_hook_append_path(struct weft_hook_label *label, const char *path); /* appends a path, of a long path only the end */
void weft_hook_append_address(struct weft_hook_label *label, const struct sockaddr *address);
/* Appends " NAME" if the function has a name. */
void weft_hook_append_function(struct weft_hook_label *label, const void *function);

/* Records the complete label of the promise. */
void weft_hook_record_label(struct weft_hook_label *label, weft_id promise);

#endif
