/* ocaml_eio.h: converts Eio's events: fibers, what they wait for, and what ends the wait (private to src/trace).
 *
 * Eio numbers fibers, contexts, promises and other objects in one sequence from 0. weft's ids are these numbers plus one,
 * because 0 means none.  Threads, operations in which a fiber sleeps, and acquires of semaphores have no number in Eio, so they
 * get ids above all of Eio's numbers.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_OCAML_EIO_H
#define WEFT_TRACE_OCAML_EIO_H

#include "base/idmap.h"
#include "base/vec.h"
#include "trace/ocaml_ring.h"

/* X(UPPER, "name", how the event is recorded) */
#define WEFT__EIO_EVENTS(X)                                                                                                      \
	X(CREATE_FIBER, "eio.create_fiber", CUSTOM)                                                                              \
	X(CREATE_CC, "eio.create_cc", CUSTOM)                                                                                    \
	X(CREATE_OBJ, "eio.create_obj", CUSTOM)                                                                                  \
	X(ERROR, "eio.error", CUSTOM)                                                                                            \
	X(NAME, "eio.name", CUSTOM)                                                                                              \
	X(LOG, "eio.log", CUSTOM)                                                                                                \
	X(ENTER_SPAN, "eio.enter_span", CUSTOM)                                                                                  \
	X(SUSPEND_FIBER, "eio.suspend_fiber", CUSTOM)                                                                            \
	X(EXIT_CC, "eio.exit_cc", UNIT)                                                                                          \
	X(EXIT_SPAN, "eio.exit_span", UNIT)                                                                                      \
	X(FIBER, "eio.fiber", INT)                                                                                               \
	X(EXIT_FIBER, "eio.exit_fiber", INT)                                                                                     \
	X(TRY_GET, "eio.try_get", INT)                                                                                           \
	X(GET, "eio.get", INT)                                                                                                   \
	X(PUT, "eio.put", INT)                                                                                                   \
	X(DOMAIN_SPAWN, "eio.domain_spawn", INT)                                                                                 \
	X(SUSPEND_DOMAIN, "eio.suspend_domain", SPAN_BEGIN)

enum weft__eio_what {
	WEFT__EIO_NONE,
#define WEFT__EIO_ENUM(UPPER, name, how) WEFT__EIO_##UPPER,
	WEFT__EIO_EVENTS(WEFT__EIO_ENUM)
#undef WEFT__EIO_ENUM
};

/* Types of objects and contexts, with the numbers that Eio uses. */
enum {
	WEFT__EIO_SWITCH = 3,
	WEFT__EIO_PROTECT,
	WEFT__EIO_SUB,
	WEFT__EIO_ROOT,
	WEFT__EIO_ANY,
	WEFT__EIO_PROMISE = 15,
	WEFT__EIO_SEMAPHORE,
	WEFT__EIO_STREAM = 18,
	WEFT__EIO_MUTEX
};

struct weft__eio_event {
	int64_t id;    /* Eio's number of the entity that the event is about */
	int64_t other; /* create_fiber: its context */
	struct weft_str text;
	uint8_t what; /* enum weft__eio_what */
	uint8_t type; /* create_cc and create_obj: type */
	bool is_end;  /* suspend_domain: its end */
};

/* Returns the event type with the given name. */
enum weft__eio_what weft__eio_what(struct weft_str name);

/* Returns the name of an object's type, such as "mutex"; NULL if this reader does not know the type. */
const char *weft__eio_type_name(enum weft__eio_what what, uint8_t type);

/* Decodes an event; returns false if its content does not match its type. */
bool weft__eio_decode(struct weft__eio_event *out, enum weft__eio_what what, const struct weft__ocaml_event *ev);

/* Maximum number of weft's events that one runtime event becomes. */
enum { WEFT__EIO_MAX_EVENTS = 16 };

/* Returns the Eio event that is `nth` (from 0) after the current event in the same ring; returns false if that event is too far
 * away. */
