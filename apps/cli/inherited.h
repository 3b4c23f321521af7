/* inherited.h: keeps what this process got from its parent, so that a command that weft starts inherits the same.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_INHERITED_H
#define WEFT_CLI_INHERITED_H

#include <stdint.h>
#include <sys/time.h>

/* Attributes that exec keeps, but that a child process does not inherit.  The scheduling is not inherited if its flags have
 * SCHED_RESET_ON_FORK; its fields are those of sched_setattr(2). */
struct cli_kept {
	int death_signal, is_subreaper, nice; /* real-time scheduling keeps the nice value apart */
	struct itimerval timers[3];
	struct {
		uint32_t size_bytes, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} scheduling;
};

/* Sets the signal actions that weft needs, and remembers the inherited ones.  Occupies closed standard descriptors, so that no
 * file that weft opens becomes a standard stream; commands do not inherit these descriptors. main() calls this function
 * first. */
void cli_begin_process(void);

/* Restores the signal actions that were set before cli_begin_process().  A child process calls this function between fork() and
 * exec; it is async-signal-safe. */
void cli_restore_inherited(void);

/* Moves the attributes of this process to `kept`: its timers end. */
void cli_take_kept(struct cli_kept *kept);

/* Gives the attributes to this process.  A child process calls this function between fork() and exec; it is
 * async-signal-safe. */
void cli_give_kept(const struct cli_kept *kept);

#endif
