/* explainer.h: asks what went wrong in an OS thread of its own: the answer for a large trace takes long.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_EXPLAINER_H
#define WEFT_GTK_EXPLAINER_H

#include <glib.h>

#include "viewer/findings.h"

struct explainer;

/* Called in the main loop, once, unless the explainer was stopped before: with findings that are now the callee's; NULL: there
 * was no memory. */
typedef void explainer_done(void *ctx, struct weft_findings *findings);

/* Begins to explain the trace of a viewer, or with `promise` other than WEFT_NONE only that.  The viewer may be released
 * meanwhile. */
struct explainer *explainer_start(struct weft_viewer *viewer, uint32_t promise, explainer_done *done, void *ctx);

/* Forgets the explainer, which must not be used any more.  Also to be called once it is done.  Accepts NULL. */
void explainer_stop(struct explainer *explainer);

#endif
