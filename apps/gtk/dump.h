/* dump.h: strings of the JSON that tests read.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_DUMP_H
#define WEFT_GTK_DUMP_H

#include <glib.h>

/* Quoted; what is not UTF-8 becomes so. */
void dump_string(GString *out, const char *text);

#endif
