/* convert.c: weft convert: the trace in another format.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "export/export.h"

static int write_file(void *file, const void *bytes, size_t size)
{
	return fwrite(bytes, 1, size, file) == size ? 0 : -1;
}

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

/* Whatever stood at `out` stays until the new file is whole. */
static int to_mirage(const struct cli_input *input, const char *out)
{
	bool to_stdout = strcmp(out, "-") == 0;
	struct weft_losses losses;
	struct weft_error err;
	char *temporary = NULL;
	FILE *file = stdout;
	if (to_stdout) {
		out = "standard output";
	} else {
		if (asprintf(&temporary, "%s.%ld.tmp", out, (long)getpid()) < 0)
			return cli_fail("%s: %s", out, weft_status_string(WEFT_ENOMEM));
		file = fopen(temporary, "wbx");
		if (!file) {
			int exit = cli_fail("%s: %s", out, strerror(errno));
			free(temporary);
			return exit;
		}
	}
	int exit = CLI_FINE;
	cli_progress_begin("writing", out);
	int status = weft_export_mirage(input->trace, write_file, file, &losses, &err);
	cli_progress_end();
	if (to_stdout) {
		if (status == WEFT_EIO || status == WEFT_OK)
			exit = cli_finish(CLI_FINE);
		else
			exit = cli_fail("%s: %s", out, err.what);
	} else {
		errno = 0;
		bool closed = fclose(file) == 0;
		if (status < 0 || !closed || rename(temporary, out) < 0) {
			exit = cli_fail("%s: %s", out, errno ? strerror(errno) : err.what);
			unlink(temporary);
		}
	}
	free(temporary);
	cli_tell_skipped(input);
	if (exit == CLI_FINE)
		tell_losses(out, "mirage", &losses);
	return exit;
}

int cli_convert(struct cli_args *args)
{
	const char *out = NULL, *format = NULL;
	const struct cli_option options[] = {
	    {"output", 'o', CLI_TEXT, &out, "OUT", "mirage: a file, or - for standard output; native: a new directory"},
	    {"to", 0, CLI_TEXT, &format, "FORMAT", "mirage or native"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, 1);
	if (exit >= 0)
		return exit;
	if (!format)
		return cli_fail("convert: to which format?  --to=mirage or --to=native");
	if (strcmp(format, "mirage") != 0 && strcmp(format, "native") != 0)
		return cli_fail("convert: --to=%s: the formats are mirage and native", format);
	if (!out)
		return cli_fail("convert: where to?  -o OUT");

	struct cli_input input;
	exit = cli_open(&input, args->argv[0]);
	if (exit >= 0)
		return exit;
	exit = to_mirage(&input, out);
	cli_close(&input);
	return exit;
}
