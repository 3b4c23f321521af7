/* menus.h: the main menu, the context menu and the list of recent traces, made from viewer/actions.h.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_MENUS_H
#define WEFT_GTK_MENUS_H

#include "window.h"

/* Builds the menus again, because another trace has other counters. */
void menus_update(WeftWindow *window);

/* Updates the switches of counters in the menu. */
void menus_show_metrics(WeftWindow *window);

/* Opens the context menu at a point of the canvas. */
void menus_popup(WeftWindow *window, double x, double y);

/* Returns the first max_keys keys of an action in GTK's notation, separated by spaces; the caller frees the text. */
char *menus_accelerators(enum weft_action action, int max_keys);

#endif
