/* ahead.h: events that an OS thread of its own makes ready while who reads them does something else.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_AHEAD_H
#define WEFT_TRACE_AHEAD_H

#include <stddef.h>

#include "trace/event.h"

/* Makes at most `room` events; none at the end.  WEFT_OK, or what is to be told in their place. */
typedef int weft_ahead_fn(void *ctx, struct weft_event *out, size_t room, size_t *made);

struct weft_ahead;

/* Begins to call `make`, on an OS thread that handles no signals: what it touches is nobody else's until the end was read, or
 * weft_ahead_destroy().  NULL: there is no memory or no OS thread to be had, as in a page.  Memory: half a megabyte. */
struct weft_ahead *weft_ahead_begin(weft_ahead_fn *make, void *ctx);

/* As weft_trace_next(); `events` stay as they are until the next call. */
int weft_ahead_next(struct weft_ahead *ahead, const struct weft_event **events, size_t *count);

/* Returns when no call is under way any more; NULL is accepted. */
void weft_ahead_end(struct weft_ahead *ahead);

#endif
