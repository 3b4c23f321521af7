/* connection_detail.h: parses the recorded detail of a connection.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_CONNECTION_DETAIL_H
#define WEFT_TRACE_CONNECTION_DETAIL_H

#include "trace/trace.h"

/* One end of a connection; the strings are parts of the detail's text. */
struct weft_connection_detail {
	/* protocol; own address; address of the peer, whose own detail has the two addresses in reverse order */
	struct weft_str protocol, own, peer;
	uint64_t received;
};

/* Parses a detail; returns false, with *out unchanged, if the text is not the detail of a connection. */
bool weft_connection_detail_parse(struct weft_str text, struct weft_connection_detail *out);

/* Returns the byte position nearest to `before` that has the given low 32 bits. */
static inline uint64_t weft_connection_position(uint64_t before, int64_t low)
{
	return before + (uint64_t)(int64_t)(int32_t)((uint32_t)low - (uint32_t)before);
}

#endif
