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
	case WEFT_KERNEL_TEXT: return 4;
	case WEFT_KERNEL_IN: return 18;
	case WEFT_KERNEL_SPENT: return 21;
	case WEFT_KERNEL_OP_COUNT: break;
	}
	return 0;
}

static bool has_text(uint8_t op)
{
	return op == WEFT_KERNEL_LEVEL || op == WEFT_KERNEL_THREAD || op == WEFT_KERNEL_TEXT;
}

size_t weft__kernel_payload(const struct weft_wire_kernel *e)
{
	return weft__kernel_fixed_bytes(e->op) + (has_text(e->op) ? (size_t)e->text_bytes + 1 : 0);
}

#define WRITE_VALUE(to, v)                                                                                                       \
	do {                                                                                                                     \
		__typeof__(v) value_ = (v);                                                                                      \
		__builtin_memcpy(to, &value_, sizeof value_);                                                                    \
		(to) += sizeof value_;                                                                                           \
	} while (0)

unsigned char *weft__kernel_write(unsigned char *to, const struct weft_wire_kernel *e, uint64_t time, bool extended)
{
	if (extended) {
		*to++ = WEFT_ID_EXTENDED;
		*to++ = e->op;
		WRITE_VALUE(to, time);
	} else {
		*to++ = e->op;
		WRITE_VALUE(to, (uint32_t)time);
	}
	switch ((enum weft_kernel_op)e->op) {
	case WEFT_KERNEL_LEVEL: *to++ = e->why; break;
	case WEFT_KERNEL_CLOCK:
		WRITE_VALUE(to, e->raw_ns);
		WRITE_VALUE(to, e->other);
		break;
	case WEFT_KERNEL_ON: WRITE_VALUE(to, e->tid); break;
	case WEFT_KERNEL_OFF:
		WRITE_VALUE(to, e->tid);
		*to++ = e->why;
		*to++ = e->call;
		break;
	case WEFT_KERNEL_THREAD:
	case WEFT_KERNEL_TAKEN:
	case WEFT_KERNEL_WAKE:
	case WEFT_KERNEL_FAULT:
		WRITE_VALUE(to, e->tid);
		WRITE_VALUE(to, e->other);
		break;
	case WEFT_KERNEL_TEXT: WRITE_VALUE(to, e->number); break;
	case WEFT_KERNEL_IN:
		WRITE_VALUE(to, e->tid);
		WRITE_VALUE(to, e->ago_ns);
		*to++ = e->call;
		*to++ = e->why;
		WRITE_VALUE(to, e->other);
		WRITE_VALUE(to, e->number);
		break;
	case WEFT_KERNEL_SPENT:
		WRITE_VALUE(to, e->tid);
		WRITE_VALUE(to, e->ago_ns);
		*to++ = e->why;
		WRITE_VALUE(to, e->number);
		WRITE_VALUE(to, e->raw_ns);
		break;
	case WEFT_KERNEL_OP_COUNT: break;
	}
	if (has_text(e->op)) {
		for (uint32_t i = 0; i < e->text_bytes; i++)
			*to++ = e->text[i] ? (unsigned char)e->text[i] : 0x1a;
		*to++ = 0;
	}
	return to;
}
