/* activation.h: finds why a run of a promise started, and since when the promise could have run.  Private to analysis/index.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_ACTIVATION_H
#define WEFT_ANALYSIS_INDEX_ACTIVATION_H

#include "analysis/index/link_index.h"
#include "analysis/index/timeline.h"

enum weft__activation_cause {
	WEFT__ACTIVATED_BY_READ,         /* it reads .link->to */
	WEFT__ACTIVATED_BY_CLOSE,        /* it has ended */
	WEFT__ACTIVATED_BY_MESSAGE,      /* it handles a message */
	WEFT__ACTIVATED_BY_TRANSFER,     /* bytes from another process arrived: .transfer */
	WEFT__ACTIVATED_BY_ANSWER,       /* an answer of a peer arrived: .request */
	WEFT__ACTIVATED_BY_SIGNAL,       /* .link is the action that ran the promise at once */
	WEFT__ACTIVATED_BY_CREATION,     /* the promise runs from its creation on */
	WEFT__ACTIVATED_BY_EARLY_SIGNAL, /* .link signalled it before */
	WEFT__ACTIVATED_BY_RUN,          /* a run of the promise `.by` left work for this promise */
	WEFT__ACTIVATED_FIRST,           /* the promise runs for the first time, for an unknown reason */
	WEFT__ACTIVATED_AGAIN            /* the promise continues, or the reason of its run is unknown */
};

struct weft__activation {
	enum weft__activation_cause cause;
	int64_t active_ns; /* end of the promise's previous run, or its creation; INT64_MIN if unknown */
	int64_t ready_ns;  /* time since which the promise was ready; the start of the run if it was not ready before */
	bool has_run;      /* it had run before */
	uint32_t by;
	const struct weft_link *link;
	const struct weft_transfer *transfer;
	const struct weft_request *request;
};

struct weft__moment {
	int64_t time_ns;
	uint32_t index;
};

/* Lists that the search needs, each built when it is first needed; the caller initializes the struct with zeros. */
struct weft__activations {
	const struct weft_link_index *link_index;
	/* By promise: the promise that handles its message, and the promise that sent its message, or WEFT_NONE; NULL if there
	 * are no messages. */
	uint32_t *handler, *sender;
	struct weft__timeline timeline; /* weft__activations_timeline() makes it */
	bool has_message_ends, no_memory;
	/* Sorted by time. */
	WEFT_VEC(struct weft__moment) run_ends; /* promises, sorted by the ends of their runs */
	WEFT_VEC(struct weft__moment) arrivals; /* transfers */
	WEFT_VEC(struct weft__moment) answers;  /* requests, sorted by the times of their answers */
};

void weft__activations_finish(struct weft__activations *a);

/* Finds the reason for which the run of the promise that starts at `time_ns` started.  `followed` is the request that the
 * search of a critical path followed last, or NULL; it decides between several runs that left work.  Sets a->no_memory when out
 * of memory.  Logarithmic. */
struct weft__activation weft__activation_find(
    struct weft__activations *a, uint32_t promise, int64_t time_ns, const struct weft_request *followed);

/* Returns the timeline of runs and sleeps, or NULL when out of memory, which is noted. */
const struct weft__timeline *weft__activations_timeline(struct weft__activations *a);

/* Return the promise that handles the promise's message, or that sent its message; WEFT_NONE if there is none. */
uint32_t weft__handler_of(struct weft__activations *a, uint32_t promise);
uint32_t weft__sender_of(struct weft__activations *a, uint32_t promise);

/* Returns the first link of a kind from or to the promise at a time, or NULL. */
const struct weft_link *weft__link_at(
    const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns, enum weft_link_kind kind, bool to);

/* Returns the read that made the promise run from a time on, or NULL.  It is a read at that time, or the first
 * link of the run if that link reads a promise that ended before the run. */
const struct weft_link *weft__first_read(const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns);

/* Returns the last transfer from another process to a connection that was sent after from_ns and received by to_ns; or NULL.
 * Transfers within one process do not count, because they have links. */
const struct weft_transfer *weft__last_remote_transfer(
    const struct weft_model *m, uint32_t connection, int64_t from_ns, int64_t to_ns);

/* Returns whether p and q are known to be in different processes, so that neither can delay the other. */
bool weft__are_apart(const struct weft_model *m, uint32_t p, uint32_t q);

/* Returns whether the model simplified the promise: such a bind is drawn from its wake-up on, and was created at an unknown
 * earlier time. */
static inline bool weft__is_simplified(const struct weft_model *m, uint32_t promise)
{
	return !(m->promises[promise].flags & WEFT_PROMISE_CREATION_DRAWN) && promise != WEFT_SYSTEM;
}

/* Returns the end of the run that read an answer to the write, if the thread did not sleep between that run and the end of the
 * write; else NULL.  In this case one poll of a loop delivered both the answer and the end of the write, and the loop handled
 * the read first.  An answer proves that the written bytes had left long before, so the write did not wait for the kernel. */
const struct weft__moment *weft__answer_before_end(struct weft__activations *a, uint32_t write);

/* Returns the connection that a request awaits, because this end asks; WEFT_NONE: it is no such request. */
uint32_t weft__connection_asked_on(const struct weft_link_index *link_index, uint32_t promise);

/* Returns the transfer, or the request written after the read started, for which the promise has waited since its creation; NULL:
 * none.  A connection may have a pending read all the time; its peer delays the read only from the request on. */
const struct weft_transfer *weft__awaited_transfer(const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns);
const struct weft_request *weft__awaited_request(const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns);

#endif
