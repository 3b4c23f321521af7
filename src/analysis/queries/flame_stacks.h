/* flame_stacks.h: where time went, as the stacks that flame graphs are drawn from.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_FLAME_STACKS_H
#define WEFT_ANALYSIS_QUERIES_FLAME_STACKS_H

#include "model/model.h"

enum weft_folded_by {
	WEFT_FOLDED_BY_RUN,     /* a stack is a promise below its creators; its time is the time that the promise ran */
	WEFT_FOLDED_BY_WAIT,    /* a stack is a promise that waits for no other, below its waiters; its time is the time that the
				  promise did not run.  A lock, a condition or a pool never ends: its time is each waiter's wait */
	WEFT_FOLDED_BY_FUNCTION /* a stack is a promise that ran for long, and the functions in which its thread was sampled
				   meanwhile; its time is
				    the time since the sample before */
};

/* Receives the frames of a stack, the outermost first, and its total time; a non-zero result stops with WEFT_EIO.  Texts are
 * valid UTF-8 in one line without semicolons; numbers and addresses in them are "*", so that stacks of one type are one. */
typedef int weft_folded_fn(void *ctx, const char *const *frames, size_t count, int64_t sum_ns);

/* Calls the function once for each stack with any time, in the order of the promises.  A promise that was created by one of its
 * own type counts for that one, and frames deeper than 64 count for the 64th.  Returns WEFT_ENOMEM or WEFT_EIO on failure.
 * Near-linear. */
int weft_folded(const struct weft_model *model, enum weft_folded_by by, weft_folded_fn *each, void *ctx, struct weft_error *err);

/* A node of the tree of stacks: a frame below others, shared by all stacks that start with the same frames. */
struct weft_stack_sum {
	uint32_t above;         /* the parent; WEFT_NONE: the root, above the outermost frames */
	uint32_t depth;         /* 0: the root */
	uint32_t frame;         /* text of the frame */
	int64_t start_ns;       /* position in the total time: after siblings with more time */
	int64_t sum_ns, own_ns; /* time with all nodes below; time of stacks that end here */
	size_t promises;        /* promises that have that time */
};

struct weft_stacks {
	struct weft_stack_sum *stacks; /* each after its parent */
	size_t count;
	uint32_t deepest;
	uint32_t *of; /* by promise: the stack that has its time, for a lock the last such stack; or WEFT_NONE */
	struct weft_stacks_private *priv;
};

/* Computes the same as a tree, with or without the time of the system, in which no promise ran.  The caller owns *out, which is
 * untouched on failure: WEFT_ENOMEM.  n log n in stacks, otherwise as weft_folded(). */
int weft_stacks_create(
    struct weft_stacks **out, const struct weft_model *model, enum weft_folded_by by, bool with_system, struct weft_error *err);
void weft_stacks_destroy(struct weft_stacks *stacks); /* accepts NULL */

/* Returns the name of a stack: its frame; "everything" for the root. */
const char *weft_stack_name(const struct weft_stacks *stacks, uint32_t stack);

/* Returns whether a stack, or a node below it, has the time of a promise. */
bool weft_stack_contains(const struct weft_stacks *stacks, uint32_t stack, uint32_t promise);

/* Returns how long a promise ran or, for stacks by wait, was waiting or ready (account.h), without its waits for locks.  For a
 * lock it is the sum of all waits for it. */
int64_t weft_stack_time(const struct weft_stacks *stacks, uint32_t promise);

#endif
