/* request.h: the life of a request, from its question to its answer (private to adapters/).
 *
 * An adapter keeps a request for each connection, or for each stream of a connection, and decides which promise runs.  The
 * functions of this header record the start of the request, the result of its answer, its end, and the request in a checkpoint.
 * If this end asks, the asking promise awaits the request, and the request awaits its connection.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_REQUEST_H
#define WEFT_HOOK_REQUEST_H

#include "adapters/hook/label.h"
#include "protocol/protocol.h"

struct weft__hook_request {
	weft_id id;         /* 0: no request is open */
	weft_id by;         /* connection of the question, or promise that asks */
	weft_id asker;      /* promise that awaits the request; 0: none, or the other end has asked */
	bool is_unanswered; /* whether no byte of an answer has been seen */
	bool must_answer;   /* whether the protocol has an answer to each question of this type */
	uint64_t since;
	struct weft_record_place *site;
	struct weft_record_site *line; /* in a language; NULL: `site` is the place */
	struct weft_hook_label name;
};

/* Sets the place of a request that begins in the caller's call. */
void weft__hook_request_set_place(struct weft__hook_request *request, const void *caller);

/* Begins a request whose place and name are set.  `by` is its creator.  If this end asks, `asker` is the promise that awaits the
 * request, or 0, and `connection` is the connection that the request awaits, or 0; else both are 0. */
void weft__hook_request_begin(
    struct weft__hook_request *request, weft_id by, weft_id asker, weft_id connection, bool must_answer);

/* Records the W3C traceparent in the first bytes of the request that has begun, if they have one.  No other header's value is
 * recorded. */
void weft__hook_request_note_parent(
    const struct weft__hook_request *request, const struct weft_protocol_state *protocol, const void *bytes, size_t count);

/* Notes the result in the first bytes of an answer.  An interim answer leaves the request unanswered. */
void weft__hook_request_note_answer(
    struct weft__hook_request *request, const struct weft_protocol_state *protocol, const void *bytes, size_t count);

/* Ends the request, if it is open.  `error` says why the request has no answer; NULL if it has an answer. */
void weft__hook_request_end(struct weft__hook_request *request, weft_id by, struct weft_record_text *error);

/* Ends the answered request, and makes `reader` the recorded running promise, which reads the answer.  If `reader` is 0 or is not
 * the asker, the asker reads the answer later. */
void weft__hook_request_deliver(struct weft__hook_request *request, weft_id reader);

/* Returns why the open request of a connection that ends has no answer; NULL: it has an answer, or needs none.  `asks` says
 * whether this end asks, and `is_at_end` whether the other end sends nothing more. */
struct weft_record_text *weft__hook_request_get_loss(const struct weft__hook_request *request, bool asks, bool is_at_end);

/* Records the open request again, for a checkpoint of the ring.  `connection` is as for weft__hook_request_begin(). */
void weft__hook_request_repeat(const struct weft__hook_request *request, weft_id connection);

#endif
