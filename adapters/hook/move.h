/* move.h: the first instructions of a function, made to work in another place (private to adapters/hook).
 *
 * Nothing is changed here but the caller's structure: what comes out is bytes for two places.
 *
 *	the function                  its slot, near enough for a jump
 *	+---------------------+       +--------------------------------+
 *	| endbr64, if it had  |   .-> | jump to the wrapper, anywhere  |
 *	| jump to the slot    | --'   +--------------------------------+ <- the original: what does
 *	| (rest of what was   |       | the moved instructions         |    what the function did
 *	|  moved)             |   .-- | jump back                      |
 *	| its other code      | <-'   +--------------------------------+
 *	+---------------------+
 *
 * What stands in a slot never calls: a call among the moved instructions pushes the address behind it in the function, and jumps.
 * So no address within a slot is ever on a stack, and exceptions, longjmp() and debuggers unwind through functions that were
 * taken as through any other.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_MOVE_H
#define WEFT_HOOK_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEFT__SLOT_BYTES = 64, WEFT__PATCH_BYTES = 8 };

/* What is to be moved. */
struct weft__entry_code {
	const uint8_t *code; /* where its bytes can be read */
	size_t bytes;        /* of the function, 0: unknown */
	size_t room;         /* that can be read, those behind the function too */
	uint64_t at;         /* the function's address */
	uint64_t slot;       /* its slot's address */
	uint64_t wrapper;
	bool shadow_stack; /* calls must be calls: the processor keeps a second stack of return addresses */
};

struct weft__moved {
	uint8_t slot[WEFT__SLOT_BYTES];
	uint8_t patch[WEFT__PATCH_BYTES]; /* to be written at address `at` + patch_at */
	unsigned patch_at, patch_bytes;
	unsigned original;    /* where in the slot */
	unsigned moved_bytes; /* of the function, beginning at patch_at */
	unsigned slot_bytes;  /* that are used */
};

/* NULL, or why it cannot be moved: one of a few literals.  Not by two OS threads at once: there is one decoder. */
const char *weft__move_x86(const struct weft__entry_code *entry, struct weft__moved *out);
const char *weft__move_arm64(const struct weft__entry_code *entry, struct weft__moved *out);

/* Gives back what decoding needed, after the last one. */
void weft__move_close(void);

#if defined(__x86_64__)
#define weft__move weft__move_x86
enum { WEFT__MOVE_REACH = 0x7ff00000 }; /* how far a slot may be away */
#elif defined(__aarch64__)
#define weft__move weft__move_arm64
enum { WEFT__MOVE_REACH = 0x7f00000 };
#endif

#endif
