/* kept.h: findings of a program that is followed: what went wrong stays listed when the window has gone on (model/follower.h).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_KEPT_H
#define WEFT_ANALYSIS_KEPT_H

#include "analysis/explain.h"

struct weft_kept;

struct weft_kept *weft_kept_create(void);       /* NULL: there is no memory */
void weft_kept_destroy(struct weft_kept *kept); /* accepts NULL */

/* The findings of a model, and those of earlier ones that are over and stay true, with the promises and times of this model; whom
 * it does not know any more is WEFT_SYSTEM.  What lasts, as a hang, stays if only a model of all can find it: is_whole.
 *
 * *out is the caller's.  WEFT_ENOMEM: *out is untouched.  At most 256 are kept, the newest. */
int weft_kept_take(struct weft_kept *kept, struct weft_findings **out, const struct weft_findings *now,
    const struct weft_model *model, bool is_whole);

#endif
