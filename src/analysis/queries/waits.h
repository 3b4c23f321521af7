/* waits.h: lists the waits between promises at a moment, as a forest.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_WAITS_H
#define WEFT_ANALYSIS_QUERIES_WAITS_H

#include "model/model.h"

struct weft_wait {
	uint32_t from, to;
	int64_t since_ns;
	bool in_cycle; /* true if the chain of waits from `to` leads back to `from` */
};

/* Nodes are in the order in which a tree is printed: each is followed by the promises for which it waits. */
struct weft_wait_node {
	uint32_t promise;
	uint32_t wait;    /* wait of the parent for this node; WEFT_NONE for a root */
	uint32_t depth;   /* roots have 0 */
	bool is_repeated; /* true if an earlier node has the subtree of this promise */
	bool last;        /* true for the last child of its parent */
};

struct weft_waits {
	struct weft_wait *waits; /* sorted by `from` */
	size_t count;
	struct weft_wait_node *nodes;
	size_t node_count;
	size_t cycles; /* number of cycles */
};

/* Lists the waits at `time_ns` since the first event.  The model must have been built with binds at the time of their creation.
 * Includes the waits whose await the model dropped because a read followed at once.  Fails with WEFT_ENOMEM; then *out is
 * unchanged.  Linear. */
int weft_waits_create(struct weft_waits **out, const struct weft_model *model, int64_t time_ns, struct weft_error *err);
void weft_waits_destroy(struct weft_waits *waits);

#endif
