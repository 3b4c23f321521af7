/* sqlite.h: writes databases for weft convert --to=sqlite.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_SQLITE_H
#define WEFT_CLI_SQLITE_H

#include "cli.h"
#include "layout/layout.h"

/* Creates the layout; returns NULL after printing an error. */
typedef struct weft_layout *cli_create_layout_fn(const struct weft_model *model);

/* Writes a model, its layout and its findings as the SQLite database that docs/sql.md describes.  The layout is created last,
 * because the analyses before it need as much memory.  Returns the exit status after printing errors. */
int cli_write_sqlite(const struct weft_model *model, cli_create_layout_fn *create_layout, const char *out);

#endif
