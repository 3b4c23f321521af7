/* attach.h: defines how `weft record --pid` and the recorder that it loads into a running program work together.
 *
 * While the program runs, the recorder lists the bytes that it would change: the first instructions of functions, and pointers to
 * functions.  It changes nothing that the program may run.  The other process stops all OS threads, writes the listed bytes, and
 * can write the former bytes back later.  The program's memory is untrusted, so the other process checks every field.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_WIRE_ATTACH_H
#define WEFT_WIRE_ATTACH_H

#include <stdint.h>

/* Name of the function that the other process runs on a new OS thread: void weft_hook_attach(const char *session).  The session
 * is a value of WEFT_RECORD with the word `standby`. */
#define WEFT_ATTACH_FUNCTION "weft_hook_attach"
/* Name of the variable of type struct weft_attach. */
#define WEFT_ATTACH_VARIABLE "weft_hook_attachment"
#define WEFT_ATTACH_MARK "weft attach 1\n"

enum { WEFT_ATTACH_PATCH_BYTES = 16, WEFT_ATTACH_MAX_PATCHES = 16384 };

struct weft_attach_patch {
	uint64_t at;
	uint32_t bytes;   /* at most WEFT_ATTACH_PATCH_BYTES */
	uint32_t is_code; /* whether the bytes are instructions */
	unsigned char before[WEFT_ATTACH_PATCH_BYTES], after[WEFT_ATTACH_PATCH_BYTES];
};

struct weft_attach {
	char mark[16];
	uint64_t patches;     /* address of the list, whose capacity is WEFT_ATTACH_MAX_PATCHES */
	uint32_t count;       /* grows when the program loads libraries */
	uint32_t is_full;     /* whether patches are missing in the list */
	uint32_t is_accepted; /* whether the latest call was accepted; otherwise the program is recorded already */
	uint64_t room[2];     /* memory that the other process has mapped, and that it uses again */
	char left_out[96];    /* promises that are recorded only if the program starts under weft record; "": none */
};

#endif
