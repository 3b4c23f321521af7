/* finding_list.h: what went wrong, as a list that leads there.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_FINDING_LIST_H
#define WEFT_GTK_FINDING_LIST_H

#include <adwaita.h>

#include "viewer/findings.h"

#define WEFT_TYPE_FINDING_LIST (weft_finding_list_get_type())
G_DECLARE_FINAL_TYPE(WeftFindingList, weft_finding_list, WEFT, FINDING_LIST, AdwBin)

/* Shows what was found in the trace of a viewer; NULL: it is still looked for, or there is no trace.  Both stay the caller's, who
 * says so before they end.  Whoever is led somewhere hears "went": the viewer shows something else. */
void weft_finding_list_show(WeftFindingList *list, struct weft_viewer *viewer, const struct weft_findings *findings);

/* Shows above them why a promise is as it is; the answer is now the list's.  NULL: nothing is asked any more. */
void weft_finding_list_answer(WeftFindingList *list, struct weft_findings *answer);

/* Puts the keyboard on the first of them, if there is any. */
void weft_finding_list_focus(WeftFindingList *list);

/* All that it says, a line each, for tests; to be freed. */
char *weft_finding_list_text(WeftFindingList *list);

#endif
