/* several.h: several traces that are named together, opened as one (join.h).  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_SEVERAL_H
#define WEFT_TRACE_SEVERAL_H

#include "trace/trace.h"

/* As weft_trace_open(). */
typedef int weft_trace_open_fn(struct weft_trace **out, const char *path, struct weft_error *err);

/* Opens each of `count` paths by `open`, and joins them; one alone is only opened.  `name` is what messages call all of them;
 * NULL: the first and how many more.  Of a session, whose traces nobody named one by one, those that cannot be opened are left
 * out and noted as skipped, unless that are all.  What weft_trace_join() and `open` fail of; WEFT_EINVAL: one is the copy of
 * another, or has several itself. */
int weft_several_open(struct weft_trace **out, const char *const *paths, size_t count, const char *name, bool is_session,
    weft_trace_open_fn *open, struct weft_error *err);

/* Notes in a joined trace that one was left out, and why: nothing is known to be missing in the others. */
void weft_several_left_out(struct weft_trace *joined, const struct weft_error *why);

/* What weft_several_open() calls them; returns buf. */
const char *weft_several_name(char *buf, size_t size, const char *const *paths, size_t count);

/* follow.h, of all of them: changes when that of one does; whether one is being recorded. */
uint64_t weft_several_fingerprint(const char *const *paths, size_t count);
bool weft_several_are_recorded(const char *const *paths, size_t count);

#endif
