/* model.h: declares the model of a trace: promises, the links between them, and the times when they ran.
 *
 * Promises are numbered from 0 in the order in which the trace first names them; number 0 is the system.  Times are in ns since
 * the first event.  The model consists of a few flat arrays, at most 100 bytes per event, without trees of pointers.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_MODEL_H
#define WEFT_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "trace/trace.h"

#define WEFT_NONE UINT32_MAX /* number of no promise, no text, no site and no row */
#define WEFT_SYSTEM 0u       /* index of the system */

enum weft_end {
	WEFT_END_PENDING, /* no end was recorded */
	WEFT_END_RESOLVED,
	WEFT_END_FAILED, /* the promise ended with an error, or should have resolved and never did */
	WEFT_END_BECAME
};

/* Kinds that only models have; their numbers are above all recorded kinds. */
enum weft_model_kind { WEFT_KIND_SYSTEM = 256, WEFT_KIND_PREEXISTING = 257 };

enum weft_promise_flag {
	WEFT_PROMISE_CREATION_DRAWN = 1, /* a picture has a vertical line from the promise's parent to the promise */
	WEFT_PROMISE_SHOULD_RESOLVE = 2,
	WEFT_PROMISE_NEVER_RESOLVED = 4, /* the promise should have resolved and did not: it ends with the trace */
	WEFT_PROMISE_START_UNKNOWN = 8,  /* the promise was created before the trace begins, or its creation was lost */
	WEFT_PROMISE_EXPECTED = 16,      /* the promise failed, but that is normal: see weft_promise_went_wrong() */
	/* the promise's creator is not in the trace; the promise is known from a complete state dump */
	WEFT_PROMISE_ORPHAN = 32,
	/* the promise is a connection with a label "to ...": the program made it instead of accepting it */
	WEFT_PROMISE_CONNECTED = 64,
	WEFT_PROMISE_SENT = 128, /* the promise sent a message, for example a call to another process */
	/* the promise's start, end or awaited promise is inferred, so no certain finding depends on it */
	WEFT_PROMISE_INFERRED = 256
};

struct weft_promise {
	int64_t id; /* as recorded */
	/* start as drawn: a simplified bind starts where it was woken; negative if a state dump gives a time before the first
	 * event */
	int64_t start_ns;
	union {
		int64_t end_ns;
		int64_t weft__active_ns; /* until the last event was applied, for a pending promise: time of its last activity */
	};
	uint32_t created_by; /* index of its creator, which is smaller than its own index; WEFT_NONE for the system */
	/* promise under which it is drawn; the chain of parents ends at the system, whose parent is WEFT_NONE */
	uint32_t parent;
	uint32_t became;  /* the promise that it became; WEFT_NONE unless end is WEFT_END_BECAME */
	uint32_t failure; /* text number, or WEFT_NONE */
	uint32_t site;    /* index of the site of its creation in trace->sites, or WEFT_NONE */
	union {
		/* index of its first label in weft_model.labels; its labels end at the next promise's index */
		uint32_t labels;
		/* until the last event was applied: the promise that it became by shortened chains, or itself */
		uint32_t weft__into;
	};
	union {
		/* index of its first run in weft_model.runs; its runs end at the next promise's index */
		uint32_t runs;
		uint32_t weft__last_link; /* until the last event was applied: number of its newest link, or WEFT_NONE */
	};
	uint16_t kind;   /* enum weft_kind or enum weft_model_kind */
	uint16_t stream; /* stream of the thread that created the promise */
	uint16_t flags;  /* enum weft_promise_flag */
	uint8_t end;     /* enum weft_end */
};

/* Returns true if the promise failed in a way that may be a fault, or should have resolved and did not.  Returns false if the
 * promise was cancelled.  Also returns false if the promise's error says that something was absent or had ended, and the
 * promise that read this error did not fail. */
static inline bool weft_promise_went_wrong(const struct weft_promise *promise)
{
	return promise->end == WEFT_END_FAILED && !(promise->flags & WEFT_PROMISE_EXPECTED);
}

enum weft_link_kind { WEFT_LINK_RESOLVE, WEFT_LINK_READ, WEFT_LINK_AWAIT, WEFT_LINK_SIGNAL, WEFT_LINK_KINDS };

/* An action of promise `from` on promise `to`: resolve, read, await or signal. */
struct weft_link {
	int64_t time_ns;
	uint32_t from, to;
	uint16_t stream;
	uint8_t kind;  /* enum weft_link_kind */
	uint32_t site; /* site where the code waited or took the lock; WEFT_NONE if it is unknown */
};

