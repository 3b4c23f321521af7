/* window_private.h: declarations that the files of a window share.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_WINDOW_PRIVATE_H
#define WEFT_GTK_WINDOW_PRIVATE_H

#include "row_list.h"
#include "split.h"
#include "trace_pane.h"
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
	GtkWidget *info_bar;
	GtkRevealer *info_revealer;
	GtkWidget *info_close;
	GtkLabel *info_text;
	WeftSplit *split;
	WeftStage *stage;
	GtkStack *side; /* pages of the side panel: "summary", "promise", "findings", "types", "live" */
	GtkEditable *types_filter;
	WeftRowList *summary, *panel, *findings, *types, *live, *matches;
	GtkWidget *findings_button;
	AdwButtonContent *findings_count;
	char *place; /* place in the picture that is shown after all traces have been read; or NULL */
	GtkToggleButton *follow_button;
	GtkWidget *popup; /* context menu; NULL until the menu is first opened */
	bool search_is_wrong;
	char *toast, *error; /* last message and last error, which tests read; or NULL */
	char *notice;        /* text of the notice bar, kept even after the user closed the bar */
};

/* Searches for the text in the search bar. */
void weft__window_search(WeftWindow *window);

/* Shows a message for a moment. */
void weft__window_toast(WeftWindow *window, const char *text);

/* Returns the switch of a counter, and creates the switch if there is none. */
GSimpleAction *weft__window_metric_action(WeftWindow *window, size_t counter);

#endif
