/* ocaml_note.h: what weft adds to a file of OCaml's runtime events: the file itself tells neither its clock's origin nor whose it
 * is.
 *
 * The note is the file's last WEFT_OCAML_NOTE_BYTES, behind all that OCaml has there, and OCaml's own readers do not see it.
 * Numbers have 8 bytes, little-endian; texts go up to a zero, or to where the next begins.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_OCAML_NOTE_H
#define WEFT_TRACE_OCAML_NOTE_H

#include <string.h>

#define WEFT_OCAML_NOTE_MARK "weft: OCaml's events, version 1"

enum {
	WEFT_OCAML_NOTE_CLOCK = 32,     /* one moment by the clock of the events, ns ... */
	WEFT_OCAML_NOTE_WALL = 40,      /* ... and in ns since 1970 */
	WEFT_OCAML_NOTE_DIED_WALL = 48, /* when the process had ended; 0: not known */
	WEFT_OCAML_NOTE_HOST = 64,
	WEFT_OCAML_NOTE_PROCESS = 128,
	WEFT_OCAML_NOTE_COMMAND = 256,
	WEFT_OCAML_NOTE_BYTES = 1024
};

static inline _Bool weft_ocaml_note_is(const unsigned char bytes[WEFT_OCAML_NOTE_BYTES])
{
	return memcmp(bytes, WEFT_OCAML_NOTE_MARK, sizeof WEFT_OCAML_NOTE_MARK) == 0;
}

#endif
