/* stacks.h: unwinds the stacks of a program that is looked at, and names its functions and data.
 *
 * As in names.h, the files may be a stranger's: this process opens them, and a child without rights parses them.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_STACKS_H
#define WEFT_DWARF_STACKS_H

#include "look/look.h"

/* Implements weft_look_unwind_fn.  Takes at most some seconds; what is not found until then stays unknown.  Only on x86-64. */
void weft_stacks_find(struct weft_look_request *request);

#endif
