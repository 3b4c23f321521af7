/* row_list.h: shows rows of src/viewer as widgets.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_ROW_LIST_H
#define WEFT_GTK_ROW_LIST_H

#include <adwaita.h>

#include "viewer/rows.h"

#define WEFT_TYPE_ROW_LIST (weft_row_list_get_type())
G_DECLARE_FINAL_TYPE(WeftRowList, weft_row_list, WEFT, ROW_LIST, AdwBin)

/* Return the rows for the caller to fill (next), and show the rows if they differ from the rows shown now (show).  The list
 * emits the signal "pressed" with the number of a row that has an effect. */
struct weft_rows *weft_row_list_next(WeftRowList *list);
void weft_row_list_show(WeftRowList *list);

/* Returns a row that is shown; the row is valid until other rows are shown. */
const struct weft_row *weft_row_list_row(WeftRowList *list, unsigned number);

/* Limits the list's height to that of its rows and to max_px, and cuts long names; without this call, the list takes all
 * available height. */
void weft_row_list_limit(WeftRowList *list, int max_px);

/* Focuses the first row of a kind that can be pressed, preferably an open row, as soon as there is such a row. */
void weft_row_list_focus(WeftRowList *list, enum weft_row_kind kind);

/* Writes the texts of the widgets as JSON for tests, as [kind, tone, is open, leads, name, value] for each row. */
void weft_row_list_dump(WeftRowList *list, GString *out);

#endif
