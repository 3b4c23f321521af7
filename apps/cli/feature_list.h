/* feature_list.h: the parts of weft that a build may lack.  SPDX-License-Identifier: ISC */
#ifndef WEFT_APPS_CLI_FEATURE_LIST_H
#define WEFT_APPS_CLI_FEATURE_LIST_H

#include <stdio.h>

enum cli_feature {
	CLI_FEATURE_RECORD,
	CLI_FEATURE_WINDOW,
	CLI_FEATURE_PAGE,
	CLI_FEATURE_SERVER,
	CLI_FEATURE_TERMINAL,
	CLI_FEATURE_NAMES,
	CLI_FEATURE_SQLITE,
	CLI_FEATURE_OTLP,
	CLI_FEATURE_KERNEL,
	CLI_FEATURE_CTF,
	CLI_FEATURE_XEN,
	CLI_FEATURE_COUNT
};

/* Prints a line for each optional part: "yes", or the package that brings the part. */
void cli_print_features(FILE *out);

/* Prints one line: this weft lacks the part, and a package brings the part.  Returns the exit status of the verb. */
int cli_fail_without(const char *verb, enum cli_feature which);

#endif
