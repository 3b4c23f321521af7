/* preload.h: programs that cannot load this library get an environment without it (private to adapters/hook).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_PRELOAD_H
#define WEFT_HOOK_PRELOAD_H

#include <stddef.h>

/* Returns how many bytes a copy of the environment without this library needs; 0 if the library is not in LD_PRELOAD, or if a
 * program that this process starts can open the library. */
size_t weft__hook_bytes_without_library(char *const *environment);

/* Returns a copy of the environment, in which LD_PRELOAD lists other libraries only, in `space` of `bytes`.  The other variables
 * stay where they are.  If another thread has meanwhile added variables, what does not fit is not changed. */
char *const *weft__hook_copy_without_library(void *space, size_t bytes, char *const *environment);

#endif
