/* memory.h: defines the events of class WEFT_CLASS_MEMORY, which say which promises allocated memory, and in which functions.
 *
 * The recorder writes them if allocations are sampled (docs/format.md, "The packets of allocations").  Numbers of stacks are
 * valid within one packet, and numbers of allocations in the whole trace.  Places are keys of sites, as in other events.  The
 * events always have the extended header.  SPDX-License-Identifier: ISC */
#ifndef WEFT_WIRE_MEMORY_H
#define WEFT_WIRE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* X(NAME, value, "name", "fields") */
#define WEFT_MEMORY_OPS(X)                                                                                                       \
	/* a frame of a stack; caller is 0 for the outermost frame */                                                            \
	X(STACK, 0, "memory_stack", "stack: u32, caller: u32, place: u16")                                                       \
	/* a sampled allocation; on average, one allocation is sampled in every `period_bytes` bytes */                          \
	X(ALLOCATED, 1, "memory_allocated", "number: u32, promise: i64, bytes: u64, period_bytes: u32, stack: u32")              \
	/* the end of a sampled allocation */                                                                                    \
	X(FREED, 2, "memory_freed", "number: u32")

enum weft_memory_op {
#define WEFT_MEMORY_ENUM(NAME, value, name, fields) WEFT_MEMORY_##NAME = value,
	WEFT_MEMORY_OPS(WEFT_MEMORY_ENUM)
#undef WEFT_MEMORY_ENUM
};

/* Sizes of the events with their headers. */
enum { WEFT_MEMORY_STACK_BYTES = 20, WEFT_MEMORY_ALLOCATED_BYTES = 38, WEFT_MEMORY_FREED_BYTES = 14 };

/* An event to write; its op decides which fields have a meaning. */
struct weft_wire_memory {
	uint8_t op;      /* enum weft_memory_op */
	uint16_t place;  /* STACK */
	uint32_t number; /* of the stack or of the allocation */
	uint32_t stack;  /* STACK: the caller; ALLOCATED */
	uint32_t period_bytes;
	int64_t promise;
	uint64_t bytes;
};

/* Writes the header and the fields of an event; the caller must have checked the space.  Returns the end. */
unsigned char *weft__memory_write(unsigned char *to, const struct weft_wire_memory *event, uint64_t time);

#endif
