/* dump.h: writes strings of the JSON that tests read.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_DUMP_H
#define WEFT_GTK_DUMP_H

#include <glib.h>

/* Appends a quoted JSON string; invalid UTF-8 is replaced. */
void dump_string(GString *out, const char *text);

#endif
