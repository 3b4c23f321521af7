/* ocaml_note.h: the note that weft appends to a file of OCaml's runtime events, which has neither its clock's origin nor its
 * process.
 *
 * The note is the last WEFT_OCAML_NOTE_BYTES of the file, behind OCaml's data; OCaml's own readers ignore it.  Numbers have 8
 * bytes, little-endian.  Texts end with a NUL or where the next field starts.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_OCAML_NOTE_H
#define WEFT_TRACE_OCAML_NOTE_H

#include <string.h>

#define WEFT_OCAML_NOTE_MARK "weft: OCaml's events, version 1"

enum {
	WEFT_OCAML_NOTE_CLOCK = 32,     /* a moment by the clock of the events, in ns */
	WEFT_OCAML_NOTE_WALL = 40,      /* the same moment in ns since 1970 */
	WEFT_OCAML_NOTE_DIED_WALL = 48, /* end of the process; 0: unknown */
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
