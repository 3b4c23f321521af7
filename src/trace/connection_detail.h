/* connection_detail.h: the recorded detail of a connection.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_CONNECTION_DETAIL_H
#define WEFT_TRACE_CONNECTION_DETAIL_H

#include "trace/trace.h"

/* One end of a connection; the strings are parts of the detail's text. */
struct weft_connection_detail {
	struct weft_str protocol, own, peer; /* the other end has the two addresses in reverse order */
	uint64_t received;
};

/* Returns false if the text is not such a detail; *out is unchanged then. */
bool weft_connection_detail_parse(struct weft_str text, struct weft_connection_detail *out);

/* Returns the position nearest to `before` that has these low 32 bits. */
static inline uint64_t weft_connection_position(uint64_t before, int64_t low)
{
	return before + (uint64_t)(int64_t)(int32_t)((uint32_t)low - (uint32_t)before);
}

#endif
