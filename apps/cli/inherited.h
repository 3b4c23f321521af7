/* inherited.h: keeps what this process got from its parent, so that a command that it starts gets the same.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_INHERITED_H
#define WEFT_CLI_INHERITED_H

/* Sets the signal actions that weft needs, and notes those of before.  Occupies closed standard descriptors, which commands do
 * not inherit: no file that weft opens becomes a standard stream.  main() calls this first. */
void cli_begin_process(void);

/* Restores the signal actions of before cli_begin_process().  A child calls this between fork() and exec; async-signal-safe. */
void cli_restore_inherited(void);

#endif
