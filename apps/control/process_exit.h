/* process_exit.h: records when the processes of a session ended.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_PROCESS_EXIT_H
#define WEFT_CONTROL_PROCESS_EXIT_H

#include <sys/types.h>

struct exit_watch;

/* Starts to watch the session's directory; call it before the command starts.  Returns NULL without memory; the other functions
 * accept NULL. */
struct exit_watch *exit_watch_begin(const char *folder);

/* Waits for the end of a child process like waitpid(), but ignores the stops by which weft samples the child. */
pid_t exit_wait_child(pid_t child, int *status, int flags);

/* Waits for the command like waitpid(), and meanwhile notes new traces and the deaths of processes. */
pid_t exit_watch_wait(struct exit_watch *exit_watch, pid_t child, int *status);

/* Writes the time of death into the traces that their dead processes did not end. */
void exit_watch_end(struct exit_watch *exit_watch);

#endif
