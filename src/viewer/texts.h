/* texts.h: many small texts in one block.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_TEXTS_H
#define WEFT_VIEWER_TEXTS_H

#include <stdint.h>

#include "base/vec.h"

/* Texts go by their place until all are there, since the block moves; a zeroed one is empty and has "" at 0 once something is
 * added. */
struct weft__texts {
	WEFT_VEC(char) bytes;
	bool failed; /* out of memory: nothing more is added */
};

void weft__texts_clear(struct weft__texts *texts);

/* Adds a text, cut at 600 bytes, and returns its place. */
__attribute__((format(printf, 2, 3))) size_t weft__texts_add(struct weft__texts *texts, const char *format, ...);

/* "1,234,567". */
const char *weft__thousands(char buf[28], uint64_t number);

#endif
