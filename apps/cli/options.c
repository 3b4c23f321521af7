/* options.c: parses the command line of one verb; every error is one line.  SPDX-License-Identifier: ISC */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "cli.h"
#include "complete.h"
#include "trace/source.h"
#include "xen/domain.h"

/* Options that every verb with a TRACE has in addition to its own. */
static const struct cli_option domain_option = {
    "domain", 'd', CLI_TEXT, NULL, "NAME|ID", "read the ring buffer that this Xen domain shares, instead of TRACE"};
static const struct cli_option limit_option = {
    "limit", 0, CLI_TEXT, NULL, "SIZE", "read at most this much from a pipe, such as 500M (default: half of the memory)"};

static const struct cli_option common_options[] = {
    {"help", 'h', CLI_FLAG, NULL, NULL, "print this text"},
    {"version", 0, CLI_FLAG, NULL, NULL, "print the version"},
};

static bool takes_traces(const struct cli_args *args)
{
	return strncmp(args->operands + (args->operands[0] == '['), "TRACE", 5) == 0;
}

static bool parse_size(const char *text, int size[2])
{
	int parsed[2] = {0, 0};
	for (int i = 0; i < 2; i++) {
		size_t digits = strspn(text, "0123456789");
		if (digits == 0 || digits > 5)
			return false;
		for (size_t d = 0; d < digits; d++)
			parsed[i] = parsed[i] * 10 + (text[d] - '0');
		text += digits;
		if (i == 0 && *text++ != 'x')
			return false;
	}
	if (*text != '\0' || parsed[0] == 0 || parsed[1] == 0)
		return false;
	memcpy(size, parsed, sizeof parsed);
	return true;
}

bool cli_parse_number(const char *text, bool is_size, uint64_t *out)
{
	static const char units[] = "KMG";
	char *end;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	const char *unit = is_size && *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	const unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	if (!isdigit((unsigned char)text[0]) || errno || end[unit != NULL] != '\0' || number > UINT64_MAX >> shift)
		return false;
	*out = (uint64_t)number << shift;
	return true;
}

static int apply_limit(const struct cli_args *args, const char *text)
{
	uint64_t bytes;
	if (!cli_parse_number(text, true, &bytes) || bytes == 0)
		return cli_fail_verb(
		    args->verb, "not a size: --limit=%s; use a number of bytes, optionally with K, M or G", text);
	weft_source_limit(bytes);
	return -1;
}

static int parse_value(const struct cli_args *args, const struct cli_option *option, const char *text)
{
	switch (option->type) {
	case CLI_FLAG: break;
	case CLI_TEXT:
	case CLI_WORD: *(const char **)option->value = text; break;
	case CLI_TIME:
		if (!weft_duration_parse(text, strlen(text), option->value))
			return cli_fail_verb(
			    args->verb, "not a time: --%s=%s; use a number with ns, us, ms or s", option->name, text);
		break;
	case CLI_SIZE:
		if (!parse_size(text, option->value))
			return cli_fail_verb(
			    args->verb, "not a size: --%s=%s; use two numbers, such as 1280x720", option->name, text);
		break;
	}
	return -1;
}

enum { NAME_COLUMNS = 18 };

static void print_option(const struct cli_option *o)
{
	char name[96];
	const bool is_optional = o->type == CLI_WORD;
	snprintf(name, sizeof name, "--%s%s%s%s", o->name,
	    is_optional ? "[="
	    : o->arg    ? "="
			: "",
	    o->arg ? o->arg : "", is_optional ? "]" : "");
	const bool is_long = strlen(name) > NAME_COLUMNS;
	if (o->letter)
		printf("  -%c, ", o->letter);
	else
		fputs("      ", stdout);
	printf("%-*s%s %s\n", is_long ? 0 : NAME_COLUMNS, name, is_long ? "\n                        " : "", o->help);
}

static void print_options(const struct cli_args *args, const struct cli_option *options, void (*print)(const struct cli_option *))
{
	for (const struct cli_option *o = options; o->name; o++)
		print(o);
	if (takes_traces(args)) {
		print(&domain_option);
		print(&limit_option);
	}
	for (size_t i = 0; i < sizeof common_options / sizeof *common_options; i++)
		print(&common_options[i]);
}

static void print_help(const struct cli_args *args, const struct cli_option *options)
{
	printf("usage: weft %s [OPTIONS] %s\n%s\n\noptions:\n", args->verb, args->operands, args->summary);
	print_options(args, options, print_option);
	if (args->print_more)
		args->print_more(false);
	printf("\nmanual: man weft-%s\n", args->verb);
}

static void write_option(const struct cli_option *o)
{
	if (o->letter)
		printf("`-%c`, ", o->letter);
	if (!o->arg)
		printf("`--%s`\n", o->name);
	else if (o->type == CLI_WORD)
		printf("`--%s`[`=`*%s*]\n", o->name, o->arg);
	else
		printf("`--%s=`*%s*\n", o->name, o->arg);
	printf(": %s\n", o->help);
}

