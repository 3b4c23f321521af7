/* menus.h: the main menu, the context menu and the list of recent traces, made from viewer/actions.h.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_MENUS_H
#define WEFT_GTK_MENUS_H

#include "window.h"

/* Makes the menus again, for the counters of another trace. */
void menus_update(WeftWindow *window);

/* Brings the switches of the counters up to date. */
void menus_show_metrics(WeftWindow *window);

/* Opens the context menu at a place of the canvas. */
void menus_popup(WeftWindow *window, double x, double y);

/* The first `most` keys of an action as GTK has them, separated by spaces; to be freed. */
char *menus_accelerators(enum weft_action action, int most);

#endif
