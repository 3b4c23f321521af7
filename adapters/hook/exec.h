/* exec.h: notes programs into which nothing can be preloaded (private to adapters/hook).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_EXEC_H
#define WEFT_HOOK_EXEC_H

#include <stdbool.h>

/* Notes that this process starts the program `name`, unless libraries can be preloaded into it.  `searches`: a name without a
 * slash is searched on PATH. */
void weft__hook_note_program(const char *name, bool searches);

#endif
