/* process_exit.h: records when the processes of a session ended.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_PROCESS_EXIT_H
#define WEFT_CONTROL_PROCESS_EXIT_H

#include <sys/types.h>

struct exit_watch;

/* Starts a process that watches the session's directory; call it before the command starts and before any thread.  Returns NULL
 * if it cannot be started; exit_watch_end() accepts NULL. */
struct exit_watch *exit_watch_begin(const char *folder);

/* Waits for the end of a child process like waitpid(), but ignores the stops by which weft samples the child. */
pid_t exit_wait_child(pid_t child, int *status, int flags);

/* Ends the watch: the time of death is now in the traces that their dead processes did not end.  If weft record is killed, the
 * watch ends in the same way. */
void exit_watch_end(struct exit_watch *exit_watch);

#endif
