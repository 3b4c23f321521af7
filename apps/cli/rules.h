/* rules.h: the rules of weft check and weft watch.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_RULES_H
#define WEFT_CLI_RULES_H

#include "analysis/queries/rule_window.h"
#include "base/vec.h"

struct cli_rule {
	char *text; /* owned; the rule points into it */
	struct weft_rule rule;
};

/* The rules of one command: operands, then those of --rules=FILE.  Starts zeroed; cli_rules_free() frees it. */
struct cli_rules {
	const char *file; /* --rules, or NULL */
	int64_t after_ns; /* --after: the start of each process that does not count */
	WEFT_VEC(struct cli_rule) all;
};

/* clang-format off */
#define CLI_OPTIONS_RULES(rules)                                                                                                 \
	{"rules", 0, CLI_TEXT, &(rules)->file, "FILE", "also check the rules in FILE, one a line; a line that begins with # is a comment"}, \
	{"after", 0, CLI_TIME, &(rules)->after_ns, "TIME", "ignore the first TIME of each process, such as 5s"}
/* clang-format on */

/* Returns whether an operand is a rule. */
bool cli_rules_is_rule(const char *operand);

/* Parses `count` operands and the file.  Returns -1 to continue, otherwise the exit status after printing the error. */
int cli_rules_read(struct cli_rules *rules, const char *verb, char *const *operands, int count);
void cli_rules_free(struct cli_rules *rules);

/* Creates the state of each rule that needs windows, for one trace; NULL for other rules.  Returns an array by rule, or NULL when
 * out of memory; free it with cli_rule_windows_free(). */
struct weft_rule_window **cli_rule_windows_create(const struct cli_rules *rules);
void cli_rule_windows_free(struct weft_rule_window **windows, const struct cli_rules *rules); /* accepts NULL */

/* Prints what rules measure, below --help. */
void cli_rules_print_help(bool as_markdown);

#endif
