/* path.h: the critical path that led to a promise's end: whatever would have had to be shorter for it to end sooner.
 *
 * It is walked backwards from the end: who resolved it, why that ran then, what it had waited for, who created that, and so on,
 * until the promise's own creation is reached.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_PATH_H
#define WEFT_ANALYSIS_PATH_H

#include "analysis/ties.h"

/* X(NAME, "name") */
#define WEFT_STEPS(X)                                                                                                            \
	X(RUNNING, "running") /* the promise's code ran */                                                                       \
	X(READY, "ready")     /* what the promise waits for had ended, or it was interrupted; others ran */                      \
	X(WAITING, "waiting") /* for the promise, which was ended from outside; the system: for what is not known */

enum weft_step_kind {
#define WEFT_STEP_ENUM(NAME, name) WEFT_STEP_##NAME,
	WEFT_STEPS(WEFT_STEP_ENUM)
#undef WEFT_STEP_ENUM
	    WEFT_STEP_KINDS
};

struct weft_step {
	int64_t start_ns, end_ns;
	uint32_t promise;
	uint32_t behind; /* of WEFT_STEP_READY: who ran longest meanwhile, or WEFT_NONE */
	enum weft_step_kind kind;
};

/* The steps cover the time from the promise's creation to its end without gap or overlap. */
struct weft_path {
	struct weft_step *steps; /* in time order */
	size_t count;
	int64_t total_ns[WEFT_STEP_KINDS];
};

/* The model must have kept its binds where they were created.  WEFT_ENOTFOUND: no such promise, or it has not ended; WEFT_ENOMEM.
 * *out is untouched then.  Linear. */
int weft_path_create(struct weft_path **out, const struct weft_model *model, uint32_t promise, struct weft_error *err);
void weft_path_destroy(struct weft_path *path);
const char *weft_step_name(enum weft_step_kind kind);

/* What the critical paths of several promises have in common. */
struct weft_blame {
	enum weft_step_kind kind;
	uint32_t promise; /* one of the sort that is blamed; of WEFT_STEP_READY the one that was queued */
	int64_t sum_ns;
	size_t paths; /* on how many it was */
	size_t last;  /* while counting: the last of these, + 1 */
};

struct weft_blames {
	struct weft_blame *blames; /* the most time first */
	size_t count;
	size_t promises; /* whose label it is, and which have ended */
	int64_t sum_ns;  /* of their lives: the sum of the blames */
};

/* Of all promises whose first label is `label`: where their time
 * went.  As weft_path_create(); WEFT_ENOTFOUND: there is none that has ended. */
int weft_blames_create(struct weft_blames **out, const struct weft_model *model, struct weft_str label, struct weft_error *err);
void weft_blames_destroy(struct weft_blames *blames);

#endif
