/* window_private.h: between the files that make up a window.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_WINDOW_PRIVATE_H
#define WEFT_GTK_WINDOW_PRIVATE_H

#include "explainer.h"
#include "finding_list.h"
#include "panel.h"
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
	WeftPane *pane;
	GtkStack *side; /* pages of the side panel: "promise", "findings" */
	WeftPanelWidget *panel;
	WeftFindingList *findings;
	GtkWidget *findings_button;
	AdwButtonContent *findings_count;
	struct explainer *explainer; /* while it is asked why a promise is as it is */
	bool has_asked, asks_again;  /* it was asked of why_id; and is again, of the trace read anew */
	int64_t why_id;
	struct weft_viewer *why_of;
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
