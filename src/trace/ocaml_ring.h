/* ocaml_ring.h: the file of runtime events that a program of OCaml 5 writes about itself, PID.events (private to src/trace).
 *
 * Words of 64 bits, in the byte order of the machine that wrote them:
 *
 *	0 version, 1                      1 domains that there may be       2 bytes of a ring's header, 80
 *	3 bytes of a ring                 4 words of a ring, 2^n            5 where the headers begin
 *	6 where the rings begin           7 where the names of users' events begin, 128 bytes each; 5.0: 0, there are none
 *
 * A ring's header is two counters of words since the program began: head, from which on the words are still there, and tail.  An
 * event is a word `length << 54 | is_user << 53 | type << 49 | id << 36`, a time in ns and what its type needs; one that has no
 * time, of type 0, fills the ring up to its end.  The writer moves the head before it overwrites anything, the tail when all of
 * the event is there: so what is between a tail that was read before the words and a head that was read after them is whole.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_OCAML_RING_H
#define WEFT_TRACE_OCAML_RING_H

#include "trace/format.h"

enum { WEFT__OCAML_HEADER = 64, WEFT__OCAML_NAMES = 8192, WEFT__OCAML_NAME = 128 };

enum weft__ocaml_what {
	WEFT__OCAML_LIFECYCLE,
	WEFT__OCAML_BEGIN, /* of a phase of the collector */
	WEFT__OCAML_END,
	WEFT__OCAML_COUNTER,
	WEFT__OCAML_ALLOC,
	WEFT__OCAML_UNIT, /* from here on a user's */
	WEFT__OCAML_INT,
	WEFT__OCAML_SPAN_BEGIN,
	WEFT__OCAML_SPAN_END,
	WEFT__OCAML_CUSTOM,
	WEFT__OCAML_UNKNOWN /* a type that this reader does not know */
};

enum { WEFT__OCAML_RING_START, WEFT__OCAML_RING_STOP, WEFT__OCAML_DOMAIN_SPAWN = 6, WEFT__OCAML_DOMAIN_TERMINATE };

struct weft__ocaml_event {
	uint64_t time_ns;
	int64_t value;              /* of lifecycle, counter and int, if has_value; of unknown: its type */
	const unsigned char *bytes; /* of custom: what was encoded; of alloc: words */
	size_t size;
	uint16_t id; /* as the file has it */
	uint8_t what;
	bool has_value, is_user;
};

struct weft__ocaml_ring {
	const unsigned char *words;
	uint64_t head, tail; /* what is there, and whole; in words since the program began */
	uint64_t lost;       /* words that were overwritten */
	uint64_t events;
	uint64_t last_ns; /* of the last event */
	uint32_t number;  /* among the file's rings */
	bool is_damaged;  /* after what is there comes something that is no event */
};

struct weft__ocaml_file {
	const struct weft_blob *blob;
	uint64_t words, names_at;
	struct weft__ocaml_ring *rings; /* that have been written to, by number */
	size_t ring_count;
	uint64_t pid;
	uint64_t most[WEFT__OCAML_NAMES]; /* by the name of an encoded event: the largest of the numbers that they begin with,
					     plus one; 0: none */
	bool is_big;
	bool is_newer;   /* phases are numbered as from 5.3 on */
	bool is_stopped; /* the program came to its end by itself */
};

/* Whether these first bytes, 64 at least, are those of such a file. */
bool weft__ocaml_is(const unsigned char *bytes, size_t size);

/* Of a file that begins so: how many bytes behind these are the headers of rings. */
uint64_t weft__ocaml_rings_bytes(const unsigned char header[WEFT__OCAML_HEADER]);

/* Reads the headers of the trace's blob, and over all events once: what stands behind damage is noted, and left out.  What a
 * program has overwritten since the blob was copied is left out too.  WEFT_ENOMEM.  Finish it in any case. */
int weft__ocaml_open(struct weft__ocaml_file *file, struct weft_trace *trace, const struct weft_blob *blob);
void weft__ocaml_close(struct weft__ocaml_file *file);

/* Reads the event at *at, at or behind the ring's head, and moves *at behind it; false at the ring's tail. */
bool weft__ocaml_read(
    const struct weft__ocaml_file *file, const struct weft__ocaml_ring *ring, uint64_t *at, struct weft__ocaml_event *out);

/* The name of a user's event; empty: it has none. */
struct weft_str weft__ocaml_name(const struct weft__ocaml_file *file, uint16_t id);

/* What a phase is called by OCaml, NULL if this reader does not know it, and why nothing runs meanwhile. */
struct weft__ocaml_phase {
	const char *name;
	const char *why;      /* "gc, minor"; NULL: it only holds others, which say why */
	const char *why_stop; /* the same where all domains stop for it */
};
const struct weft__ocaml_phase *weft__ocaml_phase(const struct weft__ocaml_file *file, uint16_t id);

/* While one of these lasts, OS threads of its domain run. */
bool weft__ocaml_is_wait(const struct weft__ocaml_phase *phase);

/* What a counter is called; NULL: this reader does not know it. */
const char *weft__ocaml_counter(uint16_t id);

#endif
