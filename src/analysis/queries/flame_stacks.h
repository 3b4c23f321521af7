/* flame_stacks.h: computes where time went, as the stacks from which flame graphs are drawn.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_FLAME_STACKS_H
#define WEFT_ANALYSIS_QUERIES_FLAME_STACKS_H

#include "base/duration.h"
#include "model/model.h"

enum weft_folded_by {
	WEFT_FOLDED_BY_RUN, /* a stack is a promise below its creators; its time is the time for which the promise ran */
	/* a stack is a promise that waits for no other promise, below its waiters; its time is the time in which the promise
	 * did not run.  A lock, a condition or a pool never ends: its time is the time for which promises waited for it */
	WEFT_FOLDED_BY_WAIT,
	/* a stack is a promise that ran for long, with the functions in which its thread was sampled meanwhile; its time is the
	 * time since the sample before */
	WEFT_FOLDED_BY_FUNCTION,
	/* a stack is a promise, with the functions in which it allocated memory; instead of a time it has a number of bytes */
	WEFT_FOLDED_BY_ALLOCATED,
	WEFT_FOLDED_BY_HELD, /* the same, only of memory that was not freed */
	WEFT_FOLDED_COUNT
};

/* Returns whether the stacks have numbers of bytes instead of times. */
static inline bool weft_folded_is_bytes(enum weft_folded_by by)
{
	return by == WEFT_FOLDED_BY_ALLOCATED || by == WEFT_FOLDED_BY_HELD;
}

/* Returns the word by which users choose a measure: "run", "wait", "function", "allocated", "held". */
const char *weft_folded_name(enum weft_folded_by by);

/* Formats a sum of the stacks for users, as a duration or a size; returns buf. */
const char *weft_folded_text(enum weft_folded_by by, char buf[WEFT_DURATION_BYTES], int64_t sum);

/* Finds the measure with that name; returns false if there is none. */
bool weft_folded_find(enum weft_folded_by *out, const char *name, size_t bytes);

/* Receives the frames of a stack, the outermost first, and the total time of the stack; a non-zero result makes weft_folded()
 * stop with WEFT_EIO.  Texts are valid UTF-8 in one line without semicolons; numbers and addresses in them are replaced by "*",
 * so that promises of one type have equal stacks. */
typedef int weft_folded_fn(void *ctx, const char *const *frames, size_t count, int64_t sum_ns);

/* Calls the function once for each stack that has any time, in the order of the promises.  The time of a promise whose creator
 * is of the same type counts for the creator, and the time of frames deeper than 64 counts for the 64th frame.  Returns
 * WEFT_ENOMEM or WEFT_EIO on failure.  Near-linear. */
int weft_folded(const struct weft_model *model, enum weft_folded_by by, weft_folded_fn *each, void *ctx, struct weft_error *err);

/* A node of the tree of stacks: a frame below other frames, shared by all stacks that begin with the same frames. */
struct weft_stack_sum {
	uint32_t above;         /* the parent node; WEFT_NONE for the root, which is above the outermost frames */
	uint32_t depth;         /* 0: the root */
	uint32_t frame;         /* text of the frame */
	int64_t start_ns;       /* position in the total time: behind the siblings that have more time */
	int64_t sum_ns, own_ns; /* time of the node and all nodes below it; time of the stacks that end at the node */
	size_t promises;        /* number of promises that have the time of the node */
};

struct weft_stacks {
	struct weft_stack_sum *stacks; /* each after its parent */
	size_t count;
	uint32_t deepest;
	uint32_t *of; /* by promise: the stack that has its time, or WEFT_NONE; for a lock, the last such stack */
	struct weft_stacks_private *priv;
};

/* Computes the stacks as a tree, with or without the time of the system, in which no promise ran.  The caller owns *out; on
 * failure (WEFT_ENOMEM) *out is unchanged.  Takes n log n time in the number of stacks, otherwise as much as weft_folded(). */
int weft_stacks_create(
    struct weft_stacks **out, const struct weft_model *model, enum weft_folded_by by, bool with_system, struct weft_error *err);
void weft_stacks_destroy(struct weft_stacks *stacks); /* accepts NULL */

/* Sets for each stack the time that the stack with equal frames has among other stacks; 0 if there is none.  `out_ns` has
 * stacks->count items.  Returns WEFT_ENOMEM on failure.  Linear. */
int weft_stacks_match(int64_t *out_ns, const struct weft_stacks *stacks, const struct weft_stacks *other, struct weft_error *err);

/* Returns the name of a stack, which is its innermost frame; "everything" for the root. */
const char *weft_stack_name(const struct weft_stacks *stacks, uint32_t stack);

/* Returns whether a stack, or a node below it, has the time of a promise. */
bool weft_stack_contains(const struct weft_stacks *stacks, uint32_t stack, uint32_t promise);

/* Returns how long a promise ran or, for stacks by wait, how long it was waiting or ready (account.h), without its waits for
 * locks.  Returns, for a lock, the sum of all waits for it. */
int64_t weft_stack_time(const struct weft_stacks *stacks, uint32_t promise);

#endif
