/* clock_drift.h: narrows the bounds between two counters, which have steady rates, with all messages of an interval.
 *
 * The rates of two counters change slowly against each other: by at most WEFT_DRIFT_CHANGE_PPM per second, about a hundred times
 * the change of real crystals.  So for a while the offset is a line with a small bend, and all messages of that time bound the
 * line (base/line_fit.h).
 *
 * If two clocks obey this limit, the true offset is always inside the bounds, even with slow or few messages.  A violation is
 * only detected if no line fits the messages.  A smaller limit would not be safe: message noise hides a bend of few ppm, and the
 * result would be wrong by what is hidden.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_CLOCK_DRIFT_H
#define WEFT_TRACE_CLOCK_DRIFT_H

#include "base/vec.h"
#include "trace/clock_bounds.h"

#define WEFT_DRIFT_CHANGE_PPM 30

typedef WEFT_VEC(struct weft_clock_message) weft_clock_messages;

/* Adds messages that the clocks could have exchanged at times between the real ones: about 1300 per second and direction, fewer
 * for spans over several minutes.  The caller frees *added, on failure too.  WEFT_EINVAL: the clocks violate the limit.
 * WEFT_ENOMEM.  Linear, about 500 us per second of trace. */
int weft_clock_drift_messages(weft_clock_messages *added, const struct weft_clock_message *messages, size_t count);

#endif
