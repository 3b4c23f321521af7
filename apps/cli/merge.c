/* merge.c: implements weft merge, which copies several traces into one directory.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "cli.h"
#include "export/scrub.h"
#include "trace/join.h"

/* Copies all traces; with `is_scrubbed`, equal texts get equal stand-ins in all copies. */
static int copy_traces(const struct weft_trace *trace, bool is_scrubbed, struct cli_directory *dir, struct weft_error *err)
{
	struct weft_trace_edit edit = {.text = NULL};
	struct weft_scrub scrub = {0};
	if (!is_scrubbed)
		return weft_trace_save(trace, NULL, cli_directory_write, dir, err);
	const int status = cli_save_scrubbed(trace, &edit, &scrub, cli_directory_write, dir, err);
	weft_scrub_finish(&scrub);
	return status;
}

/* Rejects traces that cannot be scrubbed, before anything is written.  Returns -1 or an exit status. */
static int check_formats(const struct weft_trace *trace)
{
	for (size_t i = 0; weft_trace_part(trace, i); i++) {
		const char *format = weft_trace_info(weft_trace_part(trace, i))->format;
		if (strcmp(format, "native") != 0)
			return cli_fail_verb(
			    "merge", "--scrub needs native traces; operand %zu has the format %s", i + 1, format);
	}
	return -1;
}

int cli_merge(struct cli_args *args)
{
	const char *out = NULL;
	bool scrub = false;
	const struct cli_option options[] = {
	    {"output", 'o', CLI_TEXT, &out, "DIR", "write the copies into this new directory"},
	    {"scrub", 0, CLI_FLAG, &scrub, NULL,
		"replace names, labels, notes, errors, paths and addresses by placeholders, the same in all copies"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	if (!out)
		return cli_fail_verb("merge", "no output; use -o DIR");
	struct cli_input input;
	exit = cli_open_joined(&input, args);
	if (exit >= 0)
		return exit;
	struct cli_directory dir;
	struct weft_error err;
	if (input.plan->paths.count < 2)
		exit = cli_fail_verb("merge", "only one trace: %s; use weft save", input.name);
	else if ((exit = scrub ? check_formats(input.trace) : -1) < 0)
		exit = cli_directory_begin(&dir, out);
	if (exit < 0) {
		cli_progress_begin("copying", input.name);
		const int status = copy_traces(input.trace, scrub, &dir, &err);
		cli_progress_end();
		exit = cli_directory_end(&dir, status, &err);
	}
	cli_close(&input);
	return exit;
}
