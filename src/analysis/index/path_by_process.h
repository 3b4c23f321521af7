/* path_by_process.h: where the time of a critical path went, by process, and how long messages were in transit.
 *
 * The time in one process is exact by its own clock.  The time in transit depends on two clocks, so it is an interval.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_PATH_BY_PROCESS_H
#define WEFT_ANALYSIS_INDEX_PATH_BY_PROCESS_H

#include "analysis/index/path.h"

#define WEFT_IN_TRANSIT UINT32_MAX

struct weft_process_share {
	uint32_t part;           /* index into weft_trace_info.parts, or WEFT_IN_TRANSIT */
	int64_t low_ns, high_ns; /* lower and upper bound */
};

/* Sets *out to the shares, the largest first; the caller frees it.  A round trip has a smaller error than its two directions:
 * only the drift between the clocks.  Returns WEFT_ENOMEM on failure. */
int weft_path_by_process(
    struct weft_process_share **out, size_t *count, const struct weft_model *model, const struct weft_path *path);

/* Returns the bounds of a step's duration. */
struct weft_process_share weft_step_share(const struct weft_model *model, const struct weft_path_step *step);

/* Returns the error bound of a part's clock at a time. */
int64_t weft_clock_error_ns(const struct weft_model *model, uint32_t part, int64_t time_ns);

/* Returns the other end of a connection, if bytes came from it; else WEFT_NONE.  Logarithmic. */
uint32_t weft_other_end_of(const struct weft_model *model, uint32_t connection);

/* The same, if the other end is in another process. */
uint32_t weft_peer_of(const struct weft_model *model, uint32_t connection);

/* Return the part of a promise, and of a stream; 0 if the trace is of one process. */
uint32_t weft_part_of(const struct weft_model *model, uint32_t promise);
uint32_t weft_part_of_stream(const struct weft_model *model, size_t stream);

#endif
