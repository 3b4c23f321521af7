/* pane.h: the traces of a window: read, and shown one above the other; or why they are not.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_PANE_H
#define WEFT_GTK_PANE_H

#include "canvas.h"
#include "viewer/findings.h"

#define WEFT_TYPE_PANE (weft_pane_get_type())
G_DECLARE_FINAL_TYPE(WeftPane, weft_pane, WEFT, PANE, AdwBin)

/* Reads what `path` names, "-" for standard input, and shows it below what is there.  Emits "loaded" when it is there, or
 * "failed" with why not, "leaving" before a viewer ends, and "changed" as its canvas does. */
void weft_pane_add(WeftPane *pane, const char *path);

/* Reads all again, and shows the same part of them; not standard input, which has been read.  What cannot be read any more stays
 * as it was.  Where nothing could be read, that is tried again, as it is by itself
 * when it changes. */
void weft_pane_reload(WeftPane *pane);
bool weft_pane_can_reload(WeftPane *pane);

/* Whether a trace that changes is read again by itself; it is if it was being recorded when it was opened.  Emits "live" when one
 * of the traces is recorded or has changed, or no longer. */
void weft_pane_set_follow(WeftPane *pane, bool follow);
bool weft_pane_follows(WeftPane *pane);
bool weft_pane_is_live(WeftPane *pane);

/* The path of the trace at a place from the top, or of the first that is being read or could not be; NULL if there is none. */
const char *weft_pane_path(WeftPane *pane, size_t index);

struct weft_compare *weft_pane_viewers(WeftPane *pane);
struct weft_viewer *weft_pane_viewer(WeftPane *pane); /* the active one; NULL: none was read yet, or could be */
WeftCanvas *weft_pane_canvas(WeftPane *pane);
bool weft_pane_is_loading(WeftPane *pane);
unsigned weft_pane_loads(WeftPane *pane); /* how often something was read to its end */

/* What went wrong in the trace at a place from the top, once that is known: then "explained" is emitted.  NULL until then; it
 * lives until "leaving" or the next "explained". */
const struct weft_findings *weft_pane_findings(WeftPane *pane, size_t index);

/* "empty", "blank", "loading", "error", "view" */
const char *weft_pane_page(WeftPane *pane);

/* Stops reading and lets go of all traces: its window closes. */
void weft_pane_finish(WeftPane *pane);

/* Something was done with the viewers. */
void weft_pane_update(WeftPane *pane);

/* Searches for a text in steps between which the window lives.  Returns false with what is wrong with the text. */
bool weft_pane_search(WeftPane *pane, const char *text, struct weft_error *err);

#endif