/* Writes the input of tools/manual for the verb's page: operands, summary, options and the text after the options. */
static void write_markdown(const struct cli_args *args, const struct cli_option *options)
{
	printf("%s\n%s\n", args->operands, args->summary);
	print_options(args, options, write_option);
	if (args->print_more)
		args->print_more(true);
}

static const struct cli_option *find_long(const struct cli_option *options, const char *name, size_t length)
{
	for (const struct cli_option *o = options; o->name; o++)
		if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
			return o;
	return NULL;
}

static const struct cli_option *find_short(const struct cli_option *options, char letter)
{
	for (const struct cli_option *o = options; o->name; o++)
		if (o->letter && o->letter == letter)
			return o;
	return NULL;
}

int cli_fail_missing(const struct cli_args *args, int operands)
{
	const char *word = args->operands;
	char name[16];
	size_t length = 0;
	if (strncmp(word, "-- ", 3) == 0)
		word += 3;
	for (int i = 0; i < operands && strchr(word, ' '); i++)
		word = strchr(word, ' ') + 1;
	for (; isupper((unsigned char)word[length]) && length + 1 < sizeof name; length++)
		name[length] = (char)tolower((unsigned char)word[length]);
	name[length] = '\0';
	return cli_fail_verb(args->verb, "no %s%s; usage: weft %s [OPTIONS] %s",
	    operands > 0 && strcmp(name, "trace") == 0 ? "second " : "", name, args->verb, args->operands);
}

/* Returns whether a word is the option: for the option "domain" with the letter d, -d, -dNAME, --domain and --domain=NAME. */
static bool is_option(const struct cli_option *option, const char *word)
{
	if (word[1] != '-')
		return option->letter && word[1] == option->letter;
	size_t length = strcspn(word + 2, "=");
	return length == strlen(option->name) && memcmp(word + 2, option->name, length) == 0;
}

int cli_parse(struct cli_args *args, const struct cli_option *options, int wanted)
{
	int operands = 0;
	bool only_operands = false;
	if (cli_is_completing())
		return cli_complete(args, options);
	for (int i = 0; i < args->argc; i++) {
		char *word = args->argv[i];
		if (only_operands || word[0] != '-' || word[1] == '\0') {
			args->argv[operands++] = word;
			/* After the first operand, the words belong to the started command. */
			only_operands |= strncmp(args->operands, "-- ", 3) == 0;
			continue;
		}
		if (strcmp(word, "--") == 0) {
			only_operands = true;
			continue;
		}
		if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
			(args->as_markdown ? write_markdown : print_help)(args, options);
			return cli_finish(CLI_OK);
		}
		if (strcmp(word, "--version") == 0) {
			puts("weft " WEFT_VERSION);
			return cli_finish(CLI_OK);
		}

		const struct cli_option *option;
		const char *value = NULL;
		if (word[1] == '-') {
			size_t length = strcspn(word + 2, "=");
			option = find_long(options, word + 2, length);
			if (word[2 + length] == '=')
				value = word + 2 + length + 1;
		} else {
			option = find_short(options, word[1]);
			if (word[2] != '\0')
				value = word[2] == '=' ? word + 3 : word + 2;
		}
		if (!option && takes_traces(args))
			option = is_option(&domain_option, word)  ? &domain_option
				 : is_option(&limit_option, word) ? &limit_option
								  : NULL;
		if (!option)
			return cli_fail_verb(args->verb, "unknown option: %s; weft %s --help lists them", word, args->verb);
		if (option->type == CLI_FLAG) {
			if (value)
				return cli_fail_verb(args->verb, "--%s takes no value", option->name);
			*(bool *)option->value = true;
			continue;
		}
		if (option->type == CLI_WORD) {
			*(const char **)option->value = value ? value : "";
			continue;
		}
		if (!value && i + 1 < args->argc)
			value = args->argv[++i];
		if (!value || *value == '\0')
			return cli_fail_verb(args->verb, "no value: --%s; use --%s=%s", option->name, option->name, option->arg);
		if (option == &domain_option) {
			char *trace;
			if (asprintf(&trace, DOMAIN_PREFIX "%s", value) < 0)
				return cli_fail_verb(args->verb, "%s", weft_status_string(WEFT_ENOMEM));
			args->argv[operands++] = trace; /* the text lives until the program ends, like argv */
			continue;
		}
		int status = option == &limit_option ? apply_limit(args, value) : parse_value(args, option, value);
		if (status >= 0)
			return status;
	}
	args->argc = operands;
	if (wanted == CLI_ONE_OR_NONE)
		wanted = operands > 0;
	if (wanted == CLI_ANY_NUMBER)
		wanted = operands;
	if (operands < (wanted < 0 ? -wanted : wanted))
		return cli_fail_missing(args, operands);
	if (wanted >= 0 && operands > wanted)
		return cli_fail_verb(args->verb, "too many traces: %s", args->argv[wanted]);
	return -1;
}
