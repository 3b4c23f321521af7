/* since.h: a trace from a moment on, as a ring would have it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_SINCE_H
#define WEFT_EXPORT_SINCE_H

#include "base/vec.h"
#include "trace/trace.h"

/* What was pending, awaited, held and counted at a moment, told as state dumps tell it. */
struct weft_state {
	WEFT_VEC(struct weft_event) events; /* each of the stream that it was told in; texts stay the trace's */
};

/* Reads the trace from where it stands up to the last event before from_ns (as weft_event.time_ns).
 *
 * *out is the caller's to free, on failure too.  WEFT_EIO, WEFT_ENOMEM.  Linear; memory for what is pending at once. */
int weft_state_before(struct weft_state *out, struct weft_trace *trace, int64_t from_ns);
void weft_state_free(struct weft_state *state);

#endif
