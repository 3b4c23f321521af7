/* activation.h: why a run of a promise started, and since when the promise could have run.  Private to analysis/index.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_ACTIVATION_H
#define WEFT_ANALYSIS_INDEX_ACTIVATION_H

#include "analysis/index/link_index.h"
#include "analysis/index/timeline.h"

enum weft__activation_cause {
	WEFT__ACTIVATED_BY_READ,         /* it reads .link->to */
	WEFT__ACTIVATED_BY_CLOSE,        /* it has ended */
	WEFT__ACTIVATED_BY_MESSAGE,      /* it handles a message */
	WEFT__ACTIVATED_BY_TRANSFER,     /* bytes of another process arrived: .transfer */
	WEFT__ACTIVATED_BY_ANSWER,       /* an answer of a peer arrived: .request */
	WEFT__ACTIVATED_BY_SIGNAL,       /* .link ran it at once */
	WEFT__ACTIVATED_BY_CREATION,     /* it runs from its creation on */
	WEFT__ACTIVATED_BY_EARLY_SIGNAL, /* .link signalled it before */
	WEFT__ACTIVATED_BY_RUN,          /* a run of .by left work for it */
	WEFT__ACTIVATED_FIRST,           /* its first run, for an unknown reason */
	WEFT__ACTIVATED_AGAIN            /* it continues, or the reason is unknown */
};

struct weft__activation {
	enum weft__activation_cause cause;
	int64_t active_ns; /* the end of the run before, or the creation; INT64_MIN: unknown */
	int64_t ready_ns;  /* since when it was ready; the time of the run if it was not */
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

/* Lists that the search needs, each made when first needed; zero-initialized before. */
struct weft__activations {
	const struct weft_link_index *link_index;
	/* By promise: the other end of its message, or WEFT_NONE; NULL: there are no messages. */
	uint32_t *handler, *sender;
	struct weft__timeline timeline; /* weft__activations_timeline() makes it */
	bool has_message_ends, no_memory;
	/* Sorted by time. */
	WEFT_VEC(struct weft__moment) run_ends; /* promises, by the ends of their runs */
	WEFT_VEC(struct weft__moment) arrivals; /* transfers */
	WEFT_VEC(struct weft__moment) answers;  /* requests, by the times of their answers */
};

void weft__activations_finish(struct weft__activations *a);

/* Finds why the run of the promise that starts at the time started.  `followed`: the request that a route followed last, which
 * decides between several runs that left work; or NULL.  Sets a->no_memory when out of memory.  Logarithmic. */
struct weft__activation weft__activation_find(
    struct weft__activations *a, uint32_t promise, int64_t time_ns, const struct weft_request *followed);

/* Returns the timeline, or NULL when out of memory, which is noted. */
const struct weft__timeline *weft__activations_timeline(struct weft__activations *a);

/* Return the promise that handles the promise's message, and that sent it; WEFT_NONE: none. */
uint32_t weft__handler_of(struct weft__activations *a, uint32_t promise);
uint32_t weft__sender_of(struct weft__activations *a, uint32_t promise);

/* Returns the first link of a kind to or from the promise at the time, or NULL. */
const struct weft_link *weft__link_at(
    const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns, enum weft_link_kind kind, bool to);

/* Returns the read for which the promise started to run at the time, or NULL: a read at that time, or the first link of the run
 * if that reads a promise that ended before the run. */
const struct weft_link *weft__first_read(const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns);

/* Returns the last transfer from another process to a connection that was sent after from_ns, and received up to to_ns; or NULL.
 * Transfers within a process have links. */
const struct weft_transfer *weft__last_remote_transfer(
    const struct weft_model *m, uint32_t connection, int64_t from_ns, int64_t to_ns);

/* Returns whether p and q are known to be in different processes: neither delays the other. */
bool weft__are_apart(const struct weft_model *m, uint32_t p, uint32_t q);

/* Returns whether the model simplified the promise: such a bind was created at an unknown time before it is drawn. */
static inline bool weft__is_simplified(const struct weft_model *m, uint32_t promise)
{
	return !(m->promises[promise].flags & WEFT_PROMISE_CREATION_DRAWN) && promise != WEFT_SYSTEM;
}

/* Returns the end of the run that read an answer to the write, if the thread did not sleep from then until the end of the write;
 * else NULL.  One poll of a loop brings both, and the loop reads before it says that the write has ended.  An answer proves that
 * the bytes had left long before, so the write did not wait for the kernel. */
const struct weft__moment *weft__answer_before_end(struct weft__activations *a, uint32_t write);

/* Returns the connection that a request awaits, because this end asks; WEFT_NONE: it is no such request. */
uint32_t weft__connection_asked_on(const struct weft_link_index *link_index, uint32_t promise);

/* Returns the transfer, or the request written after the read started, for which the promise has waited since its creation; NULL:
 * none.  A connection may have a pending read all the time; its peer delays the read only from the request on. */
const struct weft_transfer *weft__awaited_transfer(const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns);
const struct weft_request *weft__awaited_request(const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns);

#endif
