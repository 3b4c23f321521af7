/* shares.h: where the time of a critical path went, by process, and what was on its way between them.
 *
 * What one process does is exact by its own clock.  What is on its way is known as well as both ends' clocks: it is an interval.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_SHARES_H
#define WEFT_ANALYSIS_SHARES_H

#include "analysis/path.h"

#define WEFT_ON_THE_WAY UINT32_MAX

struct weft_share {
	uint32_t part; /* of weft_trace_info.parts, or WEFT_ON_THE_WAY */
	int64_t low_ns, high_ns;
};

/* The most time first; *out is the caller's, to be freed.  There and back together are known better than each alone: by as much
 * as one clock may have gained on the other meanwhile.  WEFT_ENOMEM. */
int weft_shares(struct weft_share **out, size_t *count, const struct weft_model *model, const struct weft_path *path);

/* How long a step took, at least and at most. */
struct weft_share weft_step_share(const struct weft_model *model, const struct weft_path_step *step);

/* How far the time of a part may be from the truth then. */
int64_t weft_error_ns(const struct weft_model *model, uint32_t part, int64_t time_ns);

/* The other end of a connection, in another process, from which bytes came; or WEFT_NONE.  Logarithmic. */
uint32_t weft_peer_of(const struct weft_model *model, uint32_t connection);

/* The part that a promise is of; 0 where the trace is of one process. */
uint32_t weft_part_of(const struct weft_model *model, uint32_t promise);
uint32_t weft_part_of_stream(const struct weft_model *model, size_t stream);

#endif
