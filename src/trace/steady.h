/* steady.h: what the messages of a while tell together of a clock that goes evenly.
 *
 * A counter's rate changes slowly: beside another one's by at most WEFT_STEADY_PPM within a second, thirty times what crystals
 * do.  So for a while it is a line, but for what that can bend it, and all messages of the while say where that line may be
 * (base/band.h).  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_STEADY_H
#define WEFT_TRACE_STEADY_H

#include "base/vec.h"
#include "trace/tie.h"

#define WEFT_STEADY_PPM 30

typedef WEFT_VEC(struct weft_tie_message) weft_tie_messages;

/* Adds what `messages` tell of the times between them, as messages that might have come then: some 1300 a second and direction,
 * fewer where they stretch over more than minutes.  Where no line fits, nothing is added.  *added: the caller's also on failure.
 * WEFT_ENOMEM.  Linear, and 20 us for each 50 ms. */
int weft_steady_messages(weft_tie_messages *added, const struct weft_tie_message *messages, size_t count);

#endif
