/* rules.c: see rules.h.  SPDX-License-Identifier: ISC */
#include "rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool cli_rules_is_rule(const char *operand)
{
	return strpbrk(operand, "<>=") != NULL;
}

/* Adds a rule.  Returns -1, or the exit status after printing an error that begins with `where`. */
static int add_rule(struct cli_rules *rules, const char *verb, const char *where, const char *text)
{
	struct weft_error err;
	struct cli_rule *rule = weft_vec_push(&rules->all); /* cli_rules_free() frees its text */
	if (!rule)
		return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	*rule = (struct cli_rule){.text = strdup(text)};
	if (!rule->text)
		return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	return weft_rule_parse(&rule->rule, rule->text, &err) < 0 ? cli_fail_verb(verb, "%s%s", where, err.what) : -1;
}

static char *trim_blanks(char *line)
{
	size_t len = strlen(line);
	while (len > 0 && isspace((unsigned char)line[len - 1]))
		line[--len] = '\0';
	while (isspace((unsigned char)*line))
		line++;
	return line;
}

static int read_rules_file(struct cli_rules *rules, const char *verb)
{
	FILE *file = fopen(rules->file, "re");
	char *line = NULL, where[300];
	size_t capacity = 0;
	int exit = file ? -1 : cli_fail("%s: %s", rules->file, strerror(errno));
	for (unsigned number = 1; exit < 0 && getline(&line, &capacity, file) >= 0; number++) {
		const char *text = trim_blanks(line);
		snprintf(where, sizeof where, "%.200s:%u: ", rules->file, number);
		if (*text && *text != '#')
			exit = add_rule(rules, verb, where, text);
	}
	if (exit < 0 && ferror(file))
		exit = cli_fail("%s: %s", rules->file, strerror(errno));
	free(line);
	if (file)
		fclose(file);
	return exit;
}

int cli_rules_read(struct cli_rules *rules, const char *verb, char *const *operands, int count)
{
	int exit = -1;
	for (int i = 0; i < count && exit < 0; i++)
		exit = add_rule(rules, verb, "", operands[i]);
	return exit < 0 && rules->file ? read_rules_file(rules, verb) : exit;
}

void cli_rules_free(struct cli_rules *rules)
{
	for (size_t i = 0; i < rules->all.count; i++)
		free(rules->all.items[i].text);
	weft_vec_free(&rules->all);
}

struct weft_rule_window **cli_rule_windows_create(const struct cli_rules *rules)
{
	struct weft_rule_window **windows = calloc(rules->all.count + 1, sizeof *windows);
	struct weft_error err;
	for (size_t i = 0; windows && i < rules->all.count; i++) {
		const struct weft_rule *rule = &rules->all.items[i].rule;
		const bool needs_window = rule->window_ns > 0 || (rules->after_ns > 0 && rule->measure != WEFT_MEASURE_LOST);
		if (needs_window && weft_rule_window_create(&windows[i], rule, rules->after_ns, &err) < 0) {
			cli_rule_windows_free(windows, rules);
			return NULL;
		}
	}
	return windows;
}

void cli_rule_windows_free(struct weft_rule_window **windows, const struct cli_rules *rules)
{
	for (size_t i = 0; windows && i < rules->all.count; i++)
		weft_rule_window_destroy(windows[i]);
	free(windows);
}

void cli_rules_print_help(bool as_markdown)
{
	static const char head[] = "A RULE is a measure, one of < <= = != >= >, and a number, a share such as 1%, or a time.\n"
				   "With a window such as /10s or /1m, the rule must hold in each window of that length.";
	static const struct {
		const char *name, *argument, *text;
	} measures[] = {
#define MEASURE(UPPER, name, needs_argument, is_time, text) {name, needs_argument ? "(LABEL)" : "", text},
	    WEFT_MEASURES(MEASURE)
#undef MEASURE
	};
	printf(as_markdown ? "## Rules\n%s\nMeasures are:\n" : "\n%s  Measures:\n", head);
	for (size_t i = 0; i < sizeof measures / sizeof *measures; i++) {
		char name[24];
		snprintf(name, sizeof name, "%s%s", measures[i].name, measures[i].argument);
		printf(as_markdown ? "`%s`\n: %s\n" : "      %-18s %s\n", name, measures[i].text);
	}
}
