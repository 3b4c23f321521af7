/* icicle.h: an icicle graph, a flame graph upside down: sums, with their parts below them, each as wide as its share.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_ICICLE_H
#define WEFT_DRAW_ICICLE_H

#include "draw/draw.h"

#define WEFT_ICICLE_ROW_PX 18.0

struct weft_icicle_node {
	uint32_t depth;           /* depth of the node; 0 for the first node, which is above all others */
	int64_t start_ns, sum_ns; /* start and length of the node, within the interval of the node above */
	int64_t own_ns;           /* part of the node's sum that is in no node below */
	const char *name;         /* any bytes */
	int change;               /* if graphs are compared: percentage points by which the node's share is larger here */
};

struct weft_icicle {
	weft_measure_fn *measure; /* as in weft_draw_options */
	void *measure_ctx;
	size_t count; /* of nodes */
	struct weft_icicle_node (*node)(void *ctx, size_t node);
	void *ctx;
	size_t root;       /* index of the node that takes the full width, as do the nodes above it */
	uint32_t deepest;  /* maximum depth of all nodes */
	size_t marked;     /* index of the node with an outline; SIZE_MAX: none */
	bool compares;     /* whether nodes are red if their share is larger here than in another graph, and blue if smaller */
	bool runs;         /* whether the sums are running time, and not waiting time */
	const char *title; /* text for the first node, in valid UTF-8 */
};

/* Returns the height of the graph in px, which is at most available_px but at least two rows. */
double weft_icicle_px(const struct weft_icicle *icicle, double available_px);

/* Draws the icicle graph into a list; nodes that share a pixel form one strip.  On failure (WEFT_ENOMEM) the draw list is empty.
 * Linear in nodes. */
int weft_icicle_draw(
    struct weft_draw_list *list, double width_px, double height_px, const struct weft_icicle *icicle, struct weft_error *err);

/* Increases the height of the frame in the list by height_px, and draws the icicle graph in that space. */
int weft_icicle_append(struct weft_draw_list *list, double height_px, const struct weft_icicle *icicle, struct weft_error *err);

/* Returns the node at a point, or SIZE_MAX. */
size_t weft_icicle_hit(const struct weft_icicle *icicle, double width_px, double height_px, double x_px, double y_px);

#endif
