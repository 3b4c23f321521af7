/* directory.h: makes the directories for the traces of this process (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_DIRECTORY_H
#define WEFT_HOOK_DIRECTORY_H

#include <limits.h>
#include <sys/types.h>

#include "adapters/hook/state.h"

/* Directory of the session, from WEFT_RECORD; "" if there is none. */
extern char weft__hook_directory[PATH_MAX];

/* Writes DIR/uid-USER to `path`.  Returns false if the path is too long. */
bool weft__hook_user_folder(char path[PATH_MAX], uid_t user);

/* Makes the directory of a trace and returns its path.  Returns false on failure. */
bool weft__hook_make_trace_directory(char path[PATH_MAX]);

/* Makes the directory DIR/NAME-PID`what` for a recorder that is part of the program.  Returns false on failure, on standby, or
 * if this process records nothing. */
bool weft__hook_make_folder(char path[PATH_MAX], const char *what);

/* Append a line for the user of `weft record` to a file next to this process's trace (or next to the trace at `path`). */
void weft__hook_write_failure(const char *reason);
void weft__hook_write_trace_failure(const char *path, const char *reason);

/* Writes a line for the user of `weft record`, unless a process of the session has written a line under the same name. */
void weft__hook_write_once(const char *name, const char *line, size_t bytes);

#endif
