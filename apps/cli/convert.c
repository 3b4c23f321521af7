/* convert.c: weft convert: the trace in another format.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* A directory under a temporary name. */
struct directory {
	const char *path;
	int error; /* errno of what failed */
};

static int write_into(void *ctx, const char *name, const void *bytes, size_t size)
{
	struct directory *dir = ctx;
	char *path;
	if (asprintf(&path, "%s/%s", dir->path, name) < 0) {
		dir->error = ENOMEM;
		return -1;
	}
	FILE *file = fopen(path, "wbx");
	errno = file ? 0 : errno;
	bool written = file && fwrite(bytes, 1, size, file) == size;
	if (file && fclose(file) != 0)
		written = false;
	dir->error = errno;
	free(path);
	return written ? 0 : -1;
}

static void remove_directory(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

/* It appears when it is whole.  Nothing is overwritten but an empty directory. */
static int to_native(const struct cli_input *input, const char *out)
{
	struct weft_losses losses;
	struct weft_error err;
	char *temporary;
	size_t length = strlen(out);
	while (length > 1 && out[length - 1] == '/')
		length--;
	if (asprintf(&temporary, "%.*s.%ld.tmp", (int)length, out, (long)getpid()) < 0)
		return cli_fail("%s: %s", out, weft_status_string(WEFT_ENOMEM));
	struct directory dir = {.path = temporary};
	int exit = CLI_FINE;
	if (mkdir(temporary, 0777) < 0) {
		exit = cli_fail("%s: %s", out, strerror(errno));
		free(temporary);
		return exit;
	}
	cli_progress_begin("writing", out);
	int status = weft_export_native(input->trace, write_into, &dir, &losses, &err);
	cli_progress_end();
	if (status == WEFT_EIO && dir.error != 0)
		exit = cli_fail("%s: %s", out, strerror(dir.error));
	else if (status < 0)
		exit = cli_fail("%s: %s", out, err.what);
	else if (rename(temporary, out) < 0)
		exit = cli_fail("%s: %s", out, errno == ENOTEMPTY || errno == ENOTDIR ? "exists already" : strerror(errno));
	if (exit != CLI_FINE)
		remove_directory(temporary);
	free(temporary);
	cli_tell_skipped(input);
	if (exit == CLI_FINE)
		tell_losses(out, "native", &losses);
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
	bool native = strcmp(format, "native") == 0;
	if (!native && strcmp(format, "mirage") != 0)
		return cli_fail("convert: --to=%s: the formats are mirage and native", format);
	if (!out)
		return cli_fail("convert: where to?  -o OUT");
	if (native && strcmp(out, "-") == 0)
		return cli_fail("convert: a native trace is a directory: -o OUT");

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
