/* join.h: several traces as one.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_JOIN_H
#define WEFT_TRACE_JOIN_H

#include "trace/trace.h"

/* Joins open traces, its parts, of processes of one host or several, none of which was read from yet.  On success they are the
 * new trace's, which closes them; on failure they stay the caller's, and *out is untouched.  `name` is what messages call it.
 *
 * Times are of the first part's clock.  Parts that counted ticks of the same clock, of one boot of the machine, are put in their
 * order exactly; another part's clock is tied to it by what both say of the wall clock, some us at best (struct weft_part tells).
 * Clocks of several machines are tied by connections between them (meet.h), which takes reading all parts twice; weft_part tells
 * how exact that is.  Events are in the order of time, those of one time in that of the parts.  A part that its recorder ended,
 * or whose process is known to have died, has WEFT_EVENT_END behind its last event, when it ended.
 *
 * A promise's id is what it was in its part, with the number of the part behind it: promise 5 of the second of eight parts is 51,
 * of twelve 501.  Streams, sites, modules and gaps are those of all parts, part by part.  Texts that only one process can mean,
 * names of OS threads and counters, have the name of the process before them, with its number where two have one name.  What is
 * left out: ops that only a part knows, callers, and, which is told as skipped, ids that are too large for that.
 *
 * Memory: as the parts, a batch of events, and what is said of streams, sites and modules twice.  Time: logarithmic in parts for
 * each run of events of one of them.
 *
 * WEFT_EINVAL: fewer than 1 or more than 1000 parts; without a time of the wall clock; of a host to which no connection leads, or
 * whose messages cannot be true; of another host, several that have counted different ticks.  WEFT_ETOOBIG: 2^16 OS threads or
 * more.  WEFT_ENOMEM, WEFT_EIO. */
int weft_trace_join(
    struct weft_trace **out, struct weft_trace *const *parts, size_t count, const char *name, struct weft_error *err);

/* One of the traces that it was joined of, by its number in weft_trace_info.parts; NULL: it is not joined, or has fewer. */
struct weft_trace *weft_trace_part(const struct weft_trace *trace, size_t number);

/* When in the joined trace an event of a part has that time of the part's own; and which time of its own that is, of a time in
 * the joined trace: as close as both clocks tell it. */
int64_t weft_part_time(const struct weft_trace *joined, size_t number, int64_t own_ns);
int64_t weft_part_own_time(const struct weft_trace *joined, size_t number, int64_t time_ns);

/* Of a part and a time of the joined trace: the true time by the first part's clock is between *low and *high. */
void weft_part_bounds(const struct weft_part *part, int64_t time_ns, int64_t *low, int64_t *high);

/* How its clocks were tied; NULL: all parts have one, or it is not joined.  As long as it is open. */
const struct weft_meet *weft_trace_meet(const struct weft_trace *trace);

/* Whether two traces are one, or one a copy of the other. */
bool weft_trace_is_same(const struct weft_trace *a, const struct weft_trace *b);

#endif
