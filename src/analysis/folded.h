/* folded.h: where time went, as the stacks that flame graphs are drawn from.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_FOLDED_H
#define WEFT_ANALYSIS_FOLDED_H

#include "model/model.h"

enum weft_folded_by {
	WEFT_FOLDED_BY_RUN, /* a stack is a promise under those that created it, its time when it ran */
	WEFT_FOLDED_BY_WAIT /* a stack is a promise that waits for no other, under those that wait for it, its time when it did
			       not run */
};

/* Receives the frames of a stack, the outermost first, and its sum; a non-zero answer ends it with WEFT_EIO.  Texts are valid
 * UTF-8 in one line and have no semicolon; numbers, addresses and the like in them are "*", so that stacks of one sort are one.
 */
typedef int weft_folded_fn(void *ctx, const char *const *frames, size_t count, int64_t sum_ns);

/* Gives each stack with any time once, in the order of the promises.  A promise that is created by one of its own sort stands in
 * its place, and stacks of over 64 frames are cut at their outer end.
 * WEFT_ENOMEM, WEFT_EIO.  Linear in promises and links. */
int weft_folded(const struct weft_model *model, enum weft_folded_by by, weft_folded_fn *each, void *ctx, struct weft_error *err);

#endif
