/* multi_open.h: opens several traces that a user named together as one joined trace (join.h).  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_MULTI_OPEN_H
#define WEFT_TRACE_MULTI_OPEN_H

#include "trace/trace.h"

/* Joins traces that a user named together, with weft_trace_join().  Also returns WEFT_EINVAL if a trace is a copy of another
 * one, or an archive of several traces. */
int weft_multi_join(
    struct weft_trace **out, struct weft_trace *const *parts, size_t count, const char *name, struct weft_error *err);

/* Notes in a joined trace that a trace was left out, and the reason.  The other parts of the joined trace still count as
 * complete. */
void weft_multi_note_left_out(struct weft_trace *joined, const struct weft_error *why);

/* Writes a name for several traces in messages, "FIRST and 2 more"; returns buf. */
const char *weft_multi_name(char *buf, size_t size, const char *const *paths, size_t count);

/* The following functions are those of follow.h for several traces: the fingerprint changes when one trace changes; is_recorded
 * returns true if at least one trace is being recorded. */
uint64_t weft_multi_fingerprint(const char *const *paths, size_t count);
bool weft_multi_is_recorded(const char *const *paths, size_t count);

#endif
