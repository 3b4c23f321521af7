/* join.h: joins several traces into one.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_JOIN_H
#define WEFT_TRACE_JOIN_H

#include "trace/trace.h"

/* Joins open traces, its parts, of processes of one or several hosts; none of them must have been read from yet.  On success the
 * new trace owns them and closes them.  On failure they stay the caller's, and *out is unchanged.  `name` is the joined trace's
 * name in messages.
 *
 * Times are by the first part's clock.  Parts that counted ticks of the same clock, in one boot of the machine, are ordered
 * exactly.  The clock of another part is aligned by the wall clock that both recorded, to a few us at best.  Clocks of several
 * machines are aligned by the connections between them (clock_sync.h), which reads all parts twice; struct weft_part has the
 * accuracy.  Events are in time order; at equal times in the order of the parts.  A part that its recorder ended, or that ended
 * with the known death of its process, has a WEFT_EVENT_END after its last event, at the time of its end.
 *
 * A promise's id is its id in its part, followed by the part's number: promise 5 of the second of eight parts is 51, of twelve
 * 501.  Streams, sites, modules and gaps are those of all parts, part by part.  Names of threads and counters, which only have a
 * meaning within a process, are prefixed with the process name, and its pid if two processes have the same name.  Dropped are:
 * ops that only a part defines, callers, and events with ids that are too large, which are noted as skipped.
 *
 * Memory: that of the parts, a batch of events, and streams, sites and modules twice.  Time: logarithmic in parts for each run of
 * events of one part.
 *
 * WEFT_EINVAL: fewer than 1 or more than 1000 parts; a part without wall-clock time; a host without a connection to the others,
 * or with contradictory messages; several parts of another host that counted different ticks.  WEFT_ETOOBIG: 2^16 threads or
 * more.  WEFT_ENOMEM, WEFT_EIO. */
int weft_trace_join(
    struct weft_trace **out, struct weft_trace *const *parts, size_t count, const char *name, struct weft_error *err);

/* Returns a part by its number in weft_trace_info.parts; NULL: the trace is not joined, or has fewer parts. */
struct weft_trace *weft_trace_part(const struct weft_trace *trace, size_t number);

/* Convert a time of a part's own clock to the joined trace, and back, as accurately as the clocks permit. */
int64_t weft_part_time(const struct weft_trace *joined, size_t number, int64_t own_ns);
int64_t weft_part_own_time(const struct weft_trace *joined, size_t number, int64_t time_ns);

/* Bounds a time of the joined trace, for an event of a part: the true time by the first part's clock is between *low and
 * *high. */
void weft_part_bounds(const struct weft_part *part, int64_t time_ns, int64_t *low, int64_t *high);

/* Returns the alignment of the clocks; NULL: all parts have one clock, or the trace is not joined.  Valid until the trace is
 * closed. */
const struct weft_clock_sync *weft_trace_clock_sync(const struct weft_trace *trace);

/* Returns true if two traces are the same, or one is a copy of the other. */
bool weft_trace_is_same(const struct weft_trace *a, const struct weft_trace *b);

#endif
