/* workload.h: how many requests a program served and sent, by server and by peer, and how long the answers took.
 *
 * A request that has a promise lasts as long as that promise.  Other requests are the reads and writes of a connection: a program
 * serves from its first read after an answer to its last write, and waits from its first write to its next read.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_WORKLOAD_H
#define WEFT_ANALYSIS_QUERIES_WORKLOAD_H

#include "model/model.h"

/* Requests that were served at one address, or sent to one address. */
struct weft_workload_group {
	uint32_t label; /* text of the listener or of the connections; WEFT_NONE: unknown */
	bool is_served; /* the program served them; else it sent them */
	bool has_names; /* the requests are promises */
	size_t count;   /* of the requests that were answered */
	size_t open;    /* of the requests without an answer */
	size_t connections;
	int64_t from_ns, to_ns; /* from the first request to the last answer */
	int64_t p50_ns, p99_ns, max_ns, total_ns;
	uint32_t slowest; /* the request of max_ns, or its connection */
	int64_t slowest_from_ns;
};

struct weft_workload {
	struct weft_workload_group *groups; /* served before sent; then most requests first, or the longest total time first */
	size_t count;
	struct weft_workload_private *priv;
};

/* Groups the requests of a model.  Returns WEFT_ENOMEM on failure; call weft_workload_finish() in any case.  n log n. */
int weft_workload_init(struct weft_workload *out, const struct weft_model *model);
void weft_workload_finish(struct weft_workload *workload);

#endif
