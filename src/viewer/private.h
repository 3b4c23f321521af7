/* private.h: between the files of viewer/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_PRIVATE_H
#define WEFT_VIEWER_PRIVATE_H

#include "viewer/viewer.h"

void weft__viewer_changed(struct weft_viewer *viewer, unsigned changes);

/* Whether a number is a promise that can be selected. */
static inline bool weft__viewer_has(const struct weft_viewer *viewer, uint32_t promise)
{
	return promise != WEFT_SYSTEM && promise < viewer->model->promise_count;
}

#endif
