/* process_exit.h: records when the processes of a session ended.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_PROCESS_EXIT_H
#define WEFT_CONTROL_PROCESS_EXIT_H

#include <sys/types.h>

struct exit_watch;

/* Starts to watch the directory, before the command starts.  Returns NULL without memory, which the other functions accept. */
struct exit_watch *exit_watch_begin(const char *folder);

/* Waits for the end of a child like waitpid(), but passes over the stops in which weft samples it. */
pid_t exit_wait_child(pid_t child, int *status, int flags);

/* Waits for the command like waitpid() and meanwhile notes new traces and deaths. */
pid_t exit_watch_wait(struct exit_watch *exit_watch, pid_t child, int *status);

/* Writes the time of death into the traces that their processes did not end. */
void exit_watch_end(struct exit_watch *exit_watch);

#endif
