/* attach.h: the recorder in a program that ran before the recorder was loaded (private to adapters/hook).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_ATTACH_H
#define WEFT_HOOK_ATTACH_H

struct weft__module;

/* Notes promises that are not recorded, because the program started before this library was loaded. */
void weft__hook_leave_out(const char *promises);
const char *weft__hook_get_left_out(void);

/* Redirects the pointers by which the module calls libc to this library's functions of the same names.  A library that is
 * loaded later than libc is not the first in which the loader searches. */
void weft__hook_redirect_libc(const struct weft__module *from);

#endif
