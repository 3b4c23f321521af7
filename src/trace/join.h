/* join.h: joins several traces into one trace.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_JOIN_H
#define WEFT_TRACE_JOIN_H

#include "trace/trace.h"

/* Joins open traces (the parts) of processes of one or several hosts; no event of a part may have been read yet.  On success
 * the new trace owns the parts and closes them.  On failure the caller still owns the parts, and *out is unchanged.  `name` is
 * the name of the joined trace in messages.
 *
 * Times of the joined trace are by the clock of the first part.  Parts that counted ticks of the same clock, in one boot of the
 * machine, are ordered exactly.  The clock of another part is aligned by the wall clock that both recorded, to a few us at
 * best.  The clocks of several machines are aligned by the connections between them (clock_sync.h), for which all parts are
 * read twice; struct weft_part has the accuracy.  Events are in order of time; events with equal times are in the order of the
 * parts.  A part that its recorder ended, or that ended with the known death of its process, has a WEFT_EVENT_END after its
 * last event, at the time of its end.
 *
 * The id of a promise is its id in its part, followed by the digits of the part's number: promise 5 of the second of eight
 * parts has the id 51, of twelve parts 501.  The joined trace has the streams, sites, modules and gaps of all parts, part by
 * part.  Names of threads and counters,
 *   which have a meaning only within a process, get the process name in front, with the pid if two processes have the same
 *   name.  Ops that only a part defines, callers, and events whose ids are too large are dropped; the latter are noted as
 *   skipped.
 *
 * The joined trace needs the memory of the parts, memory for a batch of events, and twice the memory of streams, sites and
 * modules.  Merging takes time logarithmic in the number of parts for each sequence of events of one part.
 *
 * Returns WEFT_EINVAL for fewer than 1 or more than 1000 parts, for a part without wall-clock time, and for several parts of
 * another host that counted different ticks.  Also returns WEFT_EINVAL for a host that has no connection to the other hosts, or
 * whose messages contradict each other.  Returns WEFT_ETOOBIG for 2^16 threads or more.  WEFT_ENOMEM, WEFT_EIO. */
int weft_trace_join(
    struct weft_trace **out, struct weft_trace *const *parts, size_t count, const char *name, struct weft_error *err);

/* Returns a part by its number in weft_trace_info.parts; NULL if the trace is not joined or has fewer parts. */
struct weft_trace *weft_trace_part(const struct weft_trace *trace, size_t number);

/* Convert a time of a part's own clock to the joined trace, and back, as accurately as the clocks permit. */
int64_t weft_part_time(const struct weft_trace *joined, size_t number, int64_t own_ns);
int64_t weft_part_own_time(const struct weft_trace *joined, size_t number, int64_t time_ns);

/* Computes bounds of an event's time in the joined trace, for an event of a part: the true time by the first part's clock is
 * between *low and *high. */
void weft_part_bounds(const struct weft_part *part, int64_t time_ns, int64_t *low, int64_t *high);

/* Returns the alignment of the clocks; NULL if all parts have one clock, or if the trace is not joined.  The result is valid
 * until the trace is closed. */
const struct weft_clock_sync *weft_trace_clock_sync(const struct weft_trace *trace);

/* Returns true if two traces are the same, or one is a copy of the other. */
bool weft_trace_is_same(const struct weft_trace *a, const struct weft_trace *b);

#endif
