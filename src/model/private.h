/* private.h: has declarations that the files of src/model share.  SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_PRIVATE_H
#define WEFT_MODEL_PRIVATE_H

#include "base/idmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "model/model.h"

struct weft_model_private {
	struct weft_idmap ids;
	struct weft_intern texts;
	WEFT_VEC(uint32_t) counter_of_text; /* index in weft_model.counters of each text that is a counter's name, or WEFT_NONE */
	char kind_names[256][9];            /* "kind-77" */
	struct weft_roles *roles;           /* roles of promises and threads (roles.h); NULL if not found yet */
};

/* State of a stream while events are applied: the promise that runs, and the pause that has not ended. */
struct weft__stream_state {
	uint32_t running; /* or WEFT_NONE */
	size_t run;       /* index in runs of the present run of `running` */
	size_t sleep;     /* index in sleeps of the present sleep, if the system is running */
	uint32_t pause_depth, pause_text;
	uint32_t site;   /* site of the stream's next wait, hold, pause or sleep; WEFT_NONE if it is unknown */
	uint32_t call;   /* name of the function that is called at `site`; WEFT_NONE if it is unknown */
	int64_t site_by; /* id of the promise that waits, holds or is blocked at `site` */
	int64_t pause_ns;
	int64_t transfer_ns; /* time of the stream's last transfer of bytes, to which a later claim reaches back */
	int64_t end_ns;      /* end of the stream's part of the trace, if is_ended */
	bool is_ended;
	bool has_claim; /* since it slept, the thread answered a request that was not running */
	bool has_guess; /* it is unknown whether the thread works for the running promise */
	size_t guess;   /* index in claims of the time in which it is unknown */
	/* the thread ended promises that it did not run, awaited or read a promise, or took locks: if its events are missing,
	 * it is not known which promises are pending */
	bool acts;
};

/* A promise in a state dump whose event came before the event of its creator. */
struct weft__orphan {
	uint32_t promise;
	int64_t creator;
};

/* A text that was given a number recently. */
struct weft__recent_text {
	struct weft_str text;
	uint32_t number;
};

enum { WEFT__RECENT_TEXTS = 64 };

/* A stream whose events are missing from a time on (as in weft_event.time_ns). */
struct weft__absent {
	int64_t from_ns;
	uint16_t stream;
};

struct weft__complete_prefix {
	int64_t until_ns;
	int64_t *streams;            /* by stream: time from which its events are missing; INT64_MAX if none are */
	struct weft__absent *absent; /* the absent streams, sorted by time */
	size_t stream_count, absent_count;
};

/* A model under construction. */
struct weft__end;

struct weft__build {
	struct weft_model *model;
	struct weft_model_private *priv;
	WEFT_VEC(struct weft_promise) promises;
	WEFT_VEC(struct weft_link) links;
	WEFT_VEC(struct weft_await_end) await_ends;
	WEFT_VEC(struct weft_place) places;
	WEFT_VEC(struct weft_callback) callbacks;
	WEFT_VEC(struct weft_stack) stacks;
	WEFT_VEC(struct weft_spin) spins;
	WEFT_VEC(struct weft_earlier_start) earlier_starts;
	WEFT_VEC(struct weft_trace_parent) trace_parents;
	WEFT_VEC(struct weft_round) rounds;
	WEFT_VEC(struct weft_death) deaths;
	WEFT_VEC(struct weft_snapshot_reason) snapshot_reasons;
	WEFT_VEC(struct weft_message) messages;
	/* index of the newest message with a text and number; the key is text << 32 | low 32 bits of the number */
	struct weft_idmap message_of;
	WEFT_VEC(struct weft_transfer) transfers;
	WEFT_VEC(struct weft_connection_end) connection_ends;
	WEFT_VEC(struct weft_request) requests;
	WEFT_VEC(struct weft__end) ends; /* ends of connections */
	struct weft_idmap end_of;        /* by promise */
	/* newest connection end with a pair of addresses; the key is own address << 32 | peer's address (numbers in
	 * end_names) */
	struct weft_idmap end_named;
	struct weft_intern end_names;
	WEFT_VEC(struct weft__datagram) datagrams; /* sent datagrams */
	struct weft_idmap datagram_of;             /* newest datagram, by digest */
	WEFT_VEC(struct weft__socket) sockets;     /* sockets that sent datagrams */
	struct weft_idmap socket_of;               /* by promise */
	WEFT_VEC(struct weft_label) labels;
	WEFT_VEC(uint32_t) label_owners;
	WEFT_VEC(struct weft_run) runs;
	WEFT_VEC(uint32_t) run_owners;
	WEFT_VEC(uint16_t) run_streams; /* stream of each run; empty if there is only one stream */
	WEFT_VEC(struct weft_interval) pauses;
	WEFT_VEC(struct weft_interval) sleeps;
	WEFT_VEC(struct weft_interval) lulls;
	WEFT_VEC(struct weft_interval) claims;
	bool has_ended_parts;
	size_t streams_awake, streams_asleep; /* number of streams that run a promise; number of streams that run the system */
	/* counters; .name is set at the end; the capacity of .samples is a power of two */
	WEFT_VEC(struct weft_counter) counters;
	WEFT_VEC(uint32_t) counter_texts;
	WEFT_VEC(uint32_t) should_resolve;
	WEFT_VEC(struct weft__orphan) orphans;
	WEFT_VEC(struct weft__stream_state) streams;
	const struct weft__complete_prefix *clip; /* the complete prefix that limits the events; NULL if all events are read */
	size_t absent_reached;                    /* number of items of clip->absent whose time was passed */
	uint16_t last_stream;                     /* the stream of the last event */
	/* number of awaits that a read replaced and that are marked WEFT__LINK_DROPPED */
	size_t links_dropped;
	/* ids of internal promises that are modelled as their owners; `ids` maps them to the owners */
	struct weft_idmap parts;
	bool leaves_parts_out, has_parts;
	bool knows_pending;
	/* pairs of promises (from << 32 | to) of the awaits among the first awaits_seen links; the value is 1 if the await has
	 * ended */
	struct weft_idmap awaits;
	size_t awaits_seen;
	struct weft__recent_text recent[WEFT__RECENT_TEXTS]; /* by address */
	bool is_woken[256];                                  /* kinds with WEFT_TRAIT_WOKEN */
	bool has_woken;                                      /* true if the model has a promise of a kind with WEFT_TRAIT_WOKEN */
	bool labels_unordered;                               /* true if a state dump named a promise that already had labels */
};

