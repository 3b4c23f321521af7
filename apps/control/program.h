/* program.h: decides from a program's file whether libraries can be preloaded into the program.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_PROGRAM_H
#define WEFT_CONTROL_PROGRAM_H

#include <stdbool.h>

/* Returns whether the program's dynamic loader would accept our library in LD_PRELOAD; also true if the file is unreadable.
 * `command` is a path or a name in PATH; for a script, the script's interpreter is examined. */
bool program_loads_libraries(const char *command);

/* Sets the environment variable _ to the path of the command, as shells do, if a shell has set it to the path of weft. */
void program_set_variable(const char *command);

/* Prints on stderr why the command was not recorded or, with traces, why the traces have no promises, as far as the command's
 * file shows the reason, and what the user can do. */
void program_note_why_not(const char *command, bool has_traces);

#endif
