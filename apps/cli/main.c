/* main.c: runs the verb of the weft command.  SPDX-License-Identifier: ISC */
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "cli.h"
#include "complete.h"
#include "feature_list.h"
#include "inherited.h"
#include "xen/domain.h"

static const struct {
	const char *name, *operands, *summary;
	int (*run)(struct cli_args *args);
} verbs[] = {
#define ENTRY(verb, operands, summary) {#verb, operands, summary, cli_##verb},
    CLI_VERBS(ENTRY)
#undef ENTRY
};

/* Implements weft --complete -- VERB WORD..., which prints completions of the last word. */
static int complete_words(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[0], "--") != 0)
		return cli_fail("--complete: expected -- and the words to complete");
	cli_complete_begin(argv[argc - 1]);
	const bool is_help = argc > 2 && strcmp(argv[1], "help") == 0;
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		struct cli_args args = {verbs[i].name, verbs[i].operands, verbs[i].summary, argc - 2, argv + 2, NULL, false};
		if (argc > 2 && strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(&args);
		if (argc == 2 || (is_help && argc == 3))
			cli_complete_word("", verbs[i].name);
	}
	if (argc == 2)
		cli_complete_word("", "help");
	if (is_help && argc == 3)
		cli_complete_findings();
	if (!is_help)
		puts("@files");
	return cli_finish(CLI_OK);
}

static int print_help(void)
{
	puts("usage: weft record -o TRACE -- COMMAND...\n"
	     "       weft VERB [OPTIONS] TRACE\n"
	     "       weft TRACE...\n\n"
	     "Shows why an event-driven program hung or was slow.\n\nverbs:");
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		printf("  %-8s %s\n", verbs[i].name, verbs[i].summary);
	puts("\nA TRACE is a directory or a file, in any format that weft reads, - for standard input,\n"
	     "or -d NAME|ID for the ring buffer that a Xen domain shares.\n"
	     "weft help VERB lists the options of a verb; weft help findings lists all findings,\n"
	     "and weft help FINDING explains one.  The manual is weft(1).");
	return cli_finish(CLI_OK);
}

/* Recognizes weft -d NAME -w FILE, the command line of older tools. */
static bool has_write_option(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], "-w", 2) == 0 || strncmp(argv[i], "--write", 7) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	cli_begin_process();
	if (argc < 2)
		return cli_fail("no verb; weft --help lists them");
	/* weft help VERB is the same as weft VERB --help; tools/finding-pages and tools/manual use the option --markdown. */
	static char help[] = "--help";
	bool as_markdown = false;
	char *of_verb[] = {argv[0], argc > 2 ? argv[2] : NULL, help};
	if (strcmp(argv[1], "help") == 0 && argc > 2) {
		as_markdown = argc > 3 && strcmp(argv[3], "--markdown") == 0;
		if (cli_help_finding(argv[2], as_markdown))
			return cli_finish(CLI_OK);
		argc = 3;
		argv = of_verb;
	}
	const char *verb = argv[1];
	weft_duration_set_ascii(true);
	if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0)
		return print_help();
	if (strcmp(verb, "--version") == 0) {
		puts("weft " WEFT_VERSION);
		cli_print_features(stdout);
		return cli_finish(CLI_OK);
	}
	if (strcmp(verb, "--complete") == 0)
		return complete_words(argc - 2, argv + 2);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		if (strcmp(verb, verbs[i].name) == 0) {
			struct cli_args args = {verb, verbs[i].operands, verbs[i].summary, argc - 2, argv + 2, NULL, as_markdown};
			return verbs[i].run(&args);
		}
	}
	if (argv == of_verb)
		return cli_fail_verb(
		    "help", "neither a verb nor a finding: %s; weft --help and weft help findings list them", verb);
	bool is_domain = strncmp(verb, "-d", 2) == 0 || strncmp(verb, "--domain", 8) == 0 || domain_is_path(verb);
	if (is_domain && has_write_option(argc - 1, argv + 1)) {
		struct cli_args args = {"save", "TRACE -w OUT", "", argc - 1, argv + 1, NULL, false};
		return cli_save(&args);
	}
	if (is_domain || strcmp(verb, "-") == 0 || access(verb, F_OK) == 0) {
		struct cli_args args = {"view", verbs[0].operands, verbs[0].summary, argc - 1, argv + 1, NULL, false};
		return cli_view(&args);
	}
	return cli_fail("neither a verb nor a trace: %s; weft --help lists the verbs", verb);
}
