/* ocaml_lwt.h: the meaning of Lwt's events: waits of let%lwt and its kin, rounds of the scheduler (private to src/trace).
 *
 * Lwt 6 writes, with the package lwt_runtime_events, the start and the end of each wait that its syntax extension makes.  A wait
 * starts when code meets a pending promise, and ends when that promise has ended, right before the code behind the wait runs.
 * The events have no ids.  So a plan of a ring is made before its events are converted: it decides which start belongs to which
 * end, which wait another one needs, and which wait continues another one.  All of that follows from the order of the events;
 * what is not certain is marked as inferred. SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_OCAML_LWT_H
#define WEFT_TRACE_OCAML_LWT_H

#include "base/intern.h"
#include "trace/ocaml_eio.h"

/* X(UPPER, "name", how it is recorded) */
#define WEFT__LWT_EVENTS(X)                                                                                                      \
	X(TRACE, "lwt-trace", CUSTOM)                                                                                            \
	X(CALL, "lwt-sch-call", SPAN_BEGIN)                                                                                      \
	X(LAP, "lwt-sch-lap", UNIT)                                                                                              \
	X(PAUSED, "lwt-paused-count", INT)                                                                                       \
	X(JOBS, "lwt-unix-job-count", INT)

enum weft__lwt_what {
	WEFT__LWT_NONE,
#define WEFT__LWT_ENUM(UPPER, name, how) WEFT__LWT_##UPPER,
	WEFT__LWT_EVENTS(WEFT__LWT_ENUM)
#undef WEFT__LWT_ENUM
};

struct weft__lwt_event {
	struct weft_str context; /* trace: the user's name of what the wait belongs to; empty: none */
	struct weft_str file;
	struct weft_str place; /* trace: the bytes of context, line and file, by which an end finds its start */
	int64_t value;
	uint32_t line;
	uint8_t what; /* enum weft__lwt_what */
	bool has_context, is_end;
};

/* Returns the event type with this name. */
enum weft__lwt_what weft__lwt_what(struct weft_str name);

/* Decodes an event; false: its content does not match its type. */
bool weft__lwt_decode(struct weft__lwt_event *out, enum weft__lwt_what what, const struct weft__ocaml_event *ev);

/* A place in the source together with a context. */
struct weft__lwt_place {
	struct weft_str context;
	uint32_t site;        /* index into the sites */
	uint32_t first, last; /* queue of its open waits, as index plus one */
	uint32_t open;        /* their number */
	uint32_t waiter;      /* place, as index plus one, of what waited for one of its waits when that ended; 0: unknown */
	uint32_t mixed_up_to; /* the newest wait, as index plus one, that was open when an end could not compare all */
	uint32_t mixed_from;  /* the oldest one */
};

/* A wait.  Waits are named by their index plus one; 0: none. */
struct weft__lwt_wait {
	int64_t id;             /* id in weft; 0: not met yet */
	int64_t start_ns;       /* time of its start; 0: not met yet */
	uint32_t place;         /* WEFT_NO_SITE: a call of Lwt_main.run */
	uint32_t waiter;        /* the wait that waits for this one */
	uint32_t next_input;    /* the next wait with the same waiter */
	uint32_t first_input;   /* what this one waits for */
	uint32_t thread;        /* the first wait of the sequence that it continues; the waiter of that one waits for all of it */
	uint32_t becomes;       /* the wait as which its code continues */
	uint32_t before, after; /* in the queue of its place */
	uint32_t woken_by;      /* the wait whose code ran right before its end, and ended its promise */
	uint32_t group;         /* the first wait of the group in which it started */
	uint32_t extra_input;   /* in the same way as first_input, but only its end told it */
	uint32_t tree;          /* the oldest wait of those that it waits for, directly or not, or itself */
	uint32_t late_waiter;   /* in the same way as waiter, but only found at the end */
	uint32_t earliest;      /* the oldest wait whose start may be that of this one; itself, if it is known */
	uint32_t nested;        /* the one that started right before it with another context, which may be nested in its own */
	bool is_ended, is_preexisting;
	bool has_late_input;
	bool is_finished;   /* the first of a sequence: its last code has ended */
	bool is_refuted;    /* its waiter does not wait for it */
	bool is_mixed;      /* it is not known which of several waits ended */
	bool is_told_apart; /* in the same way, but the ends of callers tell it */
};

struct weft__lwt_count {
	int64_t value;
	bool is_known;
};

/* The plan of a ring. */
struct weft__lwt_plan {
	WEFT_VEC(uint32_t) waits; /* for each event of waits and calls, in order: its wait, as index plus one; 0: none */
	size_t at;                /* the next one to convert */
	/* State of the conversion. */
	int64_t loop;     /* promise of the scheduler, which is the open call of Lwt_main.run; 0: none */
	uint32_t running; /* the wait whose code runs, as index plus one */
	struct weft__lwt_count paused, jobs;
	bool is_asleep, has_started;
};

struct weft__lwt {
	struct weft_intern names;  /* of places */
	struct weft_intern labels; /* of sites */
	WEFT_VEC(struct weft__lwt_place) places;
	WEFT_VEC(struct weft_site) sites;
	WEFT_VEC(uint32_t) newest; /* by site: its newest wait, or 0 */
	WEFT_VEC(struct weft__lwt_wait) waits;
	struct weft__lwt_plan *plans;
	size_t plan_count, reported_count;
	bool is_there; /* the trace has events of Lwt */
};

/* Plans all rings.  `what_of` returns what an event is to Lwt; `breaks` whether another event ends what Lwt's code runs.
 * WEFT_ENOMEM.  Call weft__lwt_finish() in any case.  Linear in the number of events. */
struct weft__lwt_reader {
	enum weft__lwt_what (*what_of)(void *ctx, uint16_t id);
	bool (*breaks)(void *ctx, const struct weft__ocaml_event *ev);
	void *ctx;
};
int weft__lwt_init(struct weft__lwt *lwt, const struct weft__ocaml_file *file, const struct weft__lwt_reader *reader);
void weft__lwt_finish(struct weft__lwt *lwt);
void weft__lwt_rewind(struct weft__lwt *lwt);

/* Converts an event to at most WEFT__EIO_MAX_EVENTS events of `eio`, whose stream, time and buffer are set.  `first_ns`: the time
 * of the trace's first event. */
void weft__lwt_convert(struct weft__lwt *lwt, struct weft__eio *eio, const struct weft__lwt_event *ev, int64_t first_ns);

/* Ends what Lwt's code runs in the stream's ring, because another runtime says what runs. */
void weft__lwt_interrupt(struct weft__lwt *lwt, struct weft__eio *eio);

/* After the last event: reports a wait that is still pending; false: no more. */
bool weft__lwt_put_pending_wait(struct weft__lwt *lwt, struct weft__eio *eio);

#endif
