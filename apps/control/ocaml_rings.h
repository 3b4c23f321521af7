/* ocaml_rings.h: completes the files of runtime events that OCaml programs write into a session's directory.
 * SPDX-License-Identifier: ISC
 */
#ifndef WEFT_CONTROL_OCAML_RINGS_H
#define WEFT_CONTROL_OCAML_RINGS_H

#include <stdint.h>

/* Adds a note (trace/ocaml_note.h) with facts that OCaml's file lacks, once; also the time of the process's end if
 * `died_wall_ns` is not 0.  The path must be below the session's directory; nothing is written unless the file belongs to the
 * owner of its folder and has no other hard link. */
void ocaml_write_note(const char *session, const char *path, int64_t died_wall_ns);

#endif
