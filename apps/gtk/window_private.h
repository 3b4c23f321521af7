/* window_private.h: between the files that make up a window.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_WINDOW_PRIVATE_H
#define WEFT_GTK_WINDOW_PRIVATE_H

#include "row_list.h"
#include "stage.h"
#include "window.h"

struct _WeftWindow {
	AdwApplicationWindow parent_instance;
	AdwToastOverlay *toasts;
	AdwWindowTitle *heading;
	AdwSplitButton *open_button;
	GtkMenuButton *menu_button;
	GtkSearchBar *search_bar;
	GtkSearchEntry *search_entry;
	GtkLabel *search_count;
	GtkInfoBar *info_bar;
	GtkLabel *info_text;
	AdwFlap *flap;
	WeftStage *stage;
	GtkStack *side; /* pages of the side panel: "promise", "findings" */
	WeftRowList *panel, *findings;
	GtkWidget *findings_button;
	AdwButtonContent *findings_count;
	char *place; /* where to go once all is read; or NULL */
	GtkToggleButton *follow_button;
	GtkWidget *popup; /* the context menu, once it was asked for */
	bool search_is_wrong;
	char *toast, *error; /* what was said last, and what went wrong last; or NULL */
	char *notice;        /* what the bar says, even where it was closed */
};

/* Searches for what the search bar has. */
void weft__window_search(WeftWindow *window);

/* Says something that passes. */
void weft__window_toast(WeftWindow *window, const char *text);

/* The switch of a counter, made when there was none. */
GSimpleAction *weft__window_metric_action(WeftWindow *window, size_t counter);

#endif
