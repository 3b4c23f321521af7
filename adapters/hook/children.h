/* children.h: records child processes that the program starts without a runtime (private to adapters/hook).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_CHILDREN_H
#define WEFT_HOOK_CHILDREN_H

#include <sys/types.h>

/* Call this function when the program has waited for a child process that has ended.  Other numbers are ignored. */
void weft__hook_child_ended(pid_t pid);

/* Records which child processes have ended, although the program did not wait for them. */
void weft__hook_children_check(void);

#endif
