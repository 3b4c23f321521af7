/* protocol.h: finds the names of requests and the results of answers, from the first bytes of each message.
 *
 * These functions read bytes from untrusted peers, and check all of them.  The functions allocate nothing, make no system call,
 * and keep at most 64 bytes for each connection, so the recorder may call them on any thread and in signal handlers.  A name
 * consists of a method and the pattern of a path, of a command word, or of a statement's keyword and table, but never contains a
 * query string, key, value or body.  SPDX-License-Identifier: ISC */
#ifndef WEFT_PROTOCOL_PROTOCOL_H
#define WEFT_PROTOCOL_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weft_protocol {
	WEFT_PROTOCOL_UNKNOWN, /* nothing was read yet */
	WEFT_PROTOCOL_OTHER,   /* a protocol that is not in this list, for which no question is ever found */
	WEFT_PROTOCOL_HTTP1,
	WEFT_PROTOCOL_RESP, /* redis */
	WEFT_PROTOCOL_MEMCACHED,
	WEFT_PROTOCOL_POSTGRES,
	WEFT_PROTOCOL_LINES /* SMTP, POP3 or FTP, whose questions are a command word and a line */
};

/* State of one connection; initialise it with zeros.  Only one thread at a time may use the state. */
struct weft_protocol_state {
	uint8_t protocol; /* enum weft_protocol */
	uint8_t held;     /* number of held bytes of a question whose name is not complete */
	unsigned char head[62];
};

enum { WEFT_QUESTION_BYTES = 80, WEFT_HOST_BYTES = 40, WEFT_TRACE_PARENT_BYTES = 56 };

/* Name of a question, and what answer is expected. */
struct weft_question {
	char name[WEFT_QUESTION_BYTES]; /* name with a terminating NUL: "GET /orders/:id", "SET", "SELECT orders" */
	/* Number of questions in these bytes, counted up to 64; `name` is the name of the first question. */
	unsigned count;
	/* Whether an answer must follow; false for streams, farewells, and commands that wait for other clients. */
	bool must_answer;
};

/* Reads bytes from the end that asks questions.  Returns whether a question begins with these bytes, or with bytes that were
 * held before; if so, fills *question.  Returns false for the rest of a question, and for protocols without names.  Costs some
 * ns. */
bool weft_protocol_question(
    struct weft_protocol_state *state, const void *bytes, size_t count, bool has_paths, struct weft_question *question);

/* Copies the host that an HTTP/1 request is for, such as "api.example:8080", with a NUL.  Empty: it is not in these bytes, which
 * begin with the request, or is too long. */
void weft_protocol_host(const void *bytes, size_t count, char host[WEFT_HOST_BYTES]);

/* Copies the value of the header traceparent of an HTTP/1 request, with a NUL.  Empty: these bytes, which begin with the request,
 * have no valid one. */
void weft_protocol_trace_parent(const void *bytes, size_t count, char parent[WEFT_TRACE_PARENT_BYTES]);

/* The decoded head of an HTTP/2 request: strings, or NULL. */
struct weft_http2_head {
	const char *method, *path, *scheme, *host;
};

/* Writes the name of an HTTP/2 request: "GET /orders/:id", or "GET https://host/orders/:id" with a scheme and a host. */
void weft_protocol_http2_name(const struct weft_http2_head *head, char name[WEFT_QUESTION_BYTES]);

/* The result of an answer. */
struct weft_answer {
	char result[8];  /* result with a terminating NUL: "404", "error"; empty if unknown */
	bool is_error;   /* whether the answer says that the server failed */
	bool is_interim; /* whether another answer to the same question follows */
};

/* Reads the first bytes of an answer, and fills *answer. */
void weft_protocol_answer(const struct weft_protocol_state *state, const void *bytes, size_t count, struct weft_answer *answer);

/* Reads the question of a DNS message over UDP.  Returns false if the bytes are no DNS message. */
struct weft_dns {
	uint16_t number;
	bool is_answer;
	char name[WEFT_QUESTION_BYTES]; /* "host.example A" */
	char result[10];                /* result of an answer: "", "NXDOMAIN", ... */
};
bool weft_protocol_dns(const void *bytes, size_t count, struct weft_dns *dns);

#endif