/* The time from which on `from` no longer awaits `to`, whether `to` has ended or not. */
struct weft_await_end {
	int64_t time_ns;
	uint32_t from, to;
};

/* The call stack at the creation of a promise; weft_trace_callers() returns its sites. */
struct weft_stack {
	uint32_t promise;
	uint32_t weft__order;
	struct weft_str callers;
};

/* The site of the call that blocked an OS thread in a pause or sleep. */
struct weft_place {
	int64_t time_ns; /* start of the pause or sleep */
	uint32_t site;
	uint32_t call; /* name of the function that is called at the site; WEFT_NONE if it is unknown */
	uint16_t stream;
};

/* A call of a promise's code that took long. */
struct weft_callback {
	int64_t time_ns; /* time shortly before the call of the promise's code */
	uint32_t promise, site;
};

/* A message that a promise sends or handles.  If both ends of the message are in the trace, the sender awaits the handler. */
struct weft_message {
	uint64_t number;
	uint32_t promise, text; /* text: channel and sender */
	uint32_t other;         /* the promise at the other end of the message; WEFT_NONE if it is not in the trace */
	bool is_handled;
};

/* Bytes that were read from a connection, with the last write that wrote any of them.  Both ends of the connection are in the
 * trace. */
struct weft_transfer {
	int64_t sent_ns, received_ns;
	uint32_t by;       /* promise that was running at the write */
	uint32_t from, to; /* the end that was written to; the end that was read from */
};

/* State of a connection at the end of the trace, seen from one of its ends.  Both ends of the connection are in the trace. */
struct weft_connection_end {
	uint32_t promise, peer;
	int64_t sent_ns, received_ns; /* time of the end's last write; time of its last read; INT64_MIN if there was none */
	/* time of the end's first write with bytes that the peer has not read; INT64_MAX if the peer has read all bytes */
	int64_t unread_ns;
	uint64_t unread_bytes;
	uint32_t by; /* promise that was running at the end's last write; WEFT_NONE if it never wrote */
};

/* A write to a connection and the read that followed it.  If the peer is the server, this is a request and its response;
 * otherwise it is a response and the next request. */
struct weft_request {
	int64_t asked_ns, last_ns; /* time of the first write, and of the last write, since the previous response */
	int64_t answered_ns;       /* time of the read; INT64_MAX if nothing was read */
	uint32_t connection;
	uint32_t by, last_by; /* promises that were running at the first write, and at the last write */
	uint16_t stream;      /* stream of the thread that made the first write */
	bool is_question;
	int64_t
	    /* time of the first read since the previous write; INT64_MIN if there was none.  A response answers what was read
	     * at that time */
	    heard_ns;
};

/* A label of a promise. weft_model_label() makes the text of a label that a counter gives.  The error of a failed promise is
 * its last label, at the time of its end. */
struct weft_label {
	int64_t time_ns;
	uint32_t text;           /* text number of the label, or of the counter's name */
	uint32_t is_counter : 1; /* true if the label is a counter's name and its signed change: "gntref+1" */
	uint32_t sample : 31;    /* if is_counter: index of the counter's sample whose change is shown */
};

struct weft_run {
	int64_t start_ns, end_ns;
};

/* Resource use of a thread, recorded before it slept after a long round of its event loop.  In a busy loop the interval may
 * include earlier rounds and sleeps. */
struct weft_round {
	int64_t start_ns, end_ns;
	int64_t on_cpu_ns;                        /* time on CPU */
	uint64_t voluntary_switches, preemptions; /* number of voluntary context switches; number of preemptions */
	uint64_t minor_faults, major_faults;      /* numbers of page faults without and with a read from a disk */
	uint16_t stream;
};

/* A deadly signal that arrived while the promise ran. */
struct weft_death {
	int64_t time_ns;
	uint32_t promise, text; /* "SIGABRT" */
	uint16_t stream;
};

/* The reason why this trace was saved as a copy, which is recorded in its last event. */
struct weft_snapshot_reason {
	int64_t time_ns;
	uint32_t text; /* text number, or WEFT_NONE */
	uint16_t stream;
	bool runs_on; /* true if the program continued after the copy */
};

/* The number of calls of a promise's code since its thread last slept. */
struct weft_spin {
	int64_t time_ns;
	uint64_t calls;
	uint32_t promise;
};

/* The earliest time at which a promise may have started, if it is not known which of several recorded starts belongs to it. */
struct weft_earlier_start {
	int64_t time_ns;
	uint32_t promise;
};

