/* clock_drift.h: narrows the bounds of the offset between two CPU counters, which have steady rates, with all messages of an
 * interval.
 *
 * The rates of two counters change slowly against each other: by at most WEFT_DRIFT_CHANGE_PPM per second, which is about a
 * hundred times the change of real crystals.  Therefore the offset is nearly a straight line for a while, and all messages of
 * that time bound the line (base/line_fit.h).
 *
 * If two clocks obey this limit, the true offset is always inside the bounds, even if messages are slow or few.  Clocks that do
 * not obey the limit are detected only if no line fits the messages.  A smaller limit would not be safe: the noise of messages
 * hides a bend of few ppm, and the result would be wrong by the hidden amount.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_CLOCK_DRIFT_H
#define WEFT_TRACE_CLOCK_DRIFT_H

#include "base/vec.h"
#include "trace/clock_bounds.h"

#define WEFT_DRIFT_CHANGE_PPM 30

typedef WEFT_VEC(struct weft_clock_message) weft_clock_messages;

/* Adds messages that the clocks could have exchanged at times between the real messages: about 1300 per second and direction,
 * fewer for spans over several minutes.  The caller frees *added, on failure too.  Returns WEFT_EINVAL if the clocks do not
 * obey the limit.  WEFT_ENOMEM.  Takes linear time, about 500 us per second of the trace. */
int weft_clock_drift_messages(weft_clock_messages *added, const struct weft_clock_message *messages, size_t count);

#endif
