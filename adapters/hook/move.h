/* move.h: moves the first instructions of a function to another place (private to adapters/hook).
 *
 * The functions here only fill the caller's structure, with bytes for two places:
 *
 *	the function                  its slot, in reach of a jump
 *	+---------------------+       +--------------------------------+
 *	| endbr64, if any     |   .-> | jump to the wrapper, anywhere  |
 *	| jump to the slot    | --'   +--------------------------------+ <- the original: does what
 *	| (rest of what was   |       | the moved instructions         |    the function did
 *	|  moved)             |   .-- | jump back                      |
 *	| its other code      | <-'   +--------------------------------+
 *	+---------------------+
 *
 * Code in a slot never calls: a moved call pushes the address behind the call in the function, and jumps.  So no stack contains
 * an address in a slot, and exceptions, longjmp() and debuggers unwind through patched functions as through any function.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_MOVE_H
#define WEFT_HOOK_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEFT__SLOT_BYTES = 64, WEFT__PATCH_BYTES = 8 };

/* A function that is to be patched. */
struct weft__entry_code {
	const uint8_t *code;   /* readable copy of the function's bytes */
	size_t bytes;          /* size of the function in bytes; 0: unknown */
	size_t readable_bytes; /* number of readable bytes, including those behind the function */
	uint64_t at;           /* address of the function */
	uint64_t slot;         /* address of its slot */
	uint64_t wrapper;
	bool shadow_stack; /* whether calls must stay calls, because the CPU keeps a second stack of return addresses */
};

struct weft__moved {
	uint8_t slot[WEFT__SLOT_BYTES];
	uint8_t patch[WEFT__PATCH_BYTES]; /* bytes of the jump, to be written at address `at` + patch_at */
	unsigned patch_at, patch_bytes;
	unsigned original;    /* offset in the slot at which the moved original begins */
	unsigned moved_bytes; /* number of the function's bytes that were moved, from patch_at on */
	unsigned slot_bytes;  /* number of used bytes in the slot */
};

/* Move the function's first instructions.  Return NULL, or a literal that says why the function cannot be moved.  The functions
 * are not thread-safe, because they share one decoder. */
const char *weft__move_x86(const struct weft__entry_code *entry, struct weft__moved *out);
const char *weft__move_arm64(const struct weft__entry_code *entry, struct weft__moved *out);

/* Frees the instruction decoder; call it after the last move. */
void weft__move_close(void);

#if defined(__x86_64__)
#define weft__move weft__move_x86
enum { WEFT__MOVE_REACH = 0x7ff00000 }; /* largest distance in bytes between a function and its slot */
#elif defined(__aarch64__)
#define weft__move weft__move_arm64
enum { WEFT__MOVE_REACH = 0x7f00000 };
#endif

#endif
