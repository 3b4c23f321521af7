/* watch.h: until when the processes lived that record into a session's directory.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_WATCH_H
#define WEFT_CLI_WATCH_H

#include <sys/types.h>

struct watch;

/* Begins to look at the directory; before the command starts.  NULL: no memory; the others take that. */
struct watch *watch_begin(const char *folder);

/* waitpid() of the command; meanwhile sees who begins to record, and who dies. */
pid_t watch_wait(struct watch *watch, pid_t child, int *status);

/* Writes into the traces that nobody ended when their processes did. */
void watch_end(struct watch *watch);

#endif
