/* across.h: who waits for another process, through connections both of whose ends are in the trace.
 *
 * Who wrote, and has read nothing since, waits for the other end: its read that is pending does, or, where it does not read, the
 * connection.  So does who has read the begin of an answer, if the other end is still at work for it and has been silent for
 * far longer than while it answered: a connection that is kept, or that pushes in steps, is none.  The other end waits for who
 * began to work for it when it read that, for connections that it then asked on, and for who had waited for that read.  Who
 * accepted a connection owes answers, and waits for no question.
 *
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_ACROSS_H
#define WEFT_ANALYSIS_ACROSS_H

#include "analysis/ties.h"

struct weft__across {
	uint32_t from, to;
	int64_t since_ns;
};

struct weft__across_list {
	WEFT_VEC(struct weft__across) all; /* by `from` */
};

/* Those of promises that were pending at `time_ns`, INT64_MAX: at the end.  false: no memory.  Nothing is done for traces of one
 * process; linear in promises and links else. */
bool weft__across_find(struct weft__across_list *list, const struct weft_ties *ties, int64_t time_ns);
void weft__across_finish(struct weft__across_list *list);

/* A connection whose other end another process has; NULL: it is none.  Logarithmic. */
const struct weft_connection_end *weft__across_end(const struct weft_model *model, uint32_t promise);

/* The last message that had come at a connection by then; NULL: there is none.  Logarithmic. */
const struct weft_transfer *weft__across_last(const struct weft_model *model, uint32_t to, int64_t time_ns);

#endif
