/* path_by_process.h: finds how much time of a critical path passed in each process, and how long messages were in transit.
 *
 * The time in one process is exact, because it is measured by one clock.  The time in transit is measured by two clocks, so the
 * result is an interval.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_PATH_BY_PROCESS_H
#define WEFT_ANALYSIS_INDEX_PATH_BY_PROCESS_H

#include "analysis/index/path.h"

#define WEFT_IN_TRANSIT UINT32_MAX

struct weft_process_share {
	uint32_t part;           /* index of the process in weft_trace_info.parts, or WEFT_IN_TRANSIT */
	int64_t low_ns, high_ns; /* lower and upper bound */
};

/* Sets *out to the shares of the processes, the largest first; the caller frees the array.  A round trip has a smaller error
 * than each of its two directions: only the drift between the clocks.  Returns WEFT_ENOMEM on failure. */
int weft_path_by_process(
    struct weft_process_share **out, size_t *count, const struct weft_model *model, const struct weft_path *path);

/* Returns the bounds of a step's duration. */
struct weft_process_share weft_step_share(const struct weft_model *model, const struct weft_path_step *step);

/* Returns the error bound of a part's clock at a time. */
int64_t weft_clock_error_ns(const struct weft_model *model, uint32_t part, int64_t time_ns);

/* Returns the other end of a connection, if bytes came from that end; else WEFT_NONE.  Logarithmic. */
uint32_t weft_other_end_of(const struct weft_model *model, uint32_t connection);

/* Returns the other end of a connection, if it is in another process; else WEFT_NONE. */
uint32_t weft_peer_of(const struct weft_model *model, uint32_t connection);

/* Return the part to which a promise or a stream belongs; 0 if the trace is of one process. */
uint32_t weft_part_of(const struct weft_model *model, uint32_t promise);
uint32_t weft_part_of_stream(const struct weft_model *model, size_t stream);

#endif
