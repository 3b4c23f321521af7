/* stacks.h: unwinds the stacks of a running program or core dump, and names its functions and data.
 *
 * As in names.h, the files may come from a stranger: this process opens them, and a child process without rights parses them.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_STACKS_H
#define WEFT_DWARF_STACKS_H

#include "look/look.h"

/* Implements weft_look_unwind_fn.  The search takes at most some seconds; names that are not found in that time stay unknown.
 * Only on x86-64. */
void weft_stacks_find(struct weft_look_request *request);

#endif