/* The W3C traceparent that a request carried. */
struct weft_trace_parent {
	uint32_t promise, text;
};

struct weft_sample {
	int64_t time_ns;
	int64_t value;
	int64_t delta; /* difference from the value of the previous sample, or from 0 */
};

struct weft_counter {
	struct weft_str name;
	struct weft_sample *samples;
	size_t count;
	int64_t min, max; /* of values and 0 */
	bool is_absolute; /* true if the first sample is a value, not a change */
	bool is_partial;  /* true in weft_model.whole if changes by absent threads are missing */
	bool only_grows;  /* whether no sample is below the previous one */
	/* common range of the counters whose names differ only after '#'; includes 0 and has a length of at least 1 */
	int64_t scale_min, scale_max;
};

/* An interval in which nothing could run, or in which a thread slept. */
struct weft_interval {
	int64_t start_ns, end_ns;
	uint32_t text; /* reason of a pause, such as "gc"; for a sleep "sleeping", "suspended" or "hibernating" */
	uint16_t stream;
};

/* X(NAME, "description, printed after its number"): contradictions between events of a trace. */
#define WEFT_ANOMALIES(X)                                                                                                        \
	X(CREATED_TWICE, "ids created twice") /* a new promise takes over the id of an older one */                              \
	X(CREATED_LATE, "promises used before their creation")                                                                   \
	X(ENDED_TWICE, "promises resolved or merged after their end") /* the first end counts */                                 \
	X(BECAME_ITSELF, "promises that became themselves")                                                                      \
	X(SYSTEM_MISUSED, "events that create, end or merge the system")                                                         \
	X(PAUSE_UNMATCHED, "pauses without a start, or of negative length")                                                      \
	X(UNKNOWN_EVENT, "events of an unknown kind")

enum weft_anomaly {
#define WEFT_ANOMALY_ENUM(NAME, text) WEFT_ANOMALY_##NAME,
	WEFT_ANOMALIES(WEFT_ANOMALY_ENUM)
#undef WEFT_ANOMALY_ENUM
	    WEFT_ANOMALY_COUNT
};

/* A sample of where a thread was while it ran one promise for long. */
struct weft_stack_sample {
	int64_t time_ns;
	uint32_t stack; /* index into trace->profile.stacks */
	uint16_t stream;
};

/* A sampled allocation of a promise. */
struct weft_promise_allocation {
	int64_t time_ns, freed_ns; /* since start_ns; freed_ns is INT64_MAX if the memory was not freed */
	int64_t bytes;             /* estimated size of all allocations for which the sample stands */
	uint32_t promise;          /* WEFT_SYSTEM if none ran; WEFT_NONE if the promise is not in the trace */
	uint32_t stack;            /* index into trace->memory.stacks, or WEFT_NO_STACK */
	uint32_t index;            /* index into trace->memory.allocations */
};

struct weft_kernel;

