/* running.h: records programs that already run (private to apps/control).  SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_RUNNING_H
#define WEFT_CONTROL_RUNNING_H

#include <stdbool.h>

#include "cli/cli.h"
#include "wire/standby.h"

/* Prints an error and returns CLI_ERROR if the operand is no process id, or otherwise returns -1. */
int running_parse_pid(const char *verb, const char *operand, long *pid);

/* Writes the default directory for a process, NAME.weft. */
void running_default_directory(long pid, char *out, size_t size);

/* Loads the recorder into a process and puts it on standby; its traces will be in this directory, which the process can write
 * to.  `js` is the value of --js, or NULL.  Prints for how long the program stood still.  Returns CLI_OK or prints an error. */
int running_attach(const char *verb, long pid, const char *directory, const struct cli_ring *ring, const char *js);

/* Ends the recording of a process, and takes the recorder out of use that running_attach() has loaded.  Returns CLI_OK or prints
 * an error.  Waits for the process's next event for `timeout_ns`, but at least for 10 s: a process with many OS threads ends its
 * trace slowly on busy CPUs. */
int running_end(const char *verb, long pid, int64_t timeout_ns);

/* Records a process until SIGINT, SIGTERM or SIGHUP, or the process ends.  Returns an exit status. */
int running_record(long pid, const char *directory, const struct cli_ring *ring, const char *js);

/* ---- standby.c ---- */

/* Fills a request to start a recording. */
struct weft_standby_request standby_request_on(const struct cli_ring *ring);

/* Returns whether the process stands by, and whether it records. */
bool standby_find(long pid, bool *is_on);

/* Sends a request to a process that stands by, and waits so long for its next event.  Returns an exit status. */
int standby_send(long pid, const struct weft_standby_request *request, int64_t timeout_ns);

#endif
