/* find.h: where another tracer's CTF is.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CTF_FIND_H
#define WEFT_CTF_FIND_H

#include <stdbool.h>

#include "base/vec.h"

typedef WEFT_VEC(char *) ctf_folders;

/* Adds each directory at or below `path` that has CTF of another tracer than weft; the names are the caller's.  Links are not
 * followed, and what lies deeper than any tracer puts it is not looked at.  false: no memory. */
bool ctf_find(ctf_folders *found, const char *path);

void ctf_folders_free(ctf_folders *folders);

#endif
