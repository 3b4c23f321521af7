/* model.h: promises, what they did to each other, when they ran.
 *
 * Promises are numbered from 0 in the order in which the trace first names them; 0 is the system.  Times are in ns since the
 * first event.  Everything is in a few flat arrays, at most 100 bytes an event; nothing is a tree of pointers.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_MODEL_H
#define WEFT_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "trace/trace.h"

#define WEFT_NONE UINT32_MAX /* no promise, no text, no site, no row */
#define WEFT_SYSTEM 0u       /* index of the system */

enum weft_end {
	WEFT_END_PENDING, /* not heard of again */
	WEFT_END_RESOLVED,
	WEFT_END_FAILED, /* with an error, or expected to resolve and never did */
	WEFT_END_BECAME
};

/* Kinds that only the model has, above all recorded ones. */
enum weft_model_kind { WEFT_KIND_SYSTEM = 256, WEFT_KIND_PREEXISTING = 257 };

enum weft_promise_flag {
	WEFT_PROMISE_CREATION_DRAWN = 1, /* a vertical line from its parent is drawn */
	WEFT_PROMISE_SHOULD_RESOLVE = 2,
	WEFT_PROMISE_NEVER_RESOLVED = 4, /* should have, did not: its end is the trace's */
	WEFT_PROMISE_START_UNKNOWN = 8,  /* created before the trace begins, or its creation was lost */
	WEFT_PROMISE_EXPECTED = 16,      /* it failed, and nothing went wrong: see weft_promise_went_wrong() */
	WEFT_PROMISE_ORPHAN = 32,    /* who created it is not in the trace: a state dump that tells of all tells of it alone */
	WEFT_PROMISE_CONNECTED = 64, /* a connection that is called "to ...": who made it did not accept it */
	WEFT_PROMISE_SENT = 128      /* it sent a message, as a call of another process */
};

struct weft_promise {
	int64_t id;       /* as recorded */
	int64_t start_ns; /* as drawn: a simplified bind starts where it was woken; negative if a state dump says so */
	union {
		int64_t end_ns;
		int64_t weft__heard_ns; /* of a pending one, until the last event: when something last concerned it */
	};
	uint32_t created_by; /* who made it: a smaller index; WEFT_NONE for the system */
	uint32_t parent;     /* under whom it is drawn; going up always ends at the system, whose parent is WEFT_NONE */
	uint32_t became;     /* WEFT_NONE unless end is WEFT_END_BECAME */
	uint32_t failure;    /* text, or WEFT_NONE */
	uint32_t site;       /* index into trace->sites, or WEFT_NONE */
	union {
		uint32_t labels;     /* its labels are [labels, next promise's labels) of weft_model.labels */
		uint32_t weft__into; /* until the last event: the promise that it became, itself if none; paths are shortened */
	};
	union {
		uint32_t runs;            /* its running intervals likewise in weft_model.runs */
		uint32_t weft__last_link; /* until the last event: its latest link, or WEFT_NONE */
	};
	uint16_t kind;   /* enum weft_kind or enum weft_model_kind */
	uint16_t stream; /* of the OS thread that created it */
	uint8_t end;     /* enum weft_end */
	uint8_t flags;   /* enum weft_promise_flag */
};

/* Whether it failed, or never resolved though it should, and that is worth a look.  It is not where it was cancelled, nor where
 * something was not there or came to its end and whoever read that went on without an error. */
static inline bool weft_promise_went_wrong(const struct weft_promise *promise)
{
	return promise->end == WEFT_END_FAILED && !(promise->flags & WEFT_PROMISE_EXPECTED);
}

enum weft_link_kind { WEFT_LINK_RESOLVE, WEFT_LINK_READ, WEFT_LINK_AWAIT, WEFT_LINK_SIGNAL, WEFT_LINK_KINDS };

/* `from` did it to `to`: resolved it, read it, waits for it, signalled it. */
struct weft_link {
	int64_t time_ns;
	uint32_t from, to;
	uint16_t stream;
	uint8_t kind; /* enum weft_link_kind */
};

/* From then on `from` waits for `to` no longer, whatever becomes of it. */
struct weft_await_end {
	int64_t time_ns;
	uint32_t from, to;
};

/* Who had called when a promise was created: weft_trace_callers() tells the sites. */
struct weft_stack {
	uint32_t promise;
	uint32_t weft__order;
	struct weft_str callers;
};

