/* panel.h: the side panel: what is known of one promise, with links to others.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_PANEL_H
#define WEFT_GTK_PANEL_H

#include <adwaita.h>

#include "viewer/panel.h"

#define WEFT_TYPE_PANEL (weft_panel_widget_get_type())
G_DECLARE_FINAL_TYPE(WeftPanelWidget, weft_panel_widget, WEFT, PANEL_WIDGET, AdwBin)

/* Shows what there is to say about the promise under the pointer, or else the selected one; viewer may be NULL.  A link that is
 * pressed emits "go" with its promise. */
void weft_panel_widget_show(WeftPanelWidget *panel, const struct weft_viewer *viewer);

/* All that it says, a line for each row, for tests; to be freed. */
char *weft_panel_widget_text(WeftPanelWidget *panel);

#endif
