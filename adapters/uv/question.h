/* question.h: requests on connections of libuv, and their answers (private to adapters/uv).
 *
 * A question on an accepted connection begins a promise of kind request, whose callback the read is.  The first bytes of the
 * answer end it; if the callback that read the question answers it, its end is the end of that callback.
 *
 * A question that the program writes begins a request of the promise that asks, which awaits it.  The first bytes of the answer
 * end it.  Names are from src/protocol.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_UV_QUESTION_H
#define WEFT_ADAPTERS_UV_QUESTION_H

#include "adapters/uv/common.h"

/* Records what was read from an accepted connection; call it after the read.  `input` is the promise of that read, or 0.
 * Returns the promise whose code is called for this input, which is the open request or the connection. */
weft_id weft__uv_question_read(const struct weft__uv_object *connection, weft_id input, const uv_buf_t *buf, ssize_t got);

/* Call when a connection that asks was read.  Returns the promise whose code is called for this input: the request of an accepted
 * connection that asked and is still open, whose actor goes to *actor; or the answered request; or the connection. */
weft_id weft__uv_question_get_answer(
    const struct weft__uv_object *connection, const void *bytes, ssize_t got, weft__uv_tag *actor);

/* Call after that code.  The connection may have ended. */
void weft__uv_question_leave(const struct weft__uv_object *connection);

/* Call before a write to a connection that asks. */
void weft__uv_question_ask(struct weft__uv_object *connection, const uv_buf_t bufs[], unsigned count);

/* Returns the promise that asks if the program asks now: it is the one that runs, or that asked what is answered now.  note_asker
 * also notes for a stream which actor works, and for which request. */
weft_id weft__uv_question_get_asker(void);
weft_id weft__uv_question_note_asker(struct weft__uv_object *stream);

/* Call after a write that libuv has accepted. */
void weft__uv_question_answer(const struct weft__uv_object *connection, const uv_buf_t bufs[], unsigned count);

/* Notes that the connection is encrypted.  Then the other calls get what a TLS library decrypts and encrypts. */
void weft__uv_question_encrypt(struct weft__uv_object *connection);

/* Call when bytes of an encrypted connection were decrypted.  In the callback of its read the promise whose code is called for
 * them runs from now on. */
void weft__uv_question_decrypted(const struct weft__uv_object *connection, const void *bytes, size_t got);

/* Records that a request of this end runs, because its answer was read. */
void weft__uv_question_run_answered(weft_id request, weft_id asker);

/* Ends the open request, since its connection ends. */
void weft__uv_question_end(const struct weft__uv_object *connection);

/* Records the open request again, for a checkpoint of the ring. */
void weft__uv_question_list(const struct weft__uv_object *connection);

#endif
