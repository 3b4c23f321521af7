/* ocaml.h: files of runtime events that programs in OCaml write into a session's directory.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_OCAML_H
#define WEFT_CLI_OCAML_H

#include <stdint.h>

/* Adds to a file that OCaml has made in such a folder what it does not tell (trace/ocaml_note.h), if that was not done before;
 * and, if `died_wall_ns` is not 0, when its process had ended. */
void ocaml_note(const char *path, int64_t died_wall_ns);

#endif
