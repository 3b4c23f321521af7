/* program.h: what can be told of a program from its file: whether something can be loaded before it.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_PROGRAM_H
#define WEFT_CLI_PROGRAM_H

#include <stdbool.h>

/* Whether a loader that takes our library starts it, so that LD_PRELOAD counts; also where its file cannot be read.  `command` is
 * a path, or a name that is looked for in PATH; of a script it is its interpreter that counts. */
bool program_loads_libraries(const char *command);

/* Says on stderr why nothing was recorded of the command, or with traces, why no promises: as far as its file tells, and what
 * would help. */
void program_tell_why_not(const char *command, bool has_traces);

#endif
