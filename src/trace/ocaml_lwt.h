/* ocaml_lwt.h: converts Lwt's events: waits of let%lwt and similar syntax, and rounds of the scheduler (private to src/trace).
 *
 * Lwt 6 writes, with the package lwt_runtime_events, the start and the end of each wait that its syntax extension makes.  A
 * wait starts when code meets a pending promise, and ends when that promise has ended, right before the code behind the wait
 * runs.  Lwt's events have no ids.  Therefore a plan of a ring is made before its events are converted: it decides which start
 * belongs to which end, which wait another wait needs, and which wait continues another wait.  The plan follows only from the
 * order of the events; its uncertain decisions are marked as inferred. SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_OCAML_LWT_H
#define WEFT_TRACE_OCAML_LWT_H

#include "base/intern.h"
#include "trace/ocaml_eio.h"

/* X(UPPER, "name", how the event is recorded) */
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
	struct weft_str context; /* for a trace event: the user's name of the context of the wait; empty if there is none */
	struct weft_str file;
	struct weft_str place; /* for a trace event: the bytes of context, line and file, by which an end finds its start */
	int64_t value;
	uint32_t line;
	uint8_t what; /* enum weft__lwt_what */
	bool has_context, is_end;
};

/* Returns the event type with the given name. */
enum weft__lwt_what weft__lwt_what(struct weft_str name);

/* Decodes an event; returns false if its content does not match its type. */
bool weft__lwt_decode(struct weft__lwt_event *out, enum weft__lwt_what what, const struct weft__ocaml_event *ev);

/* A place in the source code together with a context. */
struct weft__lwt_place {
	struct weft_str context;
	uint32_t site;        /* index into the sites */
	uint32_t first, last; /* queue of the place's waits that have not ended, as index plus one */
	uint32_t open;        /* their number */
	/* place, as index plus one, of the wait that waited for a wait of this place when it ended; 0 if unknown */
	uint32_t waiter;
	uint32_t mixed_up_to; /* the newest wait, as index plus one, that was open when an end could not compare all waits */
	uint32_t mixed_from;  /* the oldest one */
};

/* A wait.  Waits are named by their index plus one; 0 stands for none. */
struct weft__lwt_wait {
	int64_t id;           /* id in weft; 0 if the wait was not converted yet */
	int64_t start_ns;     /* time of its start; 0 if the wait was not converted yet */
	uint32_t place;       /* place of the wait; WEFT_NO_SITE for a call of Lwt_main.run */
	uint32_t waiter;      /* the wait that waits for this wait */
	uint32_t next_input;  /* the next wait that has the same waiter as this wait */
	uint32_t first_input; /* the first wait for which this wait waits */
	/* the first wait of the sequence that this wait continues; the waiter of that first wait waits for the whole
	 * sequence */
	uint32_t thread;
	uint32_t becomes;       /* the wait as which the code of this wait continues */
	uint32_t before, after; /* waits before and after this wait in the queue of its place */
	uint32_t woken_by;      /* the wait whose code ran right before its end, and ended its promise */
	uint32_t group;         /* the first wait of the group in which it started */
	uint32_t extra_input;   /* a wait for which this wait waits, like first_input, but known only from its end */
	uint32_t tree;          /* the oldest of the waits for which it waits, directly or not, or the wait itself */
	uint32_t late_waiter;   /* the wait that waits for this wait, like waiter, but found only at its end */
	/* the oldest wait whose start may be the start of this wait; the wait itself, if its start is known */
	uint32_t earliest;
	/* the wait that started right before it with another context, which may be nested in its own context */
	uint32_t nested;
	bool is_ended, is_preexisting;
	bool has_late_input;
	bool is_finished;   /* for the first wait of a sequence: true if the last code of the sequence has ended */
	bool is_refuted;    /* true if its waiter does not really wait for it */
	bool is_mixed;      /* true if it is not known which of several waits ended */
	bool is_told_apart; /* true if it is known which of several waits ended, because the ends of callers show it */
};

struct weft__lwt_count {
	int64_t value;
	bool is_known;
};

/* The plan for the events of a ring. */
struct weft__lwt_plan {
	WEFT_VEC(uint32_t) waits; /* by event of a wait or call, in order: its wait, as index plus one; 0 if there is none */
	size_t at;                /* index of the next event to convert */
	/* State of the conversion. */
	int64_t loop;     /* promise of the scheduler, which is the call of Lwt_main.run that has not ended; 0 if there is none */
	uint32_t running; /* the wait whose code is running, as index plus one */
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
	bool is_there; /* true if the trace has events of Lwt */
};

/* Plans all rings.  `what_of` returns the meaning that an event has for Lwt; `breaks` returns whether another event ends the
 * run of Lwt's code.  WEFT_ENOMEM.  The caller calls weft__lwt_finish() in any case.  Takes time linear in the number of
 * events. */
struct weft__lwt_reader {
	enum weft__lwt_what (*what_of)(void *ctx, uint16_t id);
	bool (*breaks)(void *ctx, const struct weft__ocaml_event *ev);
	void *ctx;
};
int weft__lwt_init(struct weft__lwt *lwt, const struct weft__ocaml_file *file, const struct weft__lwt_reader *reader);
void weft__lwt_finish(struct weft__lwt *lwt);
void weft__lwt_rewind(struct weft__lwt *lwt);

/* Converts an event to at most WEFT__EIO_MAX_EVENTS events of `eio`, whose stream, time and buffer are set.  `first_ns` is the
 * time of the trace's first event. */
void weft__lwt_convert(struct weft__lwt *lwt, struct weft__eio *eio, const struct weft__lwt_event *ev, int64_t first_ns);

/* Ends the run of Lwt's code in the stream's ring, because another runtime says what is running. */
void weft__lwt_interrupt(struct weft__lwt *lwt, struct weft__eio *eio);

/* Reports a wait that is still pending after the last event; returns false if there are no more. */
bool weft__lwt_put_pending_wait(struct weft__lwt *lwt, struct weft__eio *eio);

#endif
