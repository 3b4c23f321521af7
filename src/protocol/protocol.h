/* protocol.h: the names of requests and the results of answers, from the first bytes of each.
 *
 * These functions read bytes that others wrote and trust none of them.  They allocate nothing, call nothing, and keep at most 64
 * bytes for each connection, so the recorder may call them on any thread and in signal handlers.  A name has a method and the
 * pattern of a path, a command word, or a statement's keyword and table: never a query string, key, value or body.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_PROTOCOL_PROTOCOL_H
#define WEFT_PROTOCOL_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weft_protocol {
	WEFT_PROTOCOL_UNKNOWN, /* nothing was read yet */
	WEFT_PROTOCOL_OTHER,   /* no protocol of this list: no question is ever found */
	WEFT_PROTOCOL_HTTP1,
	WEFT_PROTOCOL_RESP, /* redis */
	WEFT_PROTOCOL_MEMCACHED,
	WEFT_PROTOCOL_POSTGRES,
	WEFT_PROTOCOL_LINES /* SMTP, POP3, FTP: a command word and a line */
};

/* The state of one connection; initialise it with zeros.  One thread at a time may use it. */
struct weft_protocol_state {
	uint8_t protocol; /* enum weft_protocol */
	uint8_t held;     /* bytes of a question whose name is not complete */
	unsigned char head[62];
};

enum { WEFT_QUESTION_BYTES = 80, WEFT_HOST_BYTES = 40 };

/* The name of a question, and what is expected of it. */
struct weft_question {
	char name[WEFT_QUESTION_BYTES]; /* with a NUL: "GET /orders/:id", "SET", "SELECT orders" */
	unsigned count;                 /* questions in these bytes, counted up to 64; the first one has the name */
	bool must_answer;               /* false for streams, farewells, and commands that wait for others */
};

/* Reads bytes of the side that asks.  Returns whether a question begins with them, or with bytes that were held before; then
 * fills *question.  Returns false for the rest of a question and for protocols without names.  Costs some ns. */
bool weft_protocol_question(
    struct weft_protocol_state *state, const void *bytes, size_t count, bool has_paths, struct weft_question *question);

/* Copies the host that an HTTP/1 request is for, such as "api.example:8080", with a NUL.  Empty: it is not in these bytes, which
 * begin with the request, or is too long. */
void weft_protocol_host(const void *bytes, size_t count, char host[WEFT_HOST_BYTES]);

/* The decoded head of an HTTP/2 request: strings, or NULL. */
struct weft_http2_head {
	const char *method, *path, *scheme, *host;
};

/* Writes the name of an HTTP/2 request: "GET /orders/:id", or "GET https://host/orders/:id" with a scheme and a host. */
void weft_protocol_http2_name(const struct weft_http2_head *head, char name[WEFT_QUESTION_BYTES]);

/* The result of an answer. */
struct weft_answer {
	char result[8];  /* with a NUL: "404", "error"; empty: unknown */
	bool is_error;   /* the answer says that the server failed */
	bool is_interim; /* another answer to the same question follows */
};

/* Reads the first bytes of an answer; fills *answer. */
void weft_protocol_answer(const struct weft_protocol_state *state, const void *bytes, size_t count, struct weft_answer *answer);

/* The question of a DNS message over UDP.  Returns false if the bytes are none. */
struct weft_dns {
	uint16_t number;
	bool is_answer;
	char name[WEFT_QUESTION_BYTES]; /* "host.example A" */
	char result[10];                /* of an answer: "", "NXDOMAIN", ... */
};
bool weft_protocol_dns(const void *bytes, size_t count, struct weft_dns *dns);

#endif