/* Finds the time up to which a trace is complete, after the whole trace was read.  Returns 1 if the time is found; 0 if the
 * trace is complete, was never complete, or the time is unknown; or WEFT_ENOMEM.  The caller frees the arrays of clip. */
int weft__complete_prefix_find(struct weft__complete_prefix *clip, const struct weft__build *b);

/* Returns true if a lull has not ended yet: then it is the last item of b->lulls. */
static inline bool weft__is_lull(const struct weft__build *b)
{
	return b->model->trace->stream_count > 1 && b->streams_asleep > 0 && b->streams_awake == 0;
}

#define WEFT__LINK_DROPPED WEFT_LINK_KINDS

/* Returns the promise that p has become by now. */
static inline uint32_t weft__current_promise(struct weft__build *b, uint32_t p)
{
	struct weft_promise *promises = b->promises.items;
	while (promises[p].weft__into != p) {
		promises[p].weft__into = promises[promises[p].weft__into].weft__into;
		p = promises[p].weft__into;
	}
	return p;
}

/* Apply events of connections.  WEFT_ENOMEM. */
int weft__transfer_connection(struct weft__build *b, uint32_t promise, const struct weft_event *ev);
int weft__transfer_sent(struct weft__build *b, uint32_t promise, const struct weft_event *ev, int64_t time_ns);
/* *by is the promise that wrote the bytes, or WEFT_NONE. */
int weft__transfer_received(struct weft__build *b, uint32_t promise, const struct weft_event *ev, int64_t time_ns, uint32_t *by);
/* Applies a datagram that the promise sends or handles; *by is the promise that sent it, or WEFT_NONE. */
int weft__transfer_datagram(struct weft__build *b, uint32_t promise, const struct weft_event *ev, int64_t time_ns, uint32_t *by);
bool weft__transfer_finish(
    struct weft__build *b); /* sorts all transfers for the model, and fills connection_ends; returns false when out of memory */
void weft__transfer_drop(struct weft__build *b);

int weft__compare_callbacks(const void *a, const void *b);
int weft__compare_places(const void *a, const void *b);
int weft__compare_await_ends(const void *a, const void *b);

/* Returns true if an error text means that something was absent or had ended. */
bool weft__model_is_absent(const struct weft_model *model, uint32_t failure);

/* Reads the stack samples of the model's trace.  WEFT_ENOMEM. */
int weft__model_read_profile(struct weft_model *model);

/* Reads the sampled allocations of the model's trace.  WEFT_ENOMEM. */
int weft__model_read_memory(struct weft_model *model);

/* Finishes the model after the last event: ends what has not ended, and sorts the arrays.  WEFT_ENOMEM, WEFT_ETOOBIG. */
int weft__model_finish(struct weft__build *b, bool keep_binds);

#endif
