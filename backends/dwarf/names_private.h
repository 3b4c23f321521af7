/* names_private.h: declarations that the files of backends/dwarf share.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_NAMES_PRIVATE_H
#define WEFT_DWARF_NAMES_PRIVATE_H

#include <stdbool.h>

/* Returns the demangled name of a symbol, which the caller frees; NULL without memory. */
char *weft__name_demangle(const char *symbol);

/* Orders descriptors for weft_confine_descriptors(). */
int weft__compare_descriptors(const void *a, const void *b);

#endif
