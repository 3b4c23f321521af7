/* explainer.h: answers a question of a viewer in a separate OS thread, because the analysis of a large trace takes long.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_EXPLAINER_H
#define WEFT_GTK_EXPLAINER_H

#include <glib.h>

#include "viewer/findings.h"

struct explainer;

/* Callbacks that run in the main loop, unless the explainer was stopped: progress() from time to time, and done() once at the
 * end, with findings that the callee owns, or NULL without memory. */
struct explainer_calls {
	void (*progress)(void *ctx, struct weft_viewer *viewer, enum weft_ask ask, unsigned percent);
	void (*done)(void *ctx, struct weft_viewer *viewer, enum weft_ask ask, struct weft_findings *findings);
};

/* Starts to answer viewer->questions[ask].  The explainer holds the viewer, so that the viewer's owner may release it
 * meanwhile. */
struct explainer *explainer_start(struct weft_viewer *viewer, enum weft_ask ask, const struct explainer_calls *calls, void *ctx);

/* Stops the explainer, and frees it when its OS thread has ended.  This function must also be called after done().  Accepts
 * NULL. */
void explainer_stop(struct explainer *explainer);

#endif
