/* program.h: decides from a program's file whether a library can be preloaded into it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_PROGRAM_H
#define WEFT_CONTROL_PROGRAM_H

#include <stdbool.h>

/* Returns whether a dynamic loader accepts our library in LD_PRELOAD; also true if the file is unreadable.  `command` is a path
 * or a name in PATH; for a script its interpreter counts. */
bool program_loads_libraries(const char *command);

/* Sets the variable _ to the path of the command, as shells do, if a shell has set it to the path of weft. */
void program_set_variable(const char *command);

/* Prints on stderr why the command was not recorded or, with traces, why there are no promises, as far as its file shows, and
 * what to do. */
void program_note_why_not(const char *command, bool has_traces);

#endif
