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
 * its place, and what is deeper than 64 frames in that of the 64th.
 * WEFT_ENOMEM, WEFT_EIO.  Linear in promises and links. */
int weft_folded(const struct weft_model *model, enum weft_folded_by by, weft_folded_fn *each, void *ctx, struct weft_error *err);

/* A frame below others, for all stacks that begin alike. */
struct weft_stack_sum {
	uint32_t above;         /* WEFT_NONE: it is the first, below which the outermost frames stand */
	uint32_t depth;         /* 0: the first */
	uint32_t frame;         /* its text */
	int64_t start_ns;       /* where it stands among all time: behind those beside it that have more */
	int64_t sum_ns, own_ns; /* with all below it; of stacks that end here */
	size_t promises;        /* whose time that is */
};

struct weft_stacks {
	struct weft_stack_sum *stacks; /* each behind what is above it */
	size_t count;
	uint32_t deepest;
	uint32_t *of; /* by promise: the stack that its time is told of, or WEFT_NONE */
	struct weft_stacks_private *priv;
};

/* The same as a tree, with the time of the system, in which nothing ran, or without.  *out is the caller's; untouched on failure:
 * WEFT_ENOMEM.  n log n in stacks, else as weft_folded(). */
int weft_stacks_create(
    struct weft_stacks **out, const struct weft_model *model, enum weft_folded_by by, bool with_system, struct weft_error *err);
void weft_stacks_destroy(struct weft_stacks *stacks); /* accepts NULL */

/* What a stack is called: as a frame; the first one "everything". */
const char *weft_stack_name(const struct weft_stacks *stacks, uint32_t stack);

/* Whether the time of a promise is told of in a stack or below it. */
bool weft_stack_has(const struct weft_stacks *stacks, uint32_t stack, uint32_t promise);

/* How long a promise ran, or did not. */
int64_t weft_stack_time(const struct weft_model *model, enum weft_folded_by by, uint32_t promise);

#endif
