/* table.h: sorts of promises (analysis/table.h), as rows.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_TABLE_H
#define WEFT_VIEWER_TABLE_H

#include "analysis/table.h"
#include "viewer/rows.h"

#define WEFT_TABLE_SHOWN 50u

/* Fills rows with what is sorted by what, and with the sorts; of the open one its histogram and its slowest.  A table that is not
 * known yet is made: 0.1 us a promise.  WEFT_ENOMEM: there are no rows. */
int weft_table_fill(struct weft_rows *rows, struct weft_viewer *viewer, struct weft_error *err);

#endif
