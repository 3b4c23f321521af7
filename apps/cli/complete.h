/* complete.h: completes words of the command line, for shells.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_COMPLETE_H
#define WEFT_CLI_COMPLETE_H

#include "cli.h"

/* Makes the command complete this word, which is the last of its arguments, instead of running a verb. */
void cli_complete_begin(const char *word);
bool cli_is_completing(void);

/* Prints before + word if that text starts with the word to complete. */
void cli_complete_word(const char *before, const char *word);

/* Completes the last argument of a verb, and returns the exit status. */
int cli_complete(const struct cli_args *args, const struct cli_option *options);

/* Completes the programs that are on standby, by process id and by name (standby.c). */
void cli_complete_standby(void);

#endif
