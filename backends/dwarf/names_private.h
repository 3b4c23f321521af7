/* names_private.h: declarations shared by the files of backends/dwarf.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_NAMES_PRIVATE_H
#define WEFT_DWARF_NAMES_PRIVATE_H

#include <stdbool.h>

/* Returns the name of a symbol without decoration; the caller frees it; NULL without memory. */
char *weft__name_demangle(const char *symbol);

/* Orders descriptors for weft_confine_descriptors(). */
int weft__compare_descriptors(const void *a, const void *b);

#endif
