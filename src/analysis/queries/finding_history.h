/* finding_history.h: keeps the findings of a followed trace listed after their events have left the window (model/follower.h).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_FINDING_HISTORY_H
#define WEFT_ANALYSIS_QUERIES_FINDING_HISTORY_H

#include "analysis/findings/explain.h"

struct weft_finding_history;

struct weft_finding_history *weft_finding_history_create(void);          /* NULL: no memory */
void weft_finding_history_destroy(struct weft_finding_history *history); /* accepts NULL */

/* Sets *out to the findings of a model and the kept findings of earlier models, with promises and times of this model.  A
 * promise that this model does not have becomes WEFT_SYSTEM.  A finding about a lasting state, such as a hang, is kept only if
 * just a model of the whole trace can find it (is_whole).
 *
 * The caller owns *out.  WEFT_ENOMEM: *out is untouched.  At most the newest 256 findings are kept. */
int weft_finding_history_update(struct weft_finding_history *history, struct weft_findings **out, const struct weft_findings *now,
    const struct weft_model *model, bool is_whole);

#endif
