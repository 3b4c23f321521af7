/* rules.h: the rules of weft check and weft watch.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_RULES_H
#define WEFT_CLI_RULES_H

#include "analysis/queries/rule_window.h"
#include "base/vec.h"

struct cli_rule {
	char *text; /* text of the rule, which the struct owns; `rule` points into it */
	struct weft_rule rule;
};

/* Rules of one command: first those among the operands, then those of --rules=FILE.  The struct starts zeroed, and
 * cli_rules_free() frees it. */
struct cli_rules {
	const char *file; /* --rules, or NULL */
	int64_t after_ns; /* value of --after: the time after a process's start that does not count */
	WEFT_VEC(struct cli_rule) all;
};

/* clang-format off */
#define CLI_OPTIONS_RULES(rules)                                                                                                 \
	{"rules", 0, CLI_TEXT, &(rules)->file, "FILE", "also check the rules in FILE, one a line; a line that begins with # is a comment"}, \
	{"after", 0, CLI_TIME, &(rules)->after_ns, "TIME", "ignore the first TIME of each process, such as 5s"}
/* clang-format on */

/* Returns whether an operand is a rule. */
bool cli_rules_is_rule(const char *operand);

/* Parses `count` operands and the file of --rules.  Returns -1 to continue; otherwise an error was printed, and the result is
 * the exit status. */
int cli_rules_read(struct cli_rules *rules, const char *verb, char *const *operands, int count);
void cli_rules_free(struct cli_rules *rules);

/* Creates for one trace the state of each rule that is checked over time windows; NULL for other rules.  Returns an array
 * indexed by rule, or NULL without memory; free it with cli_rule_windows_free(). */
struct weft_rule_window **cli_rule_windows_create(const struct cli_rules *rules);
void cli_rule_windows_free(struct weft_rule_window **windows, const struct cli_rules *rules); /* accepts NULL */

/* Prints what the measures in rules mean, below --help. */
void cli_rules_print_help(bool as_markdown);

#endif
