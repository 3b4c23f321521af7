/* proto.c: encodes Protocol Buffers (proto.h).
 * SPDX-License-Identifier: ISC */
#include "export/proto.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5, MAX_VARINT_BYTES = 10 };

static bool reserve_bytes(struct weft__proto *m, size_t bytes)
{
	m->no_memory |= !weft_vec_reserve(&m->bytes, bytes);
	return !m->no_memory;
}

static void put_varint(struct weft__proto *m, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		m->bytes.items[m->bytes.count++] = (unsigned char)(value | 0x80);
	m->bytes.items[m->bytes.count++] = (unsigned char)value;
}

void weft__proto_uint(struct weft__proto *m, unsigned field, uint64_t value)
{
	if (!reserve_bytes(m, 2 * MAX_VARINT_BYTES))
		return;
	put_varint(m, field << 3 | VARINT);
	put_varint(m, value);
}

static void put_fixed(struct weft__proto *m, unsigned field, uint64_t value, unsigned type, int bytes)
{
	if (!reserve_bytes(m, MAX_VARINT_BYTES + 8))
		return;
	put_varint(m, field << 3 | type);
	for (int i = 0; i < bytes; i++)
		m->bytes.items[m->bytes.count++] = (unsigned char)(value >> 8 * i);
}

void weft__proto_fixed32(struct weft__proto *m, unsigned field, uint32_t value)
{
	put_fixed(m, field, value, FIXED32, 4);
}

void weft__proto_fixed64(struct weft__proto *m, unsigned field, uint64_t value)
{
	put_fixed(m, field, value, FIXED64, 8);
}

void weft__proto_bytes(struct weft__proto *m, unsigned field, const void *bytes, size_t size)
{
	if (!reserve_bytes(m, 2 * MAX_VARINT_BYTES + size))
		return;
	put_varint(m, field << 3 | LENGTH);
	put_varint(m, size);
	if (size)
		memcpy(m->bytes.items + m->bytes.count, bytes, size);
	m->bytes.count += size;
}

void weft__proto_text(struct weft__proto *m, unsigned field, const char *text)
{
	weft__proto_bytes(m, field, text, strlen(text));
}

void weft__proto_message(struct weft__proto *m, unsigned field, const struct weft__proto *inner)
{
	m->no_memory |= inner->no_memory;
	weft__proto_bytes(m, field, inner->bytes.items, inner->bytes.count);
}
