/* merge.c: weft merge: several traces in one directory, which is read as one.  SPDX-License-Identifier: ISC */
#include "cli.h"
#include "trace/trace.h"

int cli_merge(struct cli_args *args)
{
	const char *out = NULL;
	const struct cli_option options[] = {
	    {"output", 'o', CLI_TEXT, &out, "DIR", "writes the copies into this new directory"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	if (!out)
		return cli_fail("merge: where to?  -o DIR");
	struct cli_input input;
	exit = cli_open_joined(&input, args);
	if (exit >= 0)
		return exit;
	struct cli_directory dir;
	struct weft_error err;
	if (args->argc < 2)
		exit = cli_fail("merge: %s is one trace; weft save copies it", input.name);
	else
		exit = cli_directory_begin(&dir, out);
	if (exit < 0) {
		cli_progress_begin("copying", input.name);
		const int status = weft_trace_save(input.trace, NULL, cli_directory_write, &dir, &err);
		cli_progress_end();
		exit = cli_directory_end(&dir, status, &err);
	}
	cli_close(&input);
	return exit;
}
