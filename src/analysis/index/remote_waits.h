/* remote_waits.h: finds waits for another process, through connections whose two ends are in the trace.
 *
 * A connection end that has written, and not read since, waits for the other end.  The waiting promise is the pending read of
 * that end or, without one, the connection. An end that has read the start of an answer also waits, if the other end still
 * works on the answer and has been silent for far longer than between the earlier pieces.  A persistent connection without an
 * open request does not wait.
 *
 * The other end waits for promises that it started since it read the request, for older connections on which it sent requests,
 * and for the promise that waited for that read.  An accepted connection owes answers, and never waits for a request.
 *
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_REMOTE_WAITS_H
#define WEFT_ANALYSIS_INDEX_REMOTE_WAITS_H

#include "analysis/index/link_index.h"

struct weft__remote_wait {
	uint32_t from, to;
	int64_t since_ns;
};

struct weft__remote_waits {
	WEFT_VEC(struct weft__remote_wait) all; /* by `from` */
};

/* Lists the waits of promises that were pending at `time_ns` (INT64_MAX: at the end); returns false when out of memory.  Does
 * nothing for a trace of one process; otherwise takes time linear in the number of promises and links. */
bool weft__remote_waits_find(struct weft__remote_waits *list, const struct weft_link_index *link_index, int64_t time_ns);
void weft__remote_waits_sort(struct weft__remote_waits *list);
void weft__remote_waits_finish(struct weft__remote_waits *list);

/* Returns the connection end that a promise is, if the other end is in another process; else NULL.  Logarithmic. */
const struct weft_connection_end *weft__remote_connection_end(const struct weft_model *model, uint32_t promise);

/* Returns the last message that a connection received up to a time; NULL if there is none.  Logarithmic. */
const struct weft_transfer *weft__last_transfer_to(const struct weft_model *model, uint32_t to, int64_t time_ns);

#endif
