/* session.h: directories that weft record made, with a trace for each process.  SPDX-License-Identifier: ISC */
#ifndef WEFT_SESSION_SESSION_H
#define WEFT_SESSION_SESSION_H

#include <stdbool.h>

#include "base/vec.h"

typedef WEFT_VEC(char *) session_paths;

/* In a session of root's: the traces of processes that became another user, "uid-105". */
#define SESSION_USER_FOLDER "uid-"

struct session {
	const char *path;
	session_paths
	    traces; /* directories, and after these files of OCaml's runtime events; sorted; none: it is no such directory */
	session_paths words; /* files in which processes say why they record nothing */
	session_paths users; /* folders of other users */
};

/* False: there is no memory.  To be freed in any case. */
bool session_read(struct session *session, const char *path);
void session_free(struct session *session);

/* The same, with the traces of the sessions in it. */
bool session_read_all(struct session *session, const char *path);

/* Leaves one of those that are the same trace: not the copies that weft save and weft watch put beside what is recorded.  Reads
 * the front of each trace's metadata.  Returns how many are left out. */
size_t session_drop_copies(session_paths *traces);

/* Adds the traces of such directories (session_read_all()), without copies, and other operands as they are; false: there is no
 * memory.  To be freed in any case.  *copies: how many are left out; may be NULL. */
bool session_expand(session_paths *out, char *const *operands, int count, size_t *copies);
void session_paths_free(session_paths *paths);

/* Whether it is the directory of one trace. */
bool session_is_trace(const char *path);

#define SESSION_OCAML_FOLDER ".ocaml"

/* The folder of OCaml's files in a session: NAME-PID.ocaml, NAME-PID.ocaml.2. */
bool session_is_ocaml_folder(const char *name);
/* PID.events */
bool session_is_ocaml_file(const char *name);

#endif
