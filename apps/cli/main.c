/* main.c: the weft command finds the verb.  SPDX-License-Identifier: ISC */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "cli.h"
#include "complete.h"
#include "xen/domain.h"

static const struct {
	const char *name, *operands, *summary;
	int (*run)(struct cli_args *args);
} verbs[] = {
#define ENTRY(verb, operands, summary) {#verb, operands, summary, cli_##verb},
    CLI_VERBS(ENTRY)
#undef ENTRY
};

/* weft --complete -- VERB WORD...: what the last of the words can become. */
static int complete(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[0], "--") != 0)
		return cli_fail("--complete: -- and the words to complete follow");
	cli_complete_begin(argv[argc - 1]);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		struct cli_args args = {verbs[i].name, verbs[i].operands, verbs[i].summary, argc - 2, argv + 2, NULL};
		if (argc > 2 && strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(&args);
		if (argc == 2)
			cli_complete_word("", verbs[i].name);
	}
	puts("@files");
	return cli_finish(CLI_FINE);
}

static int print_help(void)
{
	puts("usage: weft record -o TRACE -- COMMAND...\n"
	     "       weft VERB [OPTIONS] TRACE\n"
	     "       weft TRACE...\n\n"
	     "Shows what an asynchronous program did, promise by promise.\n\nverbs:");
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		printf("  %-8s %s\n", verbs[i].name, verbs[i].summary);
	puts("\nA TRACE is a directory or a file, in any format that weft reads, - for standard input,\n"
	     "or -d NAME|ID for the ring that a Xen domain shares.\n"
	     "weft help VERB lists the options of a verb; the manual is weft(1).");
	return cli_finish(CLI_FINE);
}

/* weft -d NAME -w FILE: as those type it who come from older tools. */
static bool is_written(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], "-w", 2) == 0 || strncmp(argv[i], "--write", 7) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	// A reader that leaves early is met as EPIPE, so that `weft events | head` ends quietly and with status 0.
	signal(SIGPIPE, SIG_IGN);

	if (argc < 2)
		return cli_fail("which verb?  weft --help lists them");
	/* weft help VERB is weft VERB --help. */
	static char help[] = "--help";
	char *of_verb[] = {argv[0], argc > 2 ? argv[2] : NULL, help};
	if (strcmp(argv[1], "help") == 0 && argc > 2) {
		argc = 3;
		argv = of_verb;
	}
	const char *verb = argv[1];
	weft_duration_ascii(true);
	if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0)
		return print_help();
	if (strcmp(verb, "--version") == 0) {
		puts("weft " WEFT_VERSION);
		return cli_finish(CLI_FINE);
	}
	if (strcmp(verb, "--complete") == 0)
		return complete(argc - 2, argv + 2);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		if (strcmp(verb, verbs[i].name) == 0) {
			struct cli_args args = {verb, verbs[i].operands, verbs[i].summary, argc - 2, argv + 2, NULL};
			return verbs[i].run(&args);
		}
	}
	if (argv == of_verb)
		return cli_fail("%s is not a verb; weft --help lists them", verb);
	bool is_domain = strncmp(verb, "-d", 2) == 0 || strncmp(verb, "--domain", 8) == 0 || domain_is(verb);
	if (is_domain && is_written(argc - 1, argv + 1)) {
		struct cli_args args = {"save", "TRACE -w OUT", "", argc - 1, argv + 1, NULL};
		return cli_save(&args);
	}
	if (is_domain || strcmp(verb, "-") == 0 || access(verb, F_OK) == 0) {
		struct cli_args args = {"view", verbs[0].operands, verbs[0].summary, argc - 1, argv + 1, NULL};
		return cli_view(&args);
	}
	return cli_fail("%s is not a verb; weft --help lists them", verb);
}
