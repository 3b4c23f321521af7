/* ocaml_note.h: describes the note that weft appends to a file of OCaml's runtime events, which itself has neither the origin
 * of its clock nor its process.
 *
 * The note consists of the last WEFT_OCAML_NOTE_BYTES of the file, behind OCaml's data; OCaml's own readers ignore it.  Numbers
 * in the note have 8 bytes, little-endian.  Texts end with a NUL or at the start of the next field.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_OCAML_NOTE_H
#define WEFT_TRACE_OCAML_NOTE_H

#include <string.h>

#define WEFT_OCAML_NOTE_MARK "weft: OCaml's events, version 1"

enum {
	WEFT_OCAML_NOTE_CLOCK = 32,     /* a moment by the clock of the events, in ns */
	WEFT_OCAML_NOTE_WALL = 40,      /* the moment of WEFT_OCAML_NOTE_CLOCK, in ns since 1970 */
	WEFT_OCAML_NOTE_DIED_WALL = 48, /* time at which the process ended; 0 if it is unknown */
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
