/* table.h: shows types of promises (analysis/queries/type_table.h) as rows.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_TABLE_H
#define WEFT_VIEWER_TABLE_H

#include "analysis/queries/type_table.h"
#include "viewer/rows.h"

#define WEFT_TABLE_SHOWN 50u

/* Fills rows with the interval and columns of the table, and with the types; the open type also has its histogram and its
 * slowest promises.  If needed, the function creates the table, which takes 0.1 us for each promise.  On failure (WEFT_ENOMEM)
 * there are no rows. */
int weft_table_fill(struct weft_rows *rows, struct weft_viewer *viewer, struct weft_error *err);

#endif
