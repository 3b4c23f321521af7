/* ocaml_eio.h: what Eio's events mean: fibers, what they wait for, who ends it (private to src/trace).
 *
 * Eio numbers fibers, contexts, promises and other objects in one sequence from 0 on; weft's ids are these plus one, since 0 is
 * nobody.  What has no number in Eio gets one above all of these: OS threads, operations that a fiber sleeps in, turns at
 * a semaphore. SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_OCAML_EIO_H
#define WEFT_TRACE_OCAML_EIO_H

#include "base/idmap.h"
#include "base/vec.h"
#include "trace/ocaml_ring.h"

/* X(UPPER, "name", how it is recorded) */
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

/* What an object or a context is, as Eio numbers it. */
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
	int64_t id;    /* of what it is about, as Eio has it */
	int64_t other; /* of create_fiber: its context */
	struct weft_str text;
	uint8_t what; /* enum weft__eio_what */
	uint8_t type; /* of create_cc and create_obj */
	bool is_end;  /* of suspend_domain */
};

/* Which event of Eio bears this name. */
enum weft__eio_what weft__eio_what(struct weft_str name);

/* "mutex"; NULL: this reader does not know it. */
const char *weft__eio_type_name(enum weft__eio_what what, uint8_t type);

/* False: it is not what Eio records under this name. */
bool weft__eio_decode(struct weft__eio_event *out, enum weft__eio_what what, const struct weft__ocaml_event *ev);

/* What one event of the runtime becomes at most. */
enum { WEFT__EIO_MOST = 16 };

/* The event of Eio that is `nth` (from 0) after the one that is taken, in the same ring, if it is not too far away. */
typedef bool weft__eio_peek_fn(void *ctx, unsigned nth, struct weft__eio_event *out);

struct weft__eio_ring;
struct weft__eio_thing;
struct weft__eio_turn;

struct weft__eio {
	struct weft_idmap numbers;
	WEFT_VEC(struct weft__eio_thing) things;
	WEFT_VEC(struct weft__eio_turn) turns;
	WEFT_VEC(struct weft_str) said; /* errors, and names of spans */
	WEFT_VEC(char *) texts;         /* blocks; they outlive a rewind, since models point into them */
	size_t text_block, text_used, text_written;
	struct weft__eio_ring *rings;
	size_t ring_count;
	int64_t first_id, next_id; /* of what has no number */
	size_t told;               /* of the things, by weft__eio_still() */
	bool lacks_edges;          /* nothing is told of who ends a wait */
	int status;                /* WEFT_ENOMEM: something was not taken */

	/* Of the event that is taken: where to put what it becomes, and what it says of when and where. */
	struct weft_event *out;
	size_t count;
	int64_t now_ns;
	uint16_t stream;
	weft__eio_peek_fn *peek;
	void *peek_ctx;
};

/* All numbers of Eio's are up to `most`.  WEFT_ENOMEM.  Finish it in any case. */
int weft__eio_init(struct weft__eio *eio, size_t rings, uint32_t most);
void weft__eio_finish(struct weft__eio *eio);

/* Back to where it was in the beginning. */
void weft__eio_rewind(struct weft__eio *eio);

/* After the last event: frees what only events ask for.  A rewind begins anew. */
void weft__eio_forget(struct weft__eio *eio);

/* Puts at most WEFT__EIO_MOST events of weft's to eio->out, and counts them. */
void weft__eio_take(struct weft__eio *eio, const struct weft__eio_event *ev);

/* After the last event: who waits still, one fiber with its context; false: that was all. */
bool weft__eio_still(struct weft__eio *eio);

/* A domain begins to record into the stream's ring; `parent`: the fiber that made it, by Eio's number, or -1. */
void weft__eio_domain_begins(struct weft__eio *eio, int64_t parent);
void weft__eio_domain_ends(struct weft__eio *eio);

/* The OS thread of the stream's domain, which is made where nothing told of it. */
int64_t weft__eio_domain(struct weft__eio *eio);

/* Who acts now in the stream: a fiber, else the OS thread of its domain. */
int64_t weft__eio_actor(struct weft__eio *eio);

/* One event more of weft's. */
struct weft_event *weft__eio_put(struct weft__eio *eio, uint8_t op, int64_t a, int64_t b);

/* Joins two texts; the result lives as long as the trace. */
struct weft_str weft__eio_text(struct weft__eio *eio, const char *prefix, struct weft_str text);

/* The file's events, as OCaml's own reader has them: a line each, without its end.  A non-zero answer of `put` ends it. */
int weft__ocaml_lines(const struct weft__ocaml_file *file, weft_trace_line_fn *put, void *ctx);

#endif
