/* names_private.h: what the files of backends/dwarf share.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_NAMES_PRIVATE_H
#define WEFT_DWARF_NAMES_PRIVATE_H

#include <stdbool.h>

/* The symbol's name without decoration, to be freed; NULL: no memory. */
char *weft__name_demangle(const char *symbol);

#endif
