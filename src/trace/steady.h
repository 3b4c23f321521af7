/* steady.h: what the messages of a while tell together of a clock that goes evenly.
 *
 * A counter's rate changes slowly: beside another one's by at most WEFT_STEADY_PPM within a second, some hundred times what
 * crystals do.  So for a while it is a line, but for what that can bend it, and all messages of the while say where that line may
 * be (base/band.h).
 *
 * Of two clocks that keep to this the truth is inside the bound, always, however slow and however few the messages are.  Whether
 * they do is not found out for sure: of clocks that bend more, messages tell only where no line is left.  A narrower law would
 * not be safe: noise hides a bend of few ppm, and whoever relies on there being none is wrong by as much as it hides.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_STEADY_H
#define WEFT_TRACE_STEADY_H

#include "base/vec.h"
#include "trace/tie.h"

#define WEFT_STEADY_PPM 30

typedef WEFT_VEC(struct weft_tie_message) weft_tie_messages;

/* Adds what `messages` tell of the times between them, as messages that might have come then: some 1300 a second and direction,
 * fewer where they stretch over more than minutes.  *added: the caller's also on failure.  WEFT_EINVAL: the clocks do not keep
 * the law.  WEFT_ENOMEM.  Linear, and some 500 us for each second. */
int weft_steady_messages(weft_tie_messages *added, const struct weft_tie_message *messages, size_t count);

#endif
