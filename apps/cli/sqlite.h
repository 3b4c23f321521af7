/* sqlite.h: weft convert --to=sqlite.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_SQLITE_H
#define WEFT_CLI_SQLITE_H

#include "cli.h"
#include "layout/layout.h"

/* Writes a model, where its promises stand, and what weft explain says of it, as the database docs/sql.md tells of.  Returns the
 * exit status; errors have been told. */
int cli_write_sqlite(const struct weft_model *model, const struct weft_layout *layout, const char *out);

#endif
