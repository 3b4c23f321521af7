/* find.h: finds traces in CTF that other tracers wrote.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CTF_FIND_H
#define WEFT_CTF_FIND_H

#include <stdbool.h>

#include "base/vec.h"

typedef WEFT_VEC(char *) ctf_folders;

/* Adds each directory at or below `path` that contains CTF of a tracer other than weft; the caller owns the names.  The search
 * does not follow links, and does not go deeper than tracers do.  Returns false without memory. */
bool ctf_find_folders(ctf_folders *found, const char *path);

void ctf_folders_free(ctf_folders *folders);

#endif
