/* window_private.h: shared by the files that make up a window.  SPDX-License-Identifier: ISC */
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
	GtkStack *side; /* pages of the side panel: "promise", "findings", "sorts", "live" */
	WeftRowList *panel, *findings, *sorts, *live, *matches;
	GtkWidget *findings_button;
	AdwButtonContent *findings_count;
	char *place; /* where to go once all traces are read; or NULL */
	GtkToggleButton *follow_button;
	GtkWidget *popup; /* the context menu, or NULL until it is first opened */
	bool search_is_wrong;
	char *toast, *error; /* the last message and the last error, for tests; or NULL */
	char *notice;        /* the text of the bar, also after the user closed the bar */
};

/* Searches for the text in the search bar. */
void weft__window_search(WeftWindow *window);

/* Shows a message for a moment. */
void weft__window_toast(WeftWindow *window, const char *text);

/* Returns the switch of a counter, and makes it if there is none. */
GSimpleAction *weft__window_metric_action(WeftWindow *window, size_t counter);

#endif
