/* stage.h: the traces of a window, one above the other; or a page that says why there are none.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_STAGE_H
#define WEFT_GTK_STAGE_H

#include "canvas.h"
#include "viewer/compare.h"

#define WEFT_TYPE_STAGE (weft_stage_get_type())
G_DECLARE_FINAL_TYPE(WeftStage, weft_stage, WEFT, STAGE, AdwBin)

/* Reads the trace that `paths` name (loader.h), and shows it below the others.  Emits "loaded" when it is shown, or "failed"
 * with the reason, and "changed" as the canvas does. */
void weft_stage_add(WeftStage *stage, const char *const *paths);

/* Reads all traces again but standard input, and shows the same part of them.  A trace that cannot be read any more stays as it
 * was. If no trace could be read, the last one is tried again; that also happens by itself when it changes. */
void weft_stage_reload(WeftStage *stage);
bool weft_stage_can_reload(WeftStage *stage);

/* Sets whether traces that change are read again by themselves.  At first they are if one was being recorded when it was opened.
 * Emits "live" when weft_stage_is_live() changes: whether one of the traces is being recorded or has changed. */
void weft_stage_set_follow(WeftStage *stage, bool follow);
bool weft_stage_follows(WeftStage *stage);
bool weft_stage_is_live(WeftStage *stage);

/* The paths of the trace at a place, from the top; behind the last one, of the trace that is being read or could not be read; or
 * NULL. */
const char *const *weft_stage_paths(WeftStage *stage, size_t index);

struct weft_compare *weft_stage_viewers(WeftStage *stage);
struct weft_viewer *weft_stage_viewer(WeftStage *stage); /* the active one, or NULL */
WeftCanvas *weft_stage_canvas(WeftStage *stage);
bool weft_stage_is_loading(WeftStage *stage);
unsigned weft_stage_loads(WeftStage *stage); /* how many times reading a trace has ended */

/* "empty", "blank", "loading", "error", "view" */
const char *weft_stage_page(WeftStage *stage);

/* Stops reading and releases all traces; to be called when the window closes. */
void weft_stage_finish(WeftStage *stage);

/* To be called when something was done with the viewers. */
void weft_stage_update(WeftStage *stage);

/* Begins a search, whose steps run when the window has nothing else to do.  False: `err` says what is wrong with the text. */
bool weft_stage_search(WeftStage *stage, const char *text, struct weft_error *err);

#endif