/* A message that a promise sent, or handles.  Of one that both ends of are in the trace, the sender awaits who handles it. */
struct weft_message {
	uint64_t number;
	uint32_t promise, text; /* text: through what, and of whom */
	uint32_t other;         /* who handles it, or sent it, or WEFT_NONE: that is not in the trace */
	bool is_handled;
};

/* Bytes that were read from a connection, and the last write that had some of them: both ends are in the trace. */
struct weft_transfer {
	int64_t sent_ns, received_ns;
	uint32_t by;       /* who ran at the write */
	uint32_t from, to; /* the two ends: what was written to, what was read from */
};

/* What a connection whose two ends are in the trace had carried at the trace's end, seen from one of them. */
struct weft_connection_end {
	uint32_t promise, peer;
	int64_t sent_ns, received_ns; /* when it last wrote, and last read; INT64_MIN: never */
	int64_t unread_ns;            /* when it wrote the first byte that the peer has not read; INT64_MAX: the peer has all */
	uint64_t unread_bytes;
	uint32_t by; /* who ran when it last wrote; WEFT_NONE: it did not */
};

/* On a connection, from this end: something was written, and then something was read.  Where the peer is asked, that is question
 * and answer; where it asks, an answer and the next question. */
struct weft_turn {
	int64_t asked_ns, last_ns; /* the first write since the answer before, and the last one */
	int64_t answered_ns;       /* INT64_MAX: nothing was read any more */
	uint32_t connection;
	uint32_t by, last_by; /* who ran at the first write, and at the last one */
	uint16_t stream;      /* where the first was */
	bool is_question;
};

/* The text of a label that stems from a counter is made when asked for: weft_model_label().  The error of a promise that failed
 * is its last label, at its end. */
struct weft_label {
	int64_t time_ns;
	uint32_t text;           /* of the label, or the name of the counter */
	uint32_t is_counter : 1; /* shown as name and signed change: "gntref+1" */
	uint32_t sample : 31;    /* of is_counter: index into that counter's samples, whose delta it shows */
};

struct weft_run {
	int64_t start_ns, end_ns;
};

/* What the kernel says became of a stretch of an OS thread's time, as it was about to sleep after a long round of its loop. Where
 * a loop is busy, earlier rounds and sleeps may be in the stretch. */
struct weft_round {
	int64_t start_ns, end_ns;
	int64_t had_ns;        /* it had a processor for so long */
	uint64_t given, taken; /* how often it gave the processor up by itself, and how often that was taken away */
	uint64_t minor, major; /* faults: pages that it touched and that were not there; major: that were read from a disk */
	uint16_t stream;
};

/* A signal that ends the program came while the promise ran. */
struct weft_death {
	int64_t time_ns;
	uint32_t promise, text; /* "SIGABRT" */
	uint16_t stream;
};

/* Why this is a copy that was kept, which is its last word. */
struct weft_keeping {
	int64_t time_ns;
	uint32_t text; /* or WEFT_NONE */
	uint16_t stream;
	bool runs_on; /* its program ran on when the copy was made */
};

/* By then a promise's code had been called that often since its OS thread last slept. */
struct weft_spin {
	int64_t time_ns;
	uint64_t calls;
	uint32_t promise;
};

struct weft_sample {
	int64_t time_ns;
	int64_t value;
	int64_t delta; /* from the sample before, or from 0 */
};

struct weft_counter {
	struct weft_str name;
	struct weft_sample *samples;
	size_t count;
	int64_t min, max;             /* of values and 0 */
	bool is_absolute;             /* its first sample says what it is, not by how much it changed */
	bool is_partial;              /* of weft_model.whole: changes are missing, of OS threads that are absent */
	int64_t scale_min, scale_max; /* shared by counters that differ after '#' only; has 0 and spans at least 1 */
};

/* A stretch in which nothing could run, or in which the OS thread slept. */
struct weft_stretch {
	int64_t start_ns, end_ns;
	uint32_t text; /* of a pause ("gc"); of a sleep "sleeping", "suspended" or "hibernating" */
	uint16_t stream;
};

