/* waits.h: who waits for whom at a moment, as a forest.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_WAITS_H
#define WEFT_ANALYSIS_WAITS_H

#include "model/model.h"

struct weft_wait {
	uint32_t from, to;
	int64_t since_ns;
	bool in_cycle; /* `to` waits, in the end, for `from` */
};

/* In the order in which a tree is printed: below each what it waits for. */
struct weft_wait_node {
	uint32_t promise;
	uint32_t wait;  /* the wait that leads here from its parent, or WEFT_NONE: a root */
	uint32_t depth; /* roots have 0 */
	bool again;     /* it stands further above with all that is below it */
	bool last;      /* of those that its parent waits for */
};

struct weft_waits {
	struct weft_wait *waits; /* by the number of `from` */
	size_t count;
	struct weft_wait_node *nodes;
	size_t node_count;
	size_t cycles; /* how many groups of promises wait for each other */
};

/* At `time_ns` since the first event.  The model must have kept its binds where they were created.  A wait whose await the model
 * dropped, as it was read right after, is told of as well.  On failure *out is untouched: WEFT_ENOMEM.  Linear. */
int weft_waits_create(struct weft_waits **out, const struct weft_model *model, int64_t time_ns, struct weft_error *err);
void weft_waits_destroy(struct weft_waits *waits);

#endif
