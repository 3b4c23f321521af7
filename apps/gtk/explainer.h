/* explainer.h: asks a question of a viewer's in an OS thread of its own: the answer for a large trace takes long.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_GTK_EXPLAINER_H
#define WEFT_GTK_EXPLAINER_H

#include <glib.h>

#include "viewer/findings.h"

struct explainer;

/* Called in the main loop, unless the explainer was stopped before: now and then with how far it is; once, at the end, with
 * findings that are now the callee's; NULL: there was no memory. */
struct explainer_calls {
	void (*progress)(void *ctx, struct weft_viewer *viewer, enum weft_ask ask, unsigned percent);
	void (*done)(void *ctx, struct weft_viewer *viewer, enum weft_ask ask, struct weft_findings *findings);
};

/* Begins to ask viewer->questions[ask].  The viewer may be released meanwhile. */
struct explainer *explainer_start(struct weft_viewer *viewer, enum weft_ask ask, const struct explainer_calls *calls, void *ctx);

/* Calls off what is still asked, and forgets the explainer, which must not be used any more.  Also to be called once it is done.
 * Accepts NULL. */
void explainer_stop(struct explainer *explainer);

#endif
