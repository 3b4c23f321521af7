/* waits.h: waits between promises at a moment, as a forest.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_WAITS_H
#define WEFT_ANALYSIS_QUERIES_WAITS_H

#include "model/model.h"

struct weft_wait {
	uint32_t from, to;
	int64_t since_ns;
	bool in_cycle; /* the chain of waits from `to` leads back to `from` */
};

/* Nodes in the order in which a tree is printed: each is followed by the promises that it waits for. */
struct weft_wait_node {
	uint32_t promise;
	uint32_t wait;    /* the wait from the parent; WEFT_NONE: a root */
	uint32_t depth;   /* roots have 0 */
	bool is_repeated; /* an earlier node has its subtree */
	bool last;        /* the last child of its parent */
};

struct weft_waits {
	struct weft_wait *waits; /* sorted by `from` */
	size_t count;
	struct weft_wait_node *nodes;
	size_t node_count;
	size_t cycles; /* number of cycles */
};

/* Lists the waits at `time_ns` since the first event.  The model must have kept its binds where they were created.  Includes
 * waits whose await the model dropped because a read followed at once.  Fails with WEFT_ENOMEM, and then leaves *out untouched.
 * Linear. */
int weft_waits_create(struct weft_waits **out, const struct weft_model *model, int64_t time_ns, struct weft_error *err);
void weft_waits_destroy(struct weft_waits *waits);

#endif
