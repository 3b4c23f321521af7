/* convert.c: weft convert: the trace in another format.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "cli.h"
#include "export/export.h"

/* One note for all that the format has no place for. */
static void tell_losses(const char *out, const char *format, const struct weft_losses *losses)
{
	char text[512];
	size_t length = 0;
	for (int i = 0; i < WEFT_LOSS_COUNT; i++)
		if (losses->counts[i] > 0 && length < sizeof text)
			length += (size_t)snprintf(text + length, sizeof text - length, "%s%" PRIu64 " %s",
			    length > 0 ? ", " : "", losses->counts[i], weft_loss_text((enum weft_loss)i));
	if (length > 0)
		cli_note("%s: %s has no place for: %s", out, format, text);
}

static int to_mirage(const struct cli_input *input, const char *out)
{
	struct weft_losses losses;
	struct weft_error err;
	struct cli_file file;
	int exit = cli_file_begin(&file, out);
	if (exit >= 0)
		return exit;
	cli_progress_begin("writing", file.name);
	int status = weft_export_mirage(input->trace, cli_file_write, &file, &losses, &err);
	cli_progress_end();
	exit = cli_file_end(&file, status, &err);
	cli_tell_skipped(input);
	if (exit == CLI_FINE)
		tell_losses(file.name, "mirage", &losses);
	return exit;
}

static int to_native(const struct cli_input *input, const char *out)
{
	struct weft_losses losses;
	struct weft_error err;
	struct cli_directory dir;
	int exit = cli_directory_begin(&dir, out);
	if (exit >= 0)
		return exit;
	cli_progress_begin("writing", out);
	int status = weft_export_native(input->trace, cli_directory_write, &dir, &losses, &err);
	cli_progress_end();
	exit = cli_directory_end(&dir, status, &err);
	cli_tell_skipped(input);
	if (exit == CLI_FINE)
		tell_losses(out, "native", &losses);
	return exit;
}

int cli_convert(struct cli_args *args)
{
	const char *out = NULL, *format = NULL;
	const struct cli_option options[] = {
	    {"output", 'o', CLI_TEXT, &out, "OUT",
		"writes here: mirage a file, or - for standard output; native a new directory"},
	    {"to", 0, CLI_TEXT, &format, "mirage|native", "the format"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, 1);
	if (exit >= 0)
		return exit;
	if (!format)
		return cli_fail("convert: to which format?  --to=mirage or --to=native");
	bool native = strcmp(format, "native") == 0;
	if (!native && strcmp(format, "mirage") != 0)
		return cli_fail("convert: --to=%s: the formats are mirage and native", format);
	if (!out)
		return cli_fail("convert: where to?  -o OUT");
	if (native && strcmp(out, "-") == 0)
		return cli_fail("convert: a native trace is a directory, and cannot go to standard output: -o OUT");

	struct cli_input input;
	exit = cli_open(&input, args->argv[0]);
	if (exit >= 0)
		return exit;
	exit = cli_check_events(&input);
	if (exit >= 0)
		return exit;
	exit = native ? to_native(&input, out) : to_mirage(&input, out);
	cli_close(&input);
	return exit;
}
