/* kernel.c: see kernel.h.  SPDX-License-Identifier: ISC */
#include "wire/kernel.h"

#include "wire/wire.h"

const char *weft_kernel_call_name(uint8_t call)
{
	switch (call) {
#define NAME(NAME, value, name)                                                                                                  \
	case WEFT_CALL_##NAME: return name;
		WEFT_KERNEL_CALLS(NAME)
#undef NAME
	default: return NULL;
	}
}

unsigned weft__kernel_fixed_bytes(uint8_t op)
{
	switch ((enum weft_kernel_op)op) {
	case WEFT_KERNEL_LEVEL: return 1;
	case WEFT_KERNEL_THREAD: return 8;
	case WEFT_KERNEL_CLOCK: return 12;
	case WEFT_KERNEL_ON: return 4;
	case WEFT_KERNEL_OFF: return 6;
	case WEFT_KERNEL_TAKEN: return 8;
	case WEFT_KERNEL_WAKE: return 8;
	case WEFT_KERNEL_FAULT: return 8;
	case WEFT_KERNEL_OP_COUNT: break;
	}
	return 0;
}

size_t weft__kernel_payload(const struct weft_wire_kernel *e)
{
	bool has_text = e->op == WEFT_KERNEL_LEVEL || e->op == WEFT_KERNEL_THREAD;
	return weft__kernel_fixed_bytes(e->op) + (has_text ? (size_t)e->text_bytes + 1 : 0);
}

#define PUT(to, v)                                                                                                               \
	do {                                                                                                                     \
		__typeof__(v) put_ = (v);                                                                                        \
		__builtin_memcpy(to, &put_, sizeof put_);                                                                        \
		(to) += sizeof put_;                                                                                             \
	} while (0)

unsigned char *weft__kernel_write(unsigned char *to, const struct weft_wire_kernel *e, uint64_t time, bool extended)
{
	if (extended) {
		*to++ = WEFT_ID_EXTENDED;
		*to++ = e->op;
		PUT(to, time);
	} else {
		*to++ = e->op;
		PUT(to, (uint32_t)time);
	}
	if (e->op == WEFT_KERNEL_LEVEL)
		*to++ = e->why;
	else if (e->op == WEFT_KERNEL_CLOCK)
		PUT(to, e->raw_ns);
	else
		PUT(to, e->tid);
	if (e->op == WEFT_KERNEL_OFF) {
		*to++ = e->why;
		*to++ = e->call;
	} else if (e->op != WEFT_KERNEL_LEVEL && e->op != WEFT_KERNEL_ON) {
		PUT(to, e->other);
	}
	if (e->op == WEFT_KERNEL_LEVEL || e->op == WEFT_KERNEL_THREAD) {
		for (uint32_t i = 0; i < e->text_bytes; i++)
			*to++ = e->text[i] ? (unsigned char)e->text[i] : 0x1a;
		*to++ = 0;
	}
	return to;
}
