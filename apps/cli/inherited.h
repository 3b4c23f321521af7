/* inherited.h: keeps what this process got from its parent, so that a command that weft starts inherits the same.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_INHERITED_H
#define WEFT_CLI_INHERITED_H

/* Sets the signal actions that weft needs, and remembers the inherited ones.  Occupies closed standard descriptors, so that no
 * file that weft opens becomes a standard stream; commands do not inherit these descriptors. main() calls this function
 * first. */
void cli_begin_process(void);

/* Restores the signal actions that were set before cli_begin_process().  A child process calls this function between fork() and
 * exec; it is async-signal-safe. */
void cli_restore_inherited(void);

#endif
