/* question.h: requests on connections of libuv, and their answers (private to adapters/uv).
 *
 * A question on an accepted connection begins a request, a promise as which the callback of the read then runs.  The first bytes
 * of the answer end the request; if the callback itself answers, the request ends with the callback.
 *
 * A question that the program writes begins a request, which the asking promise awaits.  The first bytes of the answer end this
 * request.  Names of requests are from src/protocol.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_UV_QUESTION_H
#define WEFT_ADAPTERS_UV_QUESTION_H

#include "adapters/uv/common.h"

/* Records the bytes that were read from an accepted connection.  `input` is the promise of the read, or 0.  Returns the promise
 * as which the callback of the read runs: the open request or the connection.  Call this function after the read. */
weft_id weft__uv_question_read(const struct weft__uv_object *connection, weft_id input, const uv_buf_t *buf, ssize_t got);

/* Records the bytes that were read from a connection to which the program writes questions.  Returns the promise as which the
 * callback of the read runs: the open request of the accepted connection for which the program asked, and stores the actor of
 * that request in *actor; or the answered request; or the connection. */
weft_id weft__uv_question_get_answer(
    const struct weft__uv_object *connection, const void *bytes, ssize_t got, weft__uv_tag *actor);

/* Ends the request that the callback of a read has answered.  Call this function after the callback, also if the connection has
 * ended. */
void weft__uv_question_leave(const struct weft__uv_object *connection);

/* Begins a request for a question that the program is about to write to a connection. */
void weft__uv_question_ask(struct weft__uv_object *connection, const uv_buf_t bufs[], unsigned count);

/* Return the promise that would be the asker of a question written now: the running promise or, while the callback of an answer
 * runs, the asker of the answered request.  note_asker also stores the working actor and its request in a stream. */
weft_id weft__uv_question_get_asker(void);
weft_id weft__uv_question_note_asker(struct weft__uv_object *stream);

/* Ends the open request of an accepted connection with its answer.  Call this function after a write that libuv has accepted. */
void weft__uv_question_answer(const struct weft__uv_object *connection, const uv_buf_t bufs[], unsigned count);

/* Marks the connection as encrypted.  The other functions then get the bytes that a TLS library decrypts and encrypts. */
void weft__uv_question_encrypt(struct weft__uv_object *connection);

/* Records decrypted bytes of an encrypted connection.  Inside the callback of the connection's read, the promise to which the
 * bytes belong runs from now on. */
void weft__uv_question_decrypted(const struct weft__uv_object *connection, const void *bytes, size_t got);

/* Records that a request of this end runs, because its answer was read. */
void weft__uv_question_run_answered(weft_id request, weft_id asker);

/* Ends the open request, since its connection ends. */
void weft__uv_question_end(const struct weft__uv_object *connection);

/* Records the open request again, for a checkpoint of the ring. */
void weft__uv_question_list(const struct weft__uv_object *connection);

#endif
