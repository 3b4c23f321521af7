/* inherited.c: keeps the signal actions, descriptors, timers and attributes that this process got from its parent.  A program
 * started by exec inherits which signals are ignored, so without this file a command that weft starts would never die of SIGPIPE;
 * nor would it die of the alarm of a parent that limits its time.  SPDX-License-Identifier: ISC */
#include "cli/inherited.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
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

static const int timer_types[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

enum {
	RESETS_ON_FORK = 1, /* as the kernel has it; not all C libraries define it */
	TIMER_COUNT = sizeof timer_types / sizeof *timer_types,
};

void cli_take_kept(struct cli_kept *kept)
{
	const struct itimerval none = {0};
	*kept = (struct cli_kept){0};
	prctl(PR_GET_PDEATHSIG, &kept->death_signal);
	prctl(PR_GET_CHILD_SUBREAPER, &kept->is_subreaper);
	for (int i = 0; i < TIMER_COUNT; i++)
		setitimer(timer_types[i], &none, &kept->timers[i]);
	if (syscall(SYS_sched_getattr, 0, &kept->scheduling, sizeof kept->scheduling, 0) != 0)
		kept->scheduling.flags = 0;
	kept->nice = getpriority(PRIO_PROCESS, 0);
}

void cli_give_kept(const struct cli_kept *kept)
{
	prctl(PR_SET_PDEATHSIG, kept->death_signal);
	prctl(PR_SET_CHILD_SUBREAPER, kept->is_subreaper);
	for (int i = 0; i < TIMER_COUNT; i++)
		setitimer(timer_types[i], &kept->timers[i], NULL);
	if (kept->scheduling.flags & RESETS_ON_FORK) {
		setpriority(PRIO_PROCESS, 0, kept->nice);
		syscall(SYS_sched_setattr, 0, &kept->scheduling, 0);
	}
}
