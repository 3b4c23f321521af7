/* private.h: between the files of viewer/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_PRIVATE_H
#define WEFT_VIEWER_PRIVATE_H

#include "viewer/viewer.h"

void weft__viewer_changed(struct weft_viewer *viewer, unsigned changes);

/* Saturating. */
static inline int64_t weft__add_ns(int64_t a, int64_t b)
{
	int64_t sum;
	return !__builtin_add_overflow(a, b, &sum) ? sum : b < 0 ? INT64_MIN : INT64_MAX;
}

/* Whether a number is a promise that can be selected. */
static inline bool weft__viewer_has(const struct weft_viewer *viewer, uint32_t promise)
{
	return promise != WEFT_SYSTEM && promise < viewer->model->promise_count;
}

#endif