struct weft_model {
	int64_t start_ns; /* time of the first event as recorded */
	int64_t end_ns;   /* time of the last event, in ns since start_ns; later if the process is known to have lived longer */
	uint64_t events;
	int64_t *stream_ends_ns;       /* by stream: the end of its part of the trace; NULL if the trace is not joined */
	struct weft_promise *promises; /* promises; the sentinel [promise_count] ends the labels and runs of the last promise */
	size_t promise_count;          /* including the system */
	struct weft_link *links;       /* in time order */
	size_t link_count;
	struct weft_await_end *await_ends; /* ends of awaits, sorted by from, to and time */
	size_t await_end_count;
	struct weft_place *places; /* by time, then stream */
	size_t place_count;
	struct weft_callback *callbacks; /* by promise, then time */
	size_t callback_count;
	struct weft_stack *stacks; /* call stacks, sorted by promise, at most one for each */
	size_t stack_count;
	struct weft_spin *spins; /* in time order */
	size_t spin_count;
	struct weft_earlier_start *earlier_starts; /* sorted by promise */
	size_t earlier_start_count;
	struct weft_trace_parent *trace_parents; /* sorted by promise */
	size_t trace_parent_count;
	struct weft_round *rounds; /* sorted by end time */
	size_t round_count;
	struct weft_death *deaths; /* in time order */
	size_t death_count;
	struct weft_snapshot_reason *snapshot_reasons; /* reasons of snapshots in order of time, at most one for each recorder */
	size_t snapshot_reason_count;
	struct weft_message *messages; /* in time order */
	size_t message_count;
	struct weft_transfer *transfers; /* transfers, sorted by `to`, then in order of time */
	size_t transfer_count;
	struct weft_connection_end *ends; /* sorted by promise */
	size_t end_count;
	struct weft_request *requests; /* requests, sorted by connection, then in order of time */
	size_t request_count;
	struct weft_label *labels; /* labels, sorted by promise, then by time */
	size_t label_count;
	struct weft_run *runs; /* runs, sorted by promise, then by time */
	size_t run_count;
	uint16_t *run_streams; /* stream of each run; NULL if there is only one stream */
	/* by stream: whether another thread of its process has the same name; NULL if there is only one stream */
	bool *namesakes;
	/* by stream: the first promise that represents its thread; WEFT_NONE if there is none; WEFT_SYSTEM if there are several
	 * with different names; NULL if no two threads have one name */
	uint32_t *threads;
	struct weft_counter *counters; /* sorted by name */
	size_t counter_count;
	struct weft_interval *pauses, *sleeps; /* in time order */
	size_t pause_count, sleep_count;
	/* intervals in which a thread worked for a promise that claimed the work only later, or for an unknown one of several
	 * promises; in order of their ends
	 */
	struct weft_interval *claims;
	size_t claim_count;
	/* in traces of several streams: intervals in which at least one thread slept and no thread ran a promise */
	struct weft_interval *lulls;
	size_t lull_count;
	uint64_t anomalies[WEFT_ANOMALY_COUNT]; /* number of occurrences, by enum weft_anomaly */
	/* off-CPU times of threads (kernel.h); NULL if the trace has none.  `whole` shares it */
	struct weft_kernel *kernel;
	struct weft_promise_allocation *allocations; /* sorted by promise, then by time */
	size_t allocation_count;
	struct weft_stack_sample *samples; /* stack samples, sorted by stream, then in order of time; `whole` has none */
	size_t sample_count;
	const struct weft_trace_info *trace; /* streams, sites and losses of the trace; valid until the trace is closed */
	/* The model of the trace up to the first missing event, up to which everything is known.  The promises of `whole` have
	 * the same numbers as in this model, which owns `whole`.  `whole` is NULL if no event is missing, or if the time of the
	 * first missing event is unknown. */
	struct weft_model *whole;
	bool is_whole; /* true if this model is the `whole` of another one, which ends early */
	/* true if is_whole, but events of some worker threads are missing earlier; these threads only ran promises of other
	 * threads */
	bool has_absent;
	struct weft_model_private *priv;
};

struct weft_model_options {
	bool keep_binds; /* true to leave binds where they were created (--no-simplify) */
	bool keep_parts; /* true to model internal promises separately, instead of as their owners (--parts) */
	/* true if the first events are a complete state dump, so that any other unknown promise was already over */
	bool knows_pending;
	/* NULL, or a callback that is called now and then on the building thread with the number of events read so far; it
	 * returns false to cancel the build. */
	bool (*go_on)(void *ctx, uint64_t events);
	void *ctx;
};

/* Reads the trace from its position to its end, and builds its model.
 *
 * The trace must live as long as the model, because texts point into the trace.  On failure *out is unchanged.  Fails with
 * WEFT_ENOMEM, WEFT_EIO, WEFT_EFORMAT (no events), WEFT_ETOOBIG (2^32 - 2 promises or more) or WEFT_ECANCELLED.  `options` may
 * be NULL.  Takes about 50 ns per event; if events are missing from some time on, the trace is read twice up to that time. */
int weft_model_build(
    struct weft_model **out, struct weft_trace *trace, const struct weft_model_options *options, struct weft_error *err);
void weft_model_destroy(struct weft_model *model);

/* Returns a text by its number, which must be a number of the model, not WEFT_NONE. */
struct weft_str weft_model_text(const struct weft_model *model, uint32_t text);

/* Returns the number of texts; every text number is smaller than this number. */
size_t weft_model_text_count(const struct weft_model *model);

/* Returns the number of a text; WEFT_NONE if the model does not have the text. */
uint32_t weft_model_find_text(const struct weft_model *model, struct weft_str text);

/* Returns the promise with a recorded id, or WEFT_NONE. */
uint32_t weft_model_find(const struct weft_model *model, int64_t id);

/* Returns the time at which an await ended although `from` had not read the result and `to` had not ended (struct
 * weft_await_end); INT64_MAX if it did not end in this way.  Logarithmic. */
int64_t weft_model_await_end(const struct weft_model *model, const struct weft_link *await);

/* Returns the site of the call in which the OS thread of the interval was blocked or slept; WEFT_NONE if it is unknown.
 * Logarithmic. */
uint32_t weft_model_place(const struct weft_model *model, const struct weft_interval *interval);

