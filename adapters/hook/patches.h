/* patches.h: changes bytes of the program, or lists the changes for the process that attaches (private to adapters/).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_PATCHES_H
#define WEFT_HOOK_PATCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/attach.h"

/* The list, exported so that the other process finds it in the memory of the program. */
__attribute__((visibility("default"))) extern struct weft_attach weft_hook_attachment;

/* Whether this library was loaded into a running program by `weft record --pid`. */
extern bool weft__hook_is_attached;

/* Changes bytes of the program, or lists the change for the process that attaches (wire/attach.h).  `memory` is a descriptor of
 * /proc/self/mem, or -1.  Returns false if the bytes can be neither written nor listed. */
bool weft__hook_patch(int memory, void *at, const void *bytes, size_t count, bool is_code);

/* Whether the changes are only listed now, because OS threads may run the bytes. */
bool weft__hook_is_listing(void);

/* Begins to list changes; returns false without memory. */
bool weft__patches_begin_list(void);
void weft__patches_end_list(void);

/* Lists a change once.  Returns false if the list is full or the change has too many bytes.  Only one OS thread lists at a time:
 * the thread that attaches, or a thread that holds the loader's lock. */
bool weft__patches_list(void *at, const void *bytes, size_t count, bool is_code);

/* Returns whether the other process has written the changes, so that loads of libraries are noticed. */
bool weft__patches_are_applied(void);

#endif
