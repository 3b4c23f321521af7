/* life.h: where each promise spent its time, as stats.h divides it.  Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_LIFE_H
#define WEFT_ANALYSIS_LIFE_H

#include "model/model.h"

struct weft__interval {
	int64_t start_ns, end_ns;
};

/* What measuring needs; 12 bytes a promise and 4 a link. */
struct weft__lives {
	const struct weft_model *model;
	int64_t *ends;        /* by promise: when what it became came to its end; INT64_MAX: not in this trace */
	uint32_t *link_begin; /* by promise: its links as `from` are links[link_begin[p]] up to links[link_begin[p + 1]] */
	uint32_t *links;      /* indices into model->links, in time order */
	struct weft__interval *ready;
	size_t ready_capacity;
};

struct weft__life {
	int64_t waiting_ns, ready_ns, running_ns;
	int64_t off_ns; /* of running_ns: without a processor; 0 where nobody knows */
};

/* False when out of memory; finish it in any case. */
bool weft__lives_begin(struct weft__lives *lives, const struct weft_model *model);
void weft__lives_finish(struct weft__lives *lives);

/* Near-linear in the links and runs of the promise; false when out of memory. */
bool weft__lives_measure(struct weft__lives *lives, uint32_t promise, struct weft__life *out);

#endif
