/* trace_pane.h: shows the traces of a window one above the other, or a page that explains why there are none.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_TRACE_PANE_H
#define WEFT_GTK_TRACE_PANE_H

#include "canvas.h"
#include "viewer/compare.h"

#define WEFT_TYPE_STAGE (weft_stage_get_type())
G_DECLARE_FINAL_TYPE(WeftStage, weft_stage, WEFT, STAGE, AdwBin)

/* Reads the trace at `paths` (loader.h) and shows it below the other traces.  The pane emits "loaded" when the trace is shown,
 * or "failed" with the reason, and "changed" as the canvas does. */
void weft_stage_add(WeftStage *stage, const char *const *paths);

/* Reads all traces again, except standard input, and shows the same part of the traces as before.  A trace that can no longer be
 * read keeps its old picture.  If no trace could be read, the last one is tried again; that also happens automatically when the
 * trace changes. */
void weft_stage_reload(WeftStage *stage);
bool weft_stage_can_reload(WeftStage *stage);

/* Sets whether traces that change are read again automatically.  The default is true if one of the traces was being recorded
 * when it was opened.  The pane emits "live" when weft_stage_is_live() changes, which returns whether one of the traces is being
 * recorded or has changed. */
void weft_stage_set_follow(WeftStage *stage, bool follow);
bool weft_stage_follows(WeftStage *stage);
bool weft_stage_is_live(WeftStage *stage);

/* Returns the paths of the trace at an index, from the top; after the last trace, the paths of the trace that is being read or
 * could not be read; or NULL. */
const char *const *weft_stage_paths(WeftStage *stage, size_t index);

struct weft_compare *weft_stage_viewers(WeftStage *stage);
struct weft_viewer *weft_stage_viewer(WeftStage *stage); /* returns the active viewer, or NULL */
WeftCanvas *weft_stage_canvas(WeftStage *stage);
bool weft_stage_is_loading(WeftStage *stage);
unsigned weft_stage_loads(WeftStage *stage); /* number of finished reads */

/* Returns the name of the page that is shown: "empty", "blank", "loading", "error" or "view". */
const char *weft_stage_page(WeftStage *stage);

/* Stops reading and releases all traces.  Call this function when the window closes. */
void weft_stage_finish(WeftStage *stage);

/* Updates the pane; call it after viewers were changed. */
void weft_stage_update(WeftStage *stage);

/* Starts a search, whose steps run when the window is idle.  Returns false and sets `err` if the searched text is invalid. */
bool weft_stage_search(WeftStage *stage, const char *text, struct weft_error *err);

#endif
