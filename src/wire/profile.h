/* profile.h: defines the events of class WEFT_CLASS_PROFILE, which say in which functions the program's OS threads were.
 *
 * weft record writes them beside the program's own packets (docs/format.md, "The packets of samples").  All numbers are valid
 * within one packet, and count from 1 in the order of their definition.  The headers of these events are those of all other
 * events.  SPDX-License-Identifier: ISC */
#ifndef WEFT_WIRE_PROFILE_H
#define WEFT_WIRE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(NAME, value, "name", "fields") */
#define WEFT_PROFILE_OPS(X)                                                                                                      \
	/* time between two samples of a thread; number of samples that were not kept */                                         \
	X(PERIOD, 0, "profile_period", "period_ns: u64, lost: u64")                                                              \
	X(MODULE, 1, "profile_module", "module: u32, role: u8, address: u64, size: u64, path: string, build_id: string")         \
	/* a return address; module is 0 if it is unknown */                                                                     \
	X(PLACE, 2, "profile_place", "place: u32, module: u32, offset: u64")                                                     \
	/* a frame of a stack; caller is 0 for the outermost frame */                                                            \
	X(STACK, 3, "profile_stack", "stack: u32, caller: u32, place: u32")                                                      \
	X(SAMPLE, 4, "profile_sample", "tid: u32, stack: u32")                                                                   \
	/* name of a place that was defined before */                                                                            \
	X(SITE, 5, "profile_site", "place: u32, line: u32, file: string, function: string")                                      \
	/* which runs were sampled, and why not more; the last event, because older readers stop there */                        \
	X(WAY, 6, "profile_way", "way: u8, why: string")

/* Which runs of promises have samples. */
enum weft_profile_way {
	WEFT_PROFILE_WAY_LONG = 0, /* runs of 10 ms or longer */
	WEFT_PROFILE_WAY_USER = 1, /* all runs, without their time in the kernel */
	WEFT_PROFILE_WAY_ALL = 2   /* all runs, in which a call has the time that it took in the kernel */
};

/* The role of a module in the process. */
enum weft_profile_role {
	WEFT_PROFILE_LIBRARY = 0,
	WEFT_PROFILE_PROGRAM = 1,    /* the executable */
	WEFT_PROFILE_INTERPRETER = 2 /* an executable that runs programs of another language */
};

enum weft_profile_op {
#define WEFT_PROFILE_ENUM(NAME, value, name, fields) WEFT_PROFILE_##NAME = value,
	WEFT_PROFILE_OPS(WEFT_PROFILE_ENUM)
#undef WEFT_PROFILE_ENUM
};

/* An event to write; its op decides which fields have a meaning. */
struct weft_wire_profile {
	uint8_t op;                /* enum weft_profile_op */
	uint8_t role;              /* MODULE: enum weft_profile_role; WAY: enum weft_profile_way */
	uint32_t number, other;    /* number of a module, place or stack, or tid; module of a place, caller, stack, or line */
	uint32_t place;            /* STACK */
	uint64_t a, b;             /* period_ns and lost; or address and size; or offset in a */
	const char *text, *second; /* path and build-id of a module; file and function of a place; or text of WAY */
};

/* Returns the size of the event with its header, in bytes. */
size_t weft__profile_bytes(const struct weft_wire_profile *event);

/* Writes the header and the fields of an event; the caller must have checked the space.  Returns the end. */
unsigned char *weft__profile_write(unsigned char *to, const struct weft_wire_profile *event, uint64_t time);

#endif
