/* inherited.c: keeps the signal actions and descriptors that this process got from its parent.  A program started by exec
 * inherits which signals are ignored, so without this file a command that weft starts would never die of SIGPIPE.
 * SPDX-License-Identifier: ISC */
#include "cli/inherited.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static struct {
	int number;
	void (*handler)(int);
	bool is_changed;
	struct sigaction before;
} actions[] = {
    /* If SIGPIPE is ignored, writing to a closed pipe fails with EPIPE, so that `weft events | head` ends quietly with status
     * 0. */
    {.number = SIGPIPE, .handler = SIG_IGN},
    /* If SIGCHLD were ignored, the kernel would drop the exit status of child processes. */
    {.number = SIGCHLD, .handler = SIG_DFL},
};

enum { ACTION_COUNT = sizeof actions / sizeof *actions };

/* Opens closed standard descriptors in the wrong direction, so that reads and writes fail as on closed descriptors. */
static void occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
			return;
}

void cli_begin_process(void)
{
	occupy_standard_descriptors();
	for (int i = 0; i < ACTION_COUNT; i++) {
		struct sigaction action = {.sa_handler = actions[i].handler};
		actions[i].is_changed = sigaction(actions[i].number, &action, &actions[i].before) == 0;
	}
}

void cli_restore_inherited(void)
{
	for (int i = 0; i < ACTION_COUNT; i++)
		if (actions[i].is_changed)
			sigaction(actions[i].number, &actions[i].before, NULL);
}
