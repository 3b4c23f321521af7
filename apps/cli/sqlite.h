/* sqlite.h: weft convert --to=sqlite.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_SQLITE_H
#define WEFT_CLI_SQLITE_H

#include "cli.h"
#include "layout/layout.h"

/* NULL: the error has been told. */
typedef struct weft_layout *cli_lay_out_fn(const struct weft_model *model);

/* Writes a model, where its promises stand, and what weft explain says of it, as the database docs/sql.md tells of.  The layout
 * is made when all questions are answered, which take as much memory.  Returns the exit status; errors have been told. */
int cli_write_sqlite(const struct weft_model *model, cli_lay_out_fn *lay_out, const char *out);

#endif
