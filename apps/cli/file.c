/* file.c: writes files.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

FILE *cli_create_private(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

static int begin_file(struct cli_file *file, const char *path, bool is_private)
{
	struct stat there;
	*file = (struct cli_file){.name = path, .path = path, .stream = stdout};
	if (strcmp(path, "-") == 0) {
		file->name = "standard output";
		return -1;
	}
	if (stat(path, &there) < 0 || S_ISREG(there.st_mode)) {
		if (asprintf(&file->temporary, "%s.%ld.tmp", path, (long)getpid()) < 0)
			return cli_fail("%s: %s", path, weft_status_string(WEFT_ENOMEM));
		file->stream = is_private ? cli_create_private(file->temporary) : fopen(file->temporary, "wbx");
	} else {
		file->stream = fopen(path, "wb");
	}
	if (file->stream)
		return -1;
	int exit = cli_fail("%s: %s", path, strerror(errno));
	free(file->temporary);
	return exit;
}

int cli_file_begin(struct cli_file *file, const char *path)
{
	return begin_file(file, path, false);
}

int cli_file_begin_private(struct cli_file *file, const char *path)
{
	return begin_file(file, path, true);
}

int cli_file_write(void *ctx, const void *bytes, size_t size)
{
	const struct cli_file *file = ctx;
	return fwrite(bytes, 1, size, file->stream) == size ? 0 : -1;
}

int cli_file_end(struct cli_file *file, int status, const struct weft_error *err)
{
	if (file->stream == stdout)
		return status == WEFT_EIO || status >= 0 ? cli_finish(CLI_OK) : cli_fail("%s: %s", file->name, err->what);
	errno = 0;
	bool closed = fclose(file->stream) == 0;
	int exit = CLI_OK;
	if (status < 0 || !closed || (file->temporary && rename(file->temporary, file->path) < 0)) {
		exit = cli_fail("%s: %s", file->name, errno ? strerror(errno) : err->what);
		if (file->temporary)
			unlink(file->temporary);
	}
	free(file->temporary);
	return exit;
}
