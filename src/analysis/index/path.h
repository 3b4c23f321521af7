/* path.h: the critical path to a promise's end: the promise could have ended sooner only if one of these steps had been shorter.
 *
 * The search goes backwards from the end.  It asks which promise resolved this one, why that promise ran then, what it waited
 * for, and which promise created its input, until it reaches the creation of the first promise.  The account of a
 * step's promise (account.h) decides whether it waited, was ready or ran.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_PATH_H
#define WEFT_ANALYSIS_INDEX_PATH_H

#include "analysis/index/account.h"

struct weft_path_step {
	int64_t start_ns, end_ns;
	uint32_t promise;
	/* Promise that ran longest meanwhile, or WEFT_NONE.  Set in a step WEFT_STEP_READY, and in a step WEFT_STEP_WAITING for
	 * an external event that the thread could not see earlier, because it ran this promise. */
	uint32_t delayed_by;
	uint32_t lock;       /* lock that the path waits for, while its holder does the step; or WEFT_NONE */
	uint32_t holder;     /* holder of the lock, or WEFT_NONE */
	uint32_t sent_by;    /* promise of another process whose message was in transit during the step; or WEFT_NONE */
	uint32_t connection; /* connection whose peer the step waits for, from a write on; or WEFT_NONE */
	int64_t asleep_ns;   /* in a step WEFT_STEP_READY: time in which the promise's thread slept */
	enum weft_step_kind kind;
	bool is_behind_more; /* in a step WEFT_STEP_WAITING: `delayed_by` ran for at most half of the time in which others ran */
	bool is_asked;       /* for `connection`: the peer owes an answer; false: it has started the answer, and owes the rest */
};

/* The steps cover the time from the promise's creation to its end without gap or overlap. */
struct weft_path {
	struct weft_path_step *steps; /* in time order */
	size_t count;
	int64_t total_ns[WEFT_STEP_KINDS]; /* of the steps */
	struct weft_state_times own;       /* of the promise itself: what stats says, too */
};

/* Finds the critical path of a promise; free it by weft_path_destroy().  In a simplified model the path of a bind begins when the
 * bind was woken.  Fails with WEFT_ENOTFOUND (no such promise, or it has not ended) or WEFT_ENOMEM, and then leaves *out
 * untouched. Linear. */
int weft_path_create(struct weft_path **out, const struct weft_model *model, uint32_t promise, struct weft_error *err);
/* The same with an existing index, which must have both link lists. */
int weft_path_create_with_index(
    struct weft_path **out, const struct weft_link_index *link_index, uint32_t promise, struct weft_error *err);
/* Finds the path from from_ns to an action of a promise at to_ns, such as a write; the promise may be pending.  Fails with
 * WEFT_ENOMEM. */
int weft_path_create_to_action(struct weft_path **out, const struct weft_link_index *link_index, uint32_t promise,
    int64_t from_ns, int64_t to_ns, struct weft_error *err);
void weft_path_destroy(struct weft_path *path);

/* Returns the cause of a step's duration: the holder of the lock, the promise that ran meanwhile, the connection, or the promise
 * itself; may be WEFT_SYSTEM. */
uint32_t weft_step_cause(const struct weft_path_step *step);

/* Time that the critical paths of several promises spent on one type of promise in one kind of step. */
struct weft_blame {
	enum weft_step_kind kind;
	uint32_t promise;       /* one promise of the type that is blamed; for WEFT_STEP_READY one that was ready */
	int64_t sum_ns, off_ns; /* off_ns: part of WEFT_STEP_RUNNING that was off CPU; 0 if unknown */
	size_t paths;           /* how many paths have such a step */
	size_t last;            /* used while counting: the number of the last such path, from 1 */
};

struct weft_blames {
	struct weft_blame *blames; /* the most time first */
	size_t count;
	size_t promises; /* how many promises have the label and have ended */
	int64_t sum_ns;  /* total time from their creation to their end, which is the sum of the blames */
};

/* Sums the critical paths of all ended promises whose first label is `label`.  Requirements and failures are those of
 * weft_path_create(); WEFT_ENOTFOUND: no such promise has ended. */
int weft_blames_create(struct weft_blames **out, const struct weft_model *model, struct weft_str label, struct weft_error *err);
void weft_blames_destroy(struct weft_blames *blames);

#endif
