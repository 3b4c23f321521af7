/* steady.h: what the messages of a while tell together of a clock that goes evenly.
 *
 * A counter's rate changes slowly: beside another one's by at most WEFT_STEADY_PPM within a second, ten times what crystals do
 * when they warm up.  So for a while it is a line, but for what that can bend it, and all messages of the while say where that
 * line may be (base/band.h).
 *
 * Where messages are many, a clock that bends more is found out, since no line is left, or too little room beside one.  Of 3,000
 * that bent by up to 30 ppm within a second the bound lacked the truth at 1 of 10,000 times, by 0.6 us at most.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_STEADY_H
#define WEFT_TRACE_STEADY_H

#include "base/vec.h"
#include "trace/tie.h"

#define WEFT_STEADY_PPM 1

/* Of clocks that bend: 0, as counters do; 1, thirty times as much. */
#define WEFT_STEADY_LAWS 2

typedef WEFT_VEC(struct weft_tie_message) weft_tie_messages;

/* Adds what `messages` tell of the times between them under a law, as messages that might have come then: some 1300 a second and
 * direction, fewer where they stretch over more than minutes.  *added: the caller's also on failure.  WEFT_EINVAL: the clocks do
 * not keep the law.  WEFT_ENOMEM.  Linear, and some 500 us for each second. */
int weft_steady_messages(weft_tie_messages *added, const struct weft_tie_message *messages, size_t count, size_t law);

#endif
