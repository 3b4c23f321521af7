/* workload.h: counts the requests that a program served and sent, by server and by peer, and measures how long the answers
 * took.
 *
 * A request that has a promise lasts as long as that promise.  Other requests are derived from the reads and writes of a
 * connection.  A served request lasts from the first read after an answer to the last write, and a sent request lasts from the
 * first write to the next read.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_WORKLOAD_H
#define WEFT_ANALYSIS_QUERIES_WORKLOAD_H

#include "model/model.h"

/* The requests that were served at one address, or sent to one address. */
struct weft_workload_group {
	uint32_t label; /* text of the label of the listener or of the connections; WEFT_NONE if unknown */
	bool is_served; /* true if the program served the requests, false if it sent them */
	bool has_names; /* the requests are promises */
	size_t count;   /* number of requests that were answered */
	size_t open;    /* number of requests without an answer */
	size_t connections;
	int64_t from_ns, to_ns; /* time of the first request; time of the last answer */
	int64_t p50_ns, p99_ns, max_ns, total_ns;
	uint32_t slowest; /* the request that took max_ns, or its connection */
	int64_t slowest_from_ns;
};

struct weft_workload {
	/* groups of served requests before groups of sent requests; then sorted by number of requests or by total time, the
	 * largest first */
	struct weft_workload_group *groups;
	size_t count;
	struct weft_workload_private *priv;
};

/* Groups the requests of a model.  Returns WEFT_ENOMEM on failure; the caller calls weft_workload_finish() in any case.  Takes
 * n log n time. */
int weft_workload_init(struct weft_workload *out, const struct weft_model *model);
void weft_workload_finish(struct weft_workload *workload);

#endif
