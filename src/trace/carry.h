/* carry.h: what a trace tells of a connection.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_CARRY_H
#define WEFT_TRACE_CARRY_H

#include "trace/trace.h"

/* A connection as one end tells it, by the text of a detail: parts of that text. */
struct weft_carry {
	struct weft_str protocol, own, peer; /* the other end has the two addresses the other way round */
	uint64_t received;
};

/* false: it is no such text, and *out is as it was. */
bool weft_carry_parse(struct weft_str text, struct weft_carry *out);

/* The position that has these low bits and is nearest to one before. */
static inline uint64_t weft_carry_position(uint64_t before, int64_t low)
{
	return before + (uint64_t)(int64_t)(int32_t)((uint32_t)low - (uint32_t)before);
}

#endif
