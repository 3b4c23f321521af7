/* stage.h: the traces of a window: read, and shown one above the other; or why they are not.  SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_STAGE_H
#define WEFT_GTK_STAGE_H

#include "canvas.h"
#include "viewer/compare.h"

#define WEFT_TYPE_STAGE (weft_stage_get_type())
G_DECLARE_FINAL_TYPE(WeftStage, weft_stage, WEFT, STAGE, AdwBin)

/* Reads what `path` names, "-" for standard input, and shows it below what is there.  Emits "loaded" when it is there, or
 * "failed" with why not, and "changed" as its canvas does. */
void weft_stage_add(WeftStage *stage, const char *path);

/* Reads all again, and shows the same part of them; not standard input, which has been read.  What cannot be read any more stays
 * as it was.  Where nothing could be read, that is tried again, as it is by itself
 * when it changes. */
void weft_stage_reload(WeftStage *stage);
bool weft_stage_can_reload(WeftStage *stage);

/* Whether a trace that changes is read again by itself; it is if it was being recorded when it was opened.  Emits "live" when one
 * of the traces is recorded or has changed, or no longer. */
void weft_stage_set_follow(WeftStage *stage, bool follow);
bool weft_stage_follows(WeftStage *stage);
bool weft_stage_is_live(WeftStage *stage);

/* The path of the trace at a place from the top, or of the first that is being read or could not be; NULL if there is none. */
const char *weft_stage_path(WeftStage *stage, size_t index);

struct weft_compare *weft_stage_viewers(WeftStage *stage);
struct weft_viewer *weft_stage_viewer(WeftStage *stage); /* the active one; NULL: none was read yet, or could be */
WeftCanvas *weft_stage_canvas(WeftStage *stage);
bool weft_stage_is_loading(WeftStage *stage);
unsigned weft_stage_loads(WeftStage *stage); /* how often something was read to its end */

/* "empty", "blank", "loading", "error", "view" */
const char *weft_stage_page(WeftStage *stage);

/* Stops reading and lets go of all traces: its window closes. */
void weft_stage_finish(WeftStage *stage);

/* Something was done with the viewers. */
void weft_stage_update(WeftStage *stage);

/* Searches for a text in steps between which the window lives.  Returns false with what is wrong with the text. */
bool weft_stage_search(WeftStage *stage, const char *text, struct weft_error *err);

#endif
