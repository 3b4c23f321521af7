/* proto.h: writes messages of Protocol Buffers, inner messages first.  Private to src/export.
 *
 * The encoding is that of https://protobuf.dev/programming-guides/encoding: a field is its number and a type, and then a varint,
 * eight bytes, or a length and that many bytes.  The code is written by hand, because about 100 fields of two formats
 * need no generated code.  SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_PROTO_H
#define WEFT_EXPORT_PROTO_H

#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"

/* A message buffer.  A zeroed buffer is empty; the owner of a buffer frees bytes.items.  After no_memory was set, nothing more
 * is added to the message. */
struct weft__proto {
	WEFT_VEC(unsigned char) bytes;
	bool no_memory;
};

static inline void weft__proto_reset(struct weft__proto *m)
{
	m->bytes.count = 0;
}

void weft__proto_uint(struct weft__proto *m, unsigned field, uint64_t value);
void weft__proto_fixed32(struct weft__proto *m, unsigned field, uint32_t value);
void weft__proto_fixed64(struct weft__proto *m, unsigned field, uint64_t value);
void weft__proto_bytes(struct weft__proto *m, unsigned field, const void *bytes, size_t size);
void weft__proto_text(struct weft__proto *m, unsigned field, const char *text);

/* Writes the message `inner` as a field of the message `m`. */
void weft__proto_message(struct weft__proto *m, unsigned field, const struct weft__proto *inner);

#endif
