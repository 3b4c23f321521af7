/* attach.h: the recorder in a program that ran before the recorder was loaded (private to adapters/hook).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_ATTACH_H
#define WEFT_HOOK_ATTACH_H

#include <stdbool.h>
#include <stddef.h>

struct weft__module;

/* Whether this library was loaded into a running program by `weft record --pid`. */
extern bool weft__hook_is_attached;

/* Changes bytes of the program, or lists the change for the process that attaches (wire/attach.h).  `memory` is a descriptor of
 * /proc/self/mem, or -1.  Returns false if the bytes can be neither written nor listed. */
bool weft__hook_patch(int memory, void *at, const void *bytes, size_t count, bool is_code);

/* Whether the changes are only listed now, because OS threads may run the bytes. */
bool weft__hook_is_listing(void);

/* Notes promises that are not recorded, because the program started before this library was loaded. */
void weft__hook_leave_out(const char *promises);
const char *weft__hook_get_left_out(void);

/* Redirects the pointers by which the module calls libc to this library's functions of the same names.  A library that is
 * loaded later than libc is not the first in which the loader searches. */
void weft__hook_redirect_libc(const struct weft__module *from);

#endif
