/* path.h: the critical path that led to a promise's end: the promise could have ended sooner only if one of these steps had been
 * shorter.
 *
 * The path is found backwards from the end: which promise resolved this one, why did that promise run then, what had it waited
 * for, who created that, and so on, until the creation of the first promise is reached.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_PATH_H
#define WEFT_ANALYSIS_PATH_H

#include "analysis/ties.h"

/* X(NAME, "name") */
#define WEFT_STEPS(X)                                                                                                            \
	X(RUNNING, "running") /* the promise's code ran */                                                                       \
	X(READY, "ready")     /* the promise could have run, but others ran */                                                   \
	X(WAITING, "waiting") /* the promise had yet to be ended from outside; of the system: the trace does not tell */

enum weft_step_kind {
#define WEFT_STEP_ENUM(NAME, name) WEFT_STEP_##NAME,
	WEFT_STEPS(WEFT_STEP_ENUM)
#undef WEFT_STEP_ENUM
	    WEFT_STEP_KINDS
};

struct weft_path_step {
	int64_t start_ns, end_ns;
	uint32_t promise;
	uint32_t
	    behind;    /* who ran longest meanwhile, or WEFT_NONE: in a step WEFT_STEP_READY; in a step WEFT_STEP_WAITING of what
			  comes from outside, where it had the OS thread all the time, so that nobody could hear of it sooner */
	uint32_t lock; /* what is done meanwhile is done by who holds this lock, which is waited for; or WEFT_NONE */
	uint32_t holder; /* of the lock, or WEFT_NONE */
	uint32_t
	    sent_by; /* WEFT_STEP_WAITING for what this promise of another process sent, which was on its way; or WEFT_NONE */
	uint32_t connection; /* WEFT_STEP_WAITING for its other end, since something was written to it; or WEFT_NONE */
	enum weft_step_kind kind;
	bool is_asked; /* of connection: its other end was to answer; otherwise it had an answer, and was to go on */
};

/* The steps cover the time from the promise's creation to its end without gap or overlap. */
struct weft_path {
	struct weft_path_step *steps; /* in time order */
	size_t count;
	int64_t total_ns[WEFT_STEP_KINDS];
};

/* Of a bind of a simplified model the path begins when the bind was woken.  On failure *out is untouched: WEFT_ENOTFOUND (there
 * is no such promise, or it has not ended), WEFT_ENOMEM.  Linear. */
int weft_path_create(struct weft_path **out, const struct weft_model *model, uint32_t promise, struct weft_error *err);
/* The same with ties, of both lists, that are known already. */
int weft_path_create_with(struct weft_path **out, const struct weft_ties *ties, uint32_t promise, struct weft_error *err);
/* The path to what a promise did at a time, as a write, from another time on, whether it has ended or not.  WEFT_ENOMEM. */
int weft_path_create_to_deed(struct weft_path **out, const struct weft_ties *ties, uint32_t promise, int64_t from_ns,
    int64_t to_ns, struct weft_error *err);
void weft_path_destroy(struct weft_path *path);
const char *weft_step_name(enum weft_step_kind kind);

/* Who made the step last: the holder of the lock, who ran meanwhile, the connection, or the promise itself; may be WEFT_SYSTEM.
 */
uint32_t weft_step_cause(const struct weft_path_step *step);

/* What the critical paths of several promises have in common. */
struct weft_blame {
	enum weft_step_kind kind;
	uint32_t promise;       /* one promise of the sort that is blamed; for WEFT_STEP_READY one that was queued */
	int64_t sum_ns, off_ns; /* off_ns: of WEFT_STEP_RUNNING, without a processor; 0 where nobody knows */
	size_t paths;           /* how many paths have such a step */
	size_t last;            /* used while counting: the number of the last such path, from 1 */
};

struct weft_blames {
	struct weft_blame *blames; /* the most time first */
	size_t count;
	size_t promises; /* how many promises have the label and have ended */
	int64_t sum_ns;  /* how long they lived in all, which is the sum of the blames */
};

/* Tells where the time of all promises went whose first label is `label`.  Model and failures are those of weft_path_create();
 * WEFT_ENOTFOUND: no such promise has ended. */
int weft_blames_create(struct weft_blames **out, const struct weft_model *model, struct weft_str label, struct weft_error *err);
void weft_blames_destroy(struct weft_blames *blames);

#endif
