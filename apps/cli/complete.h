/* complete.h: what a word of the command line can become, for the shells.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_COMPLETE_H
#define WEFT_CLI_COMPLETE_H

#include "cli.h"

/* From now on the command only completes this word, the last of its arguments. */
void cli_complete_begin(const char *word);
bool cli_completes(void);

/* Prints before + word if the word that is completed begins so. */
void cli_complete_word(const char *before, const char *word);

/* Completes the last of the arguments of a verb; returns the exit status. */
int cli_complete(const struct cli_args *args, const struct cli_option *options);

/* standby.c: the processes that stand by, by number and by name. */
void cli_complete_standing(void);

#endif
