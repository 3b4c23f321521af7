/* session.h: reads directories that weft record made, which contain a trace for each process.  SPDX-License-Identifier: ISC */
#ifndef WEFT_SESSION_SESSION_H
#define WEFT_SESSION_SESSION_H

#include <stdbool.h>

#include "base/vec.h"

typedef WEFT_VEC(char *) session_paths;

/* Prefix of the folders with traces of processes that changed their user, such as "uid-105". */
#define SESSION_USER_FOLDER "uid-"

struct session {
	const char *path;
	/* Sorted directories of traces, and then OCaml's event files; empty if the directory is no session. */
	session_paths traces;
	session_paths failures;     /* paths of files in which processes explain why they did not record */
	session_paths user_folders; /* folders of other users */
};

/* Reads a session.  Returns false without memory.  Call session_free() in any case. */
bool session_read(struct session *session, const char *path);
void session_free(struct session *session);

/* Reads a session, and the sessions in its folders. */
bool session_read_all(struct session *session, const char *path);

/* Removes the paths of copies that weft save and weft watch have put beside the recorded traces.  The function reads the start
 * of each trace's metadata. Returns the number of copies that were removed from the list. */
size_t session_drop_copies(session_paths *traces);

void session_paths_free(session_paths *paths);

/* Returns whether the path is the directory of one trace, which has a regular file `metadata`. */
bool session_is_trace(const char *path);

#define SESSION_OCAML_FOLDER ".ocaml"

/* Returns whether a name is that of a folder with OCaml's files: NAME-PID.ocaml or NAME-PID.ocaml.2. */
bool session_is_ocaml_folder(const char *name);
/* Returns whether a file name is PID.events. */
bool session_is_ocaml_file(const char *name);

#endif
