/* path.h: finds the critical path to the end of a promise: the promise could have ended sooner only if a step of this path had
 * been shorter.
 *
 * The search goes backwards in time from the end of the promise.  The search asks which promise resolved a promise, why that
 * other promise ran then, what it waited for, and which promise created its input, until it reaches the creation of the first
 * promise.  The account of a step's promise (account.h) decides whether the promise waited, was ready or ran.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_PATH_H
#define WEFT_ANALYSIS_INDEX_PATH_H

#include "analysis/index/account.h"

struct weft_path_step {
	int64_t start_ns, end_ns;
	uint32_t promise;
	/* Promise that ran longest during the step, or WEFT_NONE.  Set in a step WEFT_STEP_READY, and in a step
	 * WEFT_STEP_WAITING for an external event that the thread could not notice earlier because it ran this promise. */
	uint32_t delayed_by;
	uint32_t lock;       /* lock for which the path waits while the lock's holder does the step; or WEFT_NONE */
	uint32_t holder;     /* holder of the lock, or WEFT_NONE */
	uint32_t sent_by;    /* promise of another process whose message was in transit during the step; or WEFT_NONE */
	uint32_t connection; /* connection for whose peer the step waits, since a write; or WEFT_NONE */
	int64_t asleep_ns;   /* time in which the promise's thread slept, in a step WEFT_STEP_READY */
	enum weft_step_kind kind;
	/* true in a step WEFT_STEP_WAITING if `delayed_by` ran for at most half of the time in which other promises ran */
	bool is_behind_more;
	/* true if the peer of `connection` owes a whole answer; false if it has begun its answer and owes the rest */
	bool is_asked;
};

/* The steps of the path cover the time from the promise's creation to its end without gap or overlap. */
struct weft_path {
	struct weft_path_step *steps; /* in time order */
	size_t count;
	int64_t total_ns[WEFT_STEP_KINDS]; /* of the steps */
	/* times that the promise itself spent in each state, the same as those of `weft stats` */
	struct weft_state_times own;
};

/* Finds the critical path of a promise; the caller frees it with weft_path_destroy().  In a simplified model the path of a bind
 * begins when the bind was woken.  Fails with WEFT_ENOTFOUND if there is no such promise or it has not ended, or with
 * WEFT_ENOMEM; then *out is unchanged. Linear. */
int weft_path_create(struct weft_path **out, const struct weft_model *model, uint32_t promise, struct weft_error *err);
/* Finds the critical path of a promise with an existing index, which must have both link lists. */
int weft_path_create_with_index(
    struct weft_path **out, const struct weft_link_index *link_index, uint32_t promise, struct weft_error *err);
/* Finds the path from from_ns to an action of a promise at to_ns, such as a write; the promise may be pending.  Fails with
 * WEFT_ENOMEM. */
int weft_path_create_to_action(struct weft_path **out, const struct weft_link_index *link_index, uint32_t promise,
    int64_t from_ns, int64_t to_ns, struct weft_error *err);
void weft_path_destroy(struct weft_path *path);

/* Returns the cause of a step's duration: the holder of the lock, the promise that ran meanwhile, the connection, or the
 * promise of the step itself; may be WEFT_SYSTEM. */
uint32_t weft_step_cause(const struct weft_path_step *step);

/* Time that the critical paths of several promises spent on one type of promise in one kind of step. */
struct weft_blame {
	enum weft_step_kind kind;
	uint32_t promise; /* one promise of the blamed type; for WEFT_STEP_READY one promise that was ready */
	/* total duration of the steps; part of it in WEFT_STEP_RUNNING in which threads were off CPU, 0 if unknown */
	int64_t sum_ns, off_ns;
	size_t paths; /* number of paths that have such a step */
	size_t last;  /* used while counting: number of the last such path, counted from 1 */
};

struct weft_blames {
	struct weft_blame *blames; /* the most time first */
	size_t count;
	size_t promises; /* number of promises that have the label and have ended */
	int64_t sum_ns;  /* total time from creation to end of these promises, which is the sum of the blames */
};

/* Sums the critical paths of all ended promises whose first label is `label`.  Has the requirements and failures of
 * weft_path_create(); returns WEFT_ENOTFOUND if no such promise has ended. */
int weft_blames_create(struct weft_blames **out, const struct weft_model *model, struct weft_str label, struct weft_error *err);
void weft_blames_destroy(struct weft_blames *blames);

#endif
