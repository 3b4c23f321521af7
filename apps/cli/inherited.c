/* inherited.c: keeps what this process got from its parent.  Exec passes on which signals are ignored, so that a command of weft
 * would otherwise never die of SIGPIPE.  SPDX-License-Identifier: ISC */
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
    /* Writing to a closed pipe then fails with EPIPE, so that `weft events | head` ends quietly with status 0. */
    {.number = SIGPIPE, .handler = SIG_IGN},
    /* Where SIGCHLD is ignored, the kernel drops the exit status of children. */
    {.number = SIGCHLD, .handler = SIG_DFL},
};

enum { ACTION_COUNT = sizeof actions / sizeof *actions };

/* Opens the lowest free descriptors in the direction that fails, as calls on a closed descriptor do. */
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
