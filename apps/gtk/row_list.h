/* row_list.h: rows of src/viewer as widgets.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_ROW_LIST_H
#define WEFT_GTK_ROW_LIST_H

#include <adwaita.h>

#include "viewer/rows.h"

#define WEFT_TYPE_ROW_LIST (weft_row_list_get_type())
G_DECLARE_FINAL_TYPE(WeftRowList, weft_row_list, WEFT, ROW_LIST, AdwBin)

/* Rows that the caller fills; weft_row_list_show() then shows them, if they differ from those that are shown.  Emits "pressed"
 * with the number of a row that leads somewhere. */
struct weft_rows *weft_row_list_next(WeftRowList *list);
void weft_row_list_show(WeftRowList *list);

/* A row that is shown; lives until other rows are shown. */
const struct weft_row *weft_row_list_row(WeftRowList *list, unsigned number);

/* The list is no higher than its rows, and than so many px, and cuts long names; otherwise it takes what height there is. */
void weft_row_list_limit(WeftRowList *list, int most_px);

/* Puts the focus on the first row of a kind that leads somewhere, or on an open one, once there is one. */
void weft_row_list_focus(WeftRowList *list, enum weft_row_kind kind);

/* The texts of the widgets as JSON, for tests: [kind, tone, is open, leads, name, value] for each row. */
void weft_row_list_dump(WeftRowList *list, GString *out);

#endif
