/* explainer.h: answers a question of a viewer in an OS thread of its own, since a large trace takes long.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_EXPLAINER_H
#define WEFT_GTK_EXPLAINER_H

#include <glib.h>

#include "viewer/findings.h"

struct explainer;

/* Called in the main loop, unless the explainer was stopped before: progress() now and then; answer() once, at the end, with
 * findings that are now the callee's, or NULL if there was no memory. */
struct explainer_calls {
	void (*progress)(void *ctx, struct weft_viewer *viewer, enum weft_ask ask, unsigned percent);
	void (*done)(void *ctx, struct weft_viewer *viewer, enum weft_ask ask, struct weft_findings *findings);
};

/* Begins to answer viewer->questions[ask].  Holds the viewer, so that its owner may release it meanwhile. */
struct explainer *explainer_start(struct weft_viewer *viewer, enum weft_ask ask, const struct explainer_calls *calls, void *ctx);

/* Stops the explainer, and frees it as soon as its OS thread has ended.  Also to be called once it is done.  Accepts NULL. */
void explainer_stop(struct explainer *explainer);

#endif
