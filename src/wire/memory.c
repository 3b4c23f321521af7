/* memory.c: see memory.h.  SPDX-License-Identifier: ISC */
#include "wire/memory.h"

#include "wire/wire.h"

static unsigned char *write_bytes(unsigned char *to, const void *bytes, size_t size)
{
	__builtin_memcpy(to, bytes, size);
	return to + size;
}

unsigned char *weft__memory_write(unsigned char *to, const struct weft_wire_memory *e, uint64_t time)
{
	*to++ = WEFT_ID_EXTENDED;
	*to++ = e->op;
	to = write_bytes(to, &time, sizeof time);
	to = write_bytes(to, &e->number, sizeof e->number);
	switch ((enum weft_memory_op)e->op) {
	case WEFT_MEMORY_STACK:
		to = write_bytes(to, &e->stack, sizeof e->stack);
		return write_bytes(to, &e->place, sizeof e->place);
	case WEFT_MEMORY_ALLOCATED:
		to = write_bytes(to, &e->promise, sizeof e->promise);
		to = write_bytes(to, &e->bytes, sizeof e->bytes);
		to = write_bytes(to, &e->period_bytes, sizeof e->period_bytes);
		return write_bytes(to, &e->stack, sizeof e->stack);
	case WEFT_MEMORY_FREED: break;
	}
	return to;
}
