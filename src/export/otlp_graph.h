/* otlp_graph.h: chooses the promises that become spans, and computes their ids.  Private to src/export.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_OTLP_GRAPH_H
#define WEFT_EXPORT_OTLP_GRAPH_H

#include "export/otlp.h"

/* All arrays are by promise, or by link. */
struct weft__otlp_graph {
	const struct weft_model *model;
	const struct weft_otlp_memory *memory; /* or NULL */
	bool *is_chosen;
	/* the promise that begins the trace of a promise; a request inside of another request belongs to the other's trace */
	uint32_t *root;
	uint32_t *to_begin, *by_to; /* numbers of links to a promise: by_to[to_begin[p]] to by_to[to_begin[p + 1] - 1] */
};

/* A traceparent: the id of a distributed trace, and the span outside of the recorded process that caused a request. */
struct weft__otlp_parent {
	unsigned char trace[WEFT_OTLP_TRACE_BYTES], span[WEFT_OTLP_SPAN_BYTES];
	uint32_t flags;
};

/* Returns false when out of memory; the caller finishes the graph in any case. */
bool weft__otlp_graph_create(
    struct weft__otlp_graph *graph, const struct weft_model *model, const struct weft_otlp_memory *memory);
void weft__otlp_graph_finish(struct weft__otlp_graph *graph);

/* Returns what an earlier piece knew of a promise that begins a trace in this model; NULL if it knew nothing. */
const struct weft_otlp_kept *weft__otlp_kept(const struct weft__otlp_graph *graph, uint32_t promise);

/* Returns whether a request began the trace of a promise. */
bool weft__otlp_is_in_request(const struct weft__otlp_graph *graph, uint32_t promise);

struct weft_otlp_ids weft__otlp_ids(const struct weft__otlp_graph *graph, uint32_t promise);

/* Reads the traceparent that a promise carried; returns false if it carried no valid one. */
bool weft__otlp_parse_parent(struct weft__otlp_parent *out, const struct weft_model *model, uint32_t promise);

/* Returns the process of a promise: an index of the trace's parts, or 0. */
uint32_t weft__otlp_part(const struct weft_model *model, uint32_t promise);

#endif
