/* sqlite.h: writes databases for weft convert --to=sqlite.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_SQLITE_H
#define WEFT_CLI_SQLITE_H

#include "cli.h"
#include "layout/layout.h"

/* Returns NULL after printing an error. */
typedef struct weft_layout *cli_create_layout_fn(const struct weft_model *model);

/* Writes a model, its layout and its findings as the database that docs/sql.md describes.  Creates the layout last, since the
 * analyses before need as much memory.  Returns the exit status after printing errors. */
int cli_write_sqlite(const struct weft_model *model, cli_create_layout_fn *create_layout, const char *out);

#endif