/* X(NAME, "what, with its number before it"): what the events say that cannot be. */
#define WEFT_ANOMALIES(X)                                                                                                        \
	X(CREATED_TWICE, "ids created twice") /* a new promise takes the id over */                                              \
	X(CREATED_LATE, "promises used before their creation")                                                                   \
	X(ENDED_TWICE, "promises resolved or merged after their end") /* the first end counts */                                 \
	X(BECAME_ITSELF, "promises that became themselves")                                                                      \
	X(SYSTEM_MISUSED, "events that create, end or merge the system")                                                         \
	X(PAUSE_UNMATCHED, "pauses without a begin, or of negative length")                                                      \
	X(UNKNOWN_EVENT, "events of an unknown kind")

enum weft_anomaly {
#define WEFT_ANOMALY_ENUM(NAME, text) WEFT_ANOMALY_##NAME,
	WEFT_ANOMALIES(WEFT_ANOMALY_ENUM)
#undef WEFT_ANOMALY_ENUM
	    WEFT_ANOMALY_COUNT
};

struct weft_kernel;

struct weft_model {
	int64_t start_ns; /* the first event's time, as recorded */
	int64_t end_ns;   /* the last event's, since start_ns; later where the process is known to have lived on */
	uint64_t events;
	int64_t *stream_ends_ns;       /* by stream, of a trace that is joined of several: when its part ends; else NULL */
	struct weft_promise *promises; /* [promise_count] is a sentinel whose labels and runs end the last one's */
	size_t promise_count;          /* the system included */
	struct weft_link *links;       /* in time order */
	size_t link_count;
	struct weft_await_end *await_ends; /* by from, then to, then time */
	size_t await_end_count;
	struct weft_stack *stacks; /* by promise, one each */
	size_t stack_count;
	struct weft_spin *spins; /* in time order */
	size_t spin_count;
	struct weft_round *rounds; /* by when they end */
	size_t round_count;
	struct weft_death *deaths; /* in time order */
	size_t death_count;
	struct weft_keeping *keepings; /* in time order; of a trace of one recorder one, or none */
	size_t keeping_count;
	struct weft_message *messages; /* in time order */
	size_t message_count;
	struct weft_transfer *transfers; /* by `to`, then in time order */
	size_t transfer_count;
	struct weft_connection_end *ends; /* by promise */
	size_t end_count;
	struct weft_turn *turns; /* by connection, then in time order */
	size_t turn_count;
	struct weft_label *labels; /* by promise, then by time */
	size_t label_count;
	struct weft_run *runs; /* by promise, then by time */
	size_t run_count;
	uint16_t *run_streams; /* by run: on which OS thread; NULL: there is one only */
	bool *namesakes;       /* by stream: another OS thread of its process is called alike; NULL: there is one only */
	uint32_t *threads; /* by stream: the first promise of an OS thread there, WEFT_NONE, or, if they are called differently,
			      WEFT_SYSTEM; NULL: there are no namesakes */
	struct weft_counter *counters; /* by name */
	size_t counter_count;
	struct weft_stretch *pauses, *sleeps; /* in time order */
	size_t pause_count, sleep_count;
	struct weft_stretch *lulls; /* of a trace of several streams: one slept at least, and none ran anything */
	size_t lull_count;
	uint64_t anomalies[WEFT_ANOMALY_COUNT]; /* how often, by enum weft_anomaly */
	struct weft_kernel
	    *kernel; /* when OS threads had a processor (kernel.h); NULL: the trace does not say.  Of .whole the other's */
	const struct weft_trace_info *trace; /* streams, sites, what was lost: lives as long as the trace */
	/* Where events are missing from a moment on: the same trace as if its recording had ended then, up to which all is known.
	 * Its promises have the same numbers; it ends with this model.  NULL: nothing is missing, or nobody knows when. */
	struct weft_model *whole;
	bool is_whole;   /* of such a model: it ends early */
	bool has_absent; /* is_whole, but for OS threads that only ever did what others had begun: their events are missing
			    earlier */
	struct weft_model_private *priv;
};

struct weft_model_options {
	bool keep_binds;    /* leave binds where they were created (--no-simplify) */
	bool keep_parts;    /* tell of parts what happens to them, instead of their owners (--parts) */
	bool knows_pending; /* the first events tell of all that was pending then: whoever else is named was over */
	/* Unless NULL: called now and then, in the thread that builds, with how many events were read; false calls it off. */
	bool (*go_on)(void *ctx, uint64_t events);
	void *ctx;
};