/* Returns the name of the function in which the OS thread of the interval was blocked or slept; WEFT_NONE if it is unknown.
 * Logarithmic. */
uint32_t weft_model_call(const struct weft_model *model, const struct weft_interval *interval);

/* Returns the site of the function of p that was called within from_ns..to_ns; WEFT_NONE if it is unknown.  Logarithmic. */
uint32_t weft_model_callback(const struct weft_model *model, uint32_t p, int64_t from_ns, int64_t to_ns);

/* Returns the samples of a stream's thread within from_ns..to_ns, and their number.  Logarithmic. */
const struct weft_stack_sample *weft_model_samples(
    const struct weft_model *model, uint16_t stream, int64_t from_ns, int64_t to_ns, size_t *count);

/* Returns the sampled allocations of a promise, and their number; WEFT_NONE stands for all promises that are not in the trace.
 * Logarithmic. */
const struct weft_promise_allocation *weft_model_allocations(const struct weft_model *model, uint32_t promise, size_t *count);

/* Returns the W3C traceparent that a request carried; empty if it carried none.  Logarithmic. */
struct weft_str weft_model_trace_parent(const struct weft_model *model, uint32_t promise);

/* Returns the call stack at the creation of a promise; empty if it is unknown.  Logarithmic. */
struct weft_str weft_model_callers(const struct weft_model *model, uint32_t promise);

/* Writes the text of a label as valid UTF-8 with a NUL at the end.  Returns the length of the text; if it does not fit, some
 * number of at least `size`. */
size_t weft_model_label(const struct weft_model *model, const struct weft_label *label, char *buf, size_t size);

/* Returns the change of the counter that a label shows. */
int64_t weft_model_change(const struct weft_model *model, const struct weft_label *label);

/* Returns the time until which the trace has events of a stream. */
static inline int64_t weft_model_stream_until(const struct weft_model *model, uint16_t stream)
{
	return model->stream_ends_ns ? model->stream_ends_ns[stream] : model->end_ns;
}

/* Returns the time until which the trace has events of a promise's stream: the end of the trace, or of the part of the
 * promise. */
static inline int64_t weft_model_until(const struct weft_model *model, uint32_t promise)
{
	return weft_model_stream_until(model, model->promises[promise].stream);
}

/* Returns the description of an anomaly, such as "ids created twice", to be printed after the number of its occurrences. */
const char *weft_anomaly_text(enum weft_anomaly anomaly);

/* Returns true if an error text means cancellation.  Runtimes use different words for it: "cancelled", "ECANCELED",
 * "Lwt.Canceled". */
bool weft_model_is_cancelled(const struct weft_model *model, uint32_t failure);

/* Returns true if a failed promise was cancelled.  In most cases the flags decide this without a comparison of texts. */
static inline bool weft_model_was_cancelled(const struct weft_model *model, const struct weft_promise *promise)
{
	return promise->flags & (WEFT_PROMISE_EXPECTED | WEFT_PROMISE_NEVER_RESOLVED) &&
	       weft_model_is_cancelled(model, promise->failure);
}

/* Returns the text number of a promise's first label, or WEFT_NONE.  Errors and counters are skipped; only the first 64 labels
 * are searched. */
uint32_t weft_model_name_text(const struct weft_model *model, uint32_t promise);

/* Writes the name of a promise: its first label that is no error and no counter; otherwise its site ("file.c:12 function");
 * otherwise its id. */
size_t weft_model_name(const struct weft_model *model, uint32_t promise, char *buf, size_t size);

/* Returns the name of a kind: "bind", "preexisting", "kind-77"; valid until the model is destroyed. */
const char *weft_model_kind_name(const struct weft_model *model, uint16_t kind);

#define WEFT__KIND_LISTED 0x80000000u
extern const uint32_t weft__kind_traits[WEFT_KIND_PREEXISTING + 1];

/* Returns the traits of a kind as bits of enum weft_trait, and perhaps other bits.  A kind that the list does not have gets the
 * traits of WEFT_KIND_UNKNOWN. */
static inline uint32_t weft_kind_traits(uint16_t kind)
{
	uint32_t traits = kind <= WEFT_KIND_PREEXISTING ? weft__kind_traits[kind] : 0;
	return traits ? traits : weft__kind_traits[WEFT_KIND_UNKNOWN];
}

/* Returns true if a kind has a trait (weft/vocabulary.h). */
static inline bool weft_kind_has(uint16_t kind, enum weft_trait trait)
{
	return weft_kind_traits(kind) & (uint32_t)trait;
}

#endif
