/* private.h: what the files of src/model share.  SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_PRIVATE_H
#define WEFT_MODEL_PRIVATE_H

#include "base/idmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "model/model.h"

struct weft_model_private {
	struct weft_idmap ids;
	struct weft_intern texts;
	WEFT_VEC(uint32_t) counter_of_text; /* index into weft_model.counters, or WEFT_NONE */
	char kind_names[256][9];            /* "kind-77" */
};

/* The promise that runs on an OS thread, and the pause that it is in. */
struct weft__stream_state {
	uint32_t running; /* or WEFT_NONE */
	size_t run;       /* of `running`: index into runs */
	size_t sleep;     /* of the system running: index into sleeps */
	uint32_t pause_depth, pause_text;
	int64_t pause_ns;
	int64_t end_ns; /* of its part, if that has ended */
	bool is_ended;
	bool acts; /* it ended promises that it did not run, awaited or read any, took locks: without its events nobody knows who
		      is pending */
};

/* A state dump told of it before anything told of its creator. */
struct weft__orphan {
	uint32_t promise;
	int64_t creator;
};

/* A text that was looked up lately. */
struct weft__recent_text {
	struct weft_str text;
	uint32_t number;
};

enum { WEFT__RECENT_TEXTS = 64 };

/* Until when a trace is whole, as weft_event.time_ns; `streams` says, of those that are absent, from when on. */
struct weft__absent {
	int64_t from_ns;
	uint16_t stream;
};

struct weft__clip {
	int64_t until_ns;
	int64_t *streams;            /* [stream_count]; INT64_MAX: not absent */
	struct weft__absent *absent; /* these by time */
	size_t stream_count, absent_count;
};

/* A model while the events come in. */
struct weft__end;

struct weft__build {
	struct weft_model *model;
	struct weft_model_private *priv;
	WEFT_VEC(struct weft_promise) promises;
	WEFT_VEC(struct weft_link) links;
	WEFT_VEC(struct weft_await_end) await_ends;
	WEFT_VEC(struct weft_stack) stacks;
	WEFT_VEC(struct weft_spin) spins;
	WEFT_VEC(struct weft_round) rounds;
	WEFT_VEC(struct weft_death) deaths;
	WEFT_VEC(struct weft_keeping) keepings;
	WEFT_VEC(struct weft_message) messages;
	struct weft_idmap message_of; /* the last of a text and a number, as text << 32 | number, by its index */
	WEFT_VEC(struct weft_transfer) transfers;
	WEFT_VEC(struct weft_connection_end) told_ends;
	WEFT_VEC(struct weft_turn) turns;
	WEFT_VEC(struct weft__end) ends; /* of connections */
	struct weft_idmap end_of;        /* by promise */
	struct weft_idmap end_named;     /* the newest, by the numbers in end_names of its own address << 32 | its peer's */
	struct weft_intern end_names;
	WEFT_VEC(struct weft__datagram) datagrams; /* that were sent */
	struct weft_idmap datagram_of;             /* the newest, by its digest */
	WEFT_VEC(struct weft__socket) sockets;     /* that sent some */
	struct weft_idmap socket_of;               /* by promise */
	WEFT_VEC(struct weft_label) labels;
	WEFT_VEC(uint32_t) label_owners;
	WEFT_VEC(struct weft_run) runs;
	WEFT_VEC(uint32_t) run_owners;
	WEFT_VEC(uint16_t) run_streams; /* empty where there is one stream */
	WEFT_VEC(struct weft_stretch) pauses;
	WEFT_VEC(struct weft_stretch) sleeps;
	WEFT_VEC(struct weft_stretch) lulls;
	bool has_ended_parts;
	size_t streams_awake, streams_asleep;   /* that run a promise; that run the system */
	WEFT_VEC(struct weft_counter) counters; /* .name is set at the end, .samples has room for a power of two */
	WEFT_VEC(uint32_t) counter_texts;
	WEFT_VEC(uint32_t) should_resolve;
	WEFT_VEC(struct weft__orphan) orphans;
	WEFT_VEC(struct weft__stream_state) streams;
	const struct weft__clip *clip; /* or NULL: all is read */
	size_t absent_reached;         /* of clip->absent */
	uint16_t told;                 /* the stream of the last event */
	size_t links_dropped;          /* awaits that a read replaced: their kind is WEFT__LINK_DROPPED */
	struct weft_idmap parts;       /* ids of promises that are told of as their owners, of which `ids` has the numbers */
	bool leaves_parts_out, has_parts;
	bool knows_pending;
	struct weft_idmap awaits; /* pairs of promises, from << 32 | to, among the first awaits_seen links; 1: over by now */
	size_t awaits_seen;
	struct weft__recent_text recent[WEFT__RECENT_TEXTS]; /* by their place */
	bool is_woken[256];                                  /* kinds with WEFT_TRAIT_WOKEN */
	bool has_woken;                                      /* there is a promise of one of them */
	bool labels_unordered;                               /* a state dump named a promise that had labels */
};

/* Finds until when a trace is whole that was read to its end; 1, 0: it is whole, or never was, or WEFT_ENOMEM.  The caller
 * frees what clip points to. */
int weft__clip_find(struct weft__clip *clip, const struct weft__build *b);

/* A lull is open: the last of b->lulls. */
static inline bool weft__is_lull(const struct weft__build *b)
{
	return b->model->trace->stream_count > 1 && b->streams_asleep > 0 && b->streams_awake == 0;
}

#define WEFT__LINK_DROPPED WEFT_LINK_KINDS

/* The promise that p is by now. */
static inline uint32_t weft__promise_now(struct weft__build *b, uint32_t p)
{
	struct weft_promise *promises = b->promises.items;
	while (promises[p].weft__into != p) {
		promises[p].weft__into = promises[promises[p].weft__into].weft__into;
		p = promises[p].weft__into;
	}
	return p;
}

/* What connections tell, as the events come.  WEFT_ENOMEM. */
int weft__transfer_connection(struct weft__build *b, uint32_t promise, const struct weft_event *ev);
int weft__transfer_sent(struct weft__build *b, uint32_t promise, const struct weft_event *ev, int64_t time_ns);
/* *by: who wrote it, or WEFT_NONE. */
int weft__transfer_received(struct weft__build *b, uint32_t promise, const struct weft_event *ev, int64_t time_ns, uint32_t *by);
/* The same of a datagram, which the promise sends, or handles. */
int weft__transfer_datagram(struct weft__build *b, uint32_t promise, const struct weft_event *ev, int64_t time_ns, uint32_t *by);
bool weft__transfer_finish(struct weft__build *b); /* puts all in the model's order, and makes told_ends; false: no memory */
void weft__transfer_drop(struct weft__build *b);

int weft__compare_await_ends(const void *a, const void *b);

/* Whether an error says that something was not there, or came to its end. */
bool weft__model_is_absent(const struct weft_model *model, uint32_t failure);

/* After the last event: ends what is open, and makes the model of it.  WEFT_ENOMEM, WEFT_ETOOBIG. */
int weft__model_finish(struct weft__build *b, bool keep_binds);

#endif