typedef bool weft__eio_peek_fn(void *ctx, unsigned nth, struct weft__eio_event *out);

struct weft__eio_ring;
struct weft__eio_entity;
struct weft__eio_acquire;

struct weft__eio {
	struct weft_idmap numbers;
	WEFT_VEC(struct weft__eio_entity) entities;
	WEFT_VEC(struct weft__eio_acquire) acquires;
	WEFT_VEC(struct weft_str) said; /* texts of errors and names of spans */
	WEFT_VEC(char *) texts;         /* memory blocks of texts, which are kept after a rewind because models point into them */
	size_t text_block, text_used, text_written;
	struct weft__eio_ring *rings;
	size_t ring_count;
	int64_t first_id, next_id; /* ids for entities without a number in Eio: the first id; the next id */
	size_t reported_count;     /* number of entities that weft__eio_put_pending_wait() has reported */
	bool omits_wakers;         /* true if the trace does not record what ends waits */
	int status;                /* WEFT_ENOMEM if an event was not converted */

	/* The current event: buffer for the converted events, time and stream. */
	struct weft_event *out;
	size_t count;
	int64_t now_ns;
	uint16_t stream;
	weft__eio_peek_fn *peek;
	void *peek_ctx;
};

/* Initializes the state; Eio's numbers are at most `most`.  WEFT_ENOMEM.  The caller calls weft__eio_finish() in any case. */
int weft__eio_init(struct weft__eio *eio, size_t rings, uint32_t most);
void weft__eio_finish(struct weft__eio *eio);

/* Returns to the initial state, for reading the trace again. */
void weft__eio_rewind(struct weft__eio *eio);

/* Frees memory that is needed only while events come; called after the last event.  A rewind starts again. */
void weft__eio_clear(struct weft__eio *eio);

/* Converts an event to at most WEFT__EIO_MAX_EVENTS events at eio->out, and counts them. */
void weft__eio_convert(struct weft__eio *eio, const struct weft__eio_event *ev);

/* Reports a fiber that still waits after the last event, with its context; returns false if there are no more. */
bool weft__eio_put_pending_wait(struct weft__eio *eio);

/* Starts a domain in the stream's ring; `parent` is Eio's number of the fiber that created the domain, or -1. */
void weft__eio_domain_begins(struct weft__eio *eio, int64_t parent);
void weft__eio_domain_ends(struct weft__eio *eio);

/* Returns the promise of the thread of the stream's domain; creates the promise if it is unknown. */
int64_t weft__eio_domain(struct weft__eio *eio);

/* Returns the promise that acts in the stream: its guest, a fiber, or the thread of its domain. */
int64_t weft__eio_actor(struct weft__eio *eio);

/* Sets the promise of another library (Lwt) that acts in the stream instead of its fiber; 0 for none. */
void weft__eio_set_guest(struct weft__eio *eio, int64_t id);

/* Returns whether a fiber is running in the stream. */
bool weft__eio_is_in_fiber(struct weft__eio *eio);

/* Appends one event. */
struct weft_event *weft__eio_put_event(struct weft__eio *eio, uint8_t op, int64_t a, int64_t b);

/* Joins a name and the hexadecimal digits of bytes: "own.state: 0a0b"; the result is valid until the trace is closed. */
struct weft_str weft__eio_join_hex(struct weft__eio *eio, struct weft_str name, const unsigned char *bytes, size_t size);

/* Joins two texts; the result is valid until the trace is closed. */
struct weft_str weft__eio_join_text(struct weft__eio *eio, const char *prefix, struct weft_str text);

/* Passes the events of the file to write_line as OCaml's own reader prints them, one line each, without line ends.  A non-zero
 * result of write_line stops the output. */
int weft__ocaml_lines(const struct weft__ocaml_file *file, weft_trace_line_fn *write_line, void *ctx);

#endif
