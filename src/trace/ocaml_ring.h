/* ocaml_ring.h: reads the runtime events that an OCaml 5 program records in PID.events (private to src/trace).
 *
 * The header has 64-bit words in the byte order of the recording machine:
 *
 *	0 version, 1                      1 maximum number of domains       2 bytes of a ring's header, 80
 *	3 bytes of a ring                 4 words of a ring, 2^n            5 offset of the headers
 *	6 offset of the rings             7 offset of the names of user events, 128 bytes each; 0 in 5.0: there are none
 *
 * A ring's header has two counters of words since the program started: head, the first word that is still there, and tail.  An
 * event is a word `length << 54 | is_user << 53 | type << 49 | id << 36`, a time in ns, and data that depends on the type.  An
 * event of type 0 has no time, and fills the ring up to its end.  The writer moves the head before it overwrites words, and the
 * tail after the event is complete.  Therefore the words between a tail that was read before them and a head that was read
 * after them are valid.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_OCAML_RING_H
#define WEFT_TRACE_OCAML_RING_H

#include "trace/format.h"

enum { WEFT__OCAML_HEADER = 64, WEFT__OCAML_NAMES = 8192, WEFT__OCAML_NAME = 128 };

enum weft__ocaml_what {
	WEFT__OCAML_LIFECYCLE,
	WEFT__OCAML_BEGIN, /* start of a phase of the collector */
	WEFT__OCAML_END,
	WEFT__OCAML_COUNTER,
	WEFT__OCAML_ALLOC,
	WEFT__OCAML_UNIT, /* first of the types of user events */
	WEFT__OCAML_INT,
	WEFT__OCAML_SPAN_BEGIN,
	WEFT__OCAML_SPAN_END,
	WEFT__OCAML_CUSTOM,
	WEFT__OCAML_UNKNOWN /* a type that this reader does not know */
};

enum { WEFT__OCAML_RING_START, WEFT__OCAML_RING_STOP, WEFT__OCAML_DOMAIN_SPAWN = 6, WEFT__OCAML_DOMAIN_TERMINATE };

struct weft__ocaml_event {
	uint64_t time_ns;
	int64_t value;              /* for lifecycle, counter and int: the value, if has_value; for unknown events: the type */
	const unsigned char *bytes; /* for custom events: encoded data; for allocations: words */
	size_t size;
	uint16_t id; /* as in the file */
	uint8_t what;
	bool has_value, is_user;
};

struct weft__ocaml_ring {
	const unsigned char *words;
	uint64_t head, tail; /* range of valid words, counted since the program started */
	uint64_t lost;       /* number of overwritten words */
	uint64_t events;
	uint64_t last_ns; /* time of the last event */
	uint32_t number;  /* index of the ring among the file's rings */
	bool is_damaged;  /* true if bytes that are not an event follow the valid words */
};

struct weft__ocaml_file {
	const struct weft_blob *blob;
	uint64_t words, names_at;
	struct weft__ocaml_ring *rings; /* the rings that were used, by number */
	size_t ring_count;
	uint64_t pid;
	/* by name of an encoded event: the largest number at the start of such events, plus one; 0 if there is none */
	uint64_t most[WEFT__OCAML_NAMES];
	bool is_big;
	bool is_newer;   /* true if phases are numbered as in OCaml 5.3 and later */
	bool is_stopped; /* the program ended normally */
};

/* Returns true if the bytes are the start of a file of runtime events; needs at least 64 bytes. */
bool weft__ocaml_is(const unsigned char *bytes, size_t size);

/* Returns the number of bytes of ring headers that follow the file header. */
uint64_t weft__ocaml_rings_bytes(const unsigned char header[WEFT__OCAML_HEADER]);

/* Reads the headers in the blob, and all events once.  Events behind a damaged place are noted and dropped; words that the
 * program has overwritten since the copy are dropped too.  WEFT_ENOMEM.  The caller calls weft__ocaml_close() in any case. */
int weft__ocaml_open(struct weft__ocaml_file *file, struct weft_trace *trace, const struct weft_blob *blob);
void weft__ocaml_close(struct weft__ocaml_file *file);

/* Reads the event at *at, which must not be before the head of the ring, and moves *at after the event; returns false at the
 * tail of the ring. */
bool weft__ocaml_read(
    const struct weft__ocaml_file *file, const struct weft__ocaml_ring *ring, uint64_t *at, struct weft__ocaml_event *out);

/* Returns the name of a user event; empty if it has none. */
struct weft_str weft__ocaml_name(const struct weft__ocaml_file *file, uint16_t id);

/* A phase of the collector: OCaml's name of the phase, or NULL if this reader does not know it, and the reason why no code runs
 * in it. */
struct weft__ocaml_phase {
	const char *name;
	/* reason why no code runs, such as "gc, minor"; NULL if the phase only contains phases that have reasons */
	const char *why;
	const char *why_stop; /* reason if all domains stop for the phase */
};
const struct weft__ocaml_phase *weft__ocaml_phase(const struct weft__ocaml_file *file, uint16_t id);

/* Returns true if threads of the domain run during the phase. */
bool weft__ocaml_is_wait(const struct weft__ocaml_phase *phase);

/* Returns the name of a counter; NULL if this reader does not know it. */
const char *weft__ocaml_counter(uint16_t id);

#endif
