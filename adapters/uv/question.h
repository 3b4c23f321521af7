/* question.h: requests that arrive on connections of libuv, and their answers (private to adapters/uv).
 *
 * A question on an accepted connection begins a promise of kind request, whose callback the read is.  The first bytes of the
 * answer end it; if the callback that read the question answers it, its end is the end of that callback.  Names are from
 * src/protocol.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_UV_QUESTION_H
#define WEFT_ADAPTERS_UV_QUESTION_H

#include "adapters/uv/common.h"

/* Call when an accepted connection was read; `input` is the promise of that read, or 0.  Returns the promise whose code is called
 * for this input: the open request, or the connection. */
weft_id weft__uv_question_read(const struct weft__uv_object *connection, weft_id input, const uv_buf_t *buf, ssize_t got);

/* Call after that code.  The connection may have ended. */
void weft__uv_question_leave(const struct weft__uv_object *connection);

/* Call after a write that libuv has accepted. */
void weft__uv_question_answer(const struct weft__uv_object *connection, const uv_buf_t bufs[], unsigned count);

/* Ends the open request, since its connection ends. */
void weft__uv_question_end(const struct weft__uv_object *connection);

/* Repeats the open request for a checkpoint of the ring. */
void weft__uv_question_list(const struct weft__uv_object *connection);

#endif