/* Reads the trace from where it stands to its end, and builds its model.
 *
 * The trace must outlive the model: texts point into it.  On failure *out is untouched.  WEFT_ENOMEM, WEFT_EIO, WEFT_EFORMAT
 * (no events), WEFT_ETOOBIG (2^32 - 2 promises or more), WEFT_ECANCELLED.  `options` may be NULL.  About 50 ns an event, linear;
 * a trace in which events are missing from a moment on is read up to there once more.
 */
int weft_model_build(
    struct weft_model **out, struct weft_trace *trace, const struct weft_model_options *options, struct weft_error *err);
void weft_model_destroy(struct weft_model *model);

/* A text by its number; any number but WEFT_NONE that stands in the model. */
struct weft_str weft_model_text(const struct weft_model *model, uint32_t text);

/* Their numbers are below it. */
size_t weft_model_text_count(const struct weft_model *model);

/* The number of a text, or WEFT_NONE: it does not stand in the model. */
uint32_t weft_model_find_text(const struct weft_model *model, struct weft_str text);

/* The promise with that recorded id, or WEFT_NONE. */
uint32_t weft_model_find(const struct weft_model *model, int64_t id);

/* When an await came to its end without `from` having read or `to` having ended: see struct weft_await_end; INT64_MAX: it did
 * not. Logarithmic. */
int64_t weft_model_await_end(const struct weft_model *model, const struct weft_link *await);

/* Who had called when the promise was created; empty if nobody knows.  Logarithmic. */
struct weft_str weft_model_callers(const struct weft_model *model, uint32_t promise);

/* Writes a label's text, as valid UTF-8 and terminated; returns its length, or if it does not fit, some length of at least
 * `size`. */
size_t weft_model_label(const struct weft_model *model, const struct weft_label *label, char *buf, size_t size);

/* By how much the counter of a label was changed then. */
int64_t weft_model_change(const struct weft_model *model, const struct weft_label *label);

/* Until when the trace tells of an OS thread. */
static inline int64_t weft_model_stream_until(const struct weft_model *model, uint16_t stream)
{
	return model->stream_ends_ns ? model->stream_ends_ns[stream] : model->end_ns;
}

/* Until when the trace tells of a promise: to its end, or to that of the part that the promise is of. */
static inline int64_t weft_model_until(const struct weft_model *model, uint32_t promise)
{
	return weft_model_stream_until(model, model->promises[promise].stream);
}

/* "ids created twice", to stand behind its number. */
const char *weft_anomaly_text(enum weft_anomaly anomaly);

/* Whether an error says that somebody called it off.  Runtimes spell it differently: "cancelled", "ECANCELED", "Lwt.Canceled". */
bool weft_model_is_cancelled(const struct weft_model *model, uint32_t failure);

/* Whether a promise that failed did so since it was cancelled.  Only those that are expected to fail, and what never resolved,
 * need a look at the text. */
static inline bool weft_model_was_cancelled(const struct weft_model *model, const struct weft_promise *promise)
{
	return promise->flags & (WEFT_PROMISE_EXPECTED | WEFT_PROMISE_NEVER_RESOLVED) &&
	       weft_model_is_cancelled(model, promise->failure);
}

/* The text of a promise's first label (neither an error nor from a counter, and among the first 64), or WEFT_NONE. */
uint32_t weft_model_name_text(const struct weft_model *model, uint32_t promise);

/* What a promise is called: its first label (neither an error nor from a counter), else its site ("file.c:12 function"), else its
 * id. */
size_t weft_model_name(const struct weft_model *model, uint32_t promise, char *buf, size_t size);

/* "bind", "preexisting", "kind-77"; valid until the model ends. */
const char *weft_model_kind_name(const struct weft_model *model, uint16_t kind);

#define WEFT__KIND_LISTED 0x80000000u
extern const uint32_t weft__kind_traits[WEFT_KIND_PREEXISTING + 1];

/* Bits of enum weft_trait, and perhaps others; a kind that is not listed has the traits of WEFT_KIND_UNKNOWN. */
static inline uint32_t weft_kind_traits(uint16_t kind)
{
	uint32_t traits = kind <= WEFT_KIND_PREEXISTING ? weft__kind_traits[kind] : 0;
	return traits ? traits : weft__kind_traits[WEFT_KIND_UNKNOWN];
}

/* Whether a kind has a trait (weft/vocabulary.h). */
static inline bool weft_kind_has(uint16_t kind, enum weft_trait trait)
{
	return weft_kind_traits(kind) & (uint32_t)trait;
}

#endif
