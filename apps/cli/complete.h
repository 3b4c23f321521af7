/* complete.h: completes words of the command line, for shells.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_COMPLETE_H
#define WEFT_CLI_COMPLETE_H

#include "cli.h"

/* Makes the command only complete this word, the last of its arguments. */
void cli_complete_begin(const char *word);
bool cli_is_completing(void);

/* Prints before + word if it starts with the word to complete. */
void cli_complete_word(const char *before, const char *word);

/* Completes the last of the arguments of a verb; returns the exit status. */
int cli_complete(const struct cli_args *args, const struct cli_option *options);

/* standby.c: completes the programs that stand by, by process id and by name. */
void cli_complete_standby(void);

#endif
