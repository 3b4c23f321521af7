/* directory.c: writes directories that only their owner may read, like the directories of a recording.
 * SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/named.h"
#include "cli.h"

int cli_directory_begin(struct cli_directory *dir, const char *path)
{
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	*dir = (struct cli_directory){.path = path};
	if (asprintf(&dir->temporary, "%.*s.%ld.tmp", (int)length, path, (long)getpid()) < 0)
		return cli_fail("%s: %s", path, weft_status_string(WEFT_ENOMEM));
	if (mkdir(dir->temporary, 0700) == 0)
		return -1;
	int exit = cli_fail("%s: %s", path, strerror(errno));
	free(dir->temporary);
	return exit;
}

int cli_directory_write(void *ctx, const char *name, const void *bytes, size_t size)
{
	struct cli_directory *dir = ctx;
	char *path;
	if (asprintf(&path, "%s/%s", dir->temporary, name) < 0) {
		dir->error = ENOMEM;
		return -1;
	}
	char *folder = strrchr(path + strlen(dir->temporary) + 1, '/');
	if (folder) {
		*folder = '\0';
		mkdir(path, 0700); /* the folder may exist; any other error appears again when the file is created */
		*folder = '/';
	}
	FILE *file = cli_create_private(path);
	errno = file ? 0 : errno;
	bool written = file && fwrite(bytes, 1, size, file) == size;
	if (file && fclose(file) != 0)
		written = false;
	dir->error = errno;
	free(path);
	return written ? 0 : -1;
}

/* Removes a folder and the files in it. */
static bool remove_flat(int parent, const char *name)
{
	const int fd = weft_named_folder(parent, name, WEFT_ANY_OWNER);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			unlinkat(fd, entry->d_name, 0);
	if (dir)
		closedir(dir);
	return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

bool cli_directory_remove(int parent, const char *name)
{
	const int fd = weft_named_folder(parent, name, WEFT_ANY_OWNER);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (entry->d_name[0] != '.' && unlinkat(fd, entry->d_name, 0) < 0 && errno == EISDIR)
			remove_flat(fd, entry->d_name);
	if (dir)
		closedir(dir);
	return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

static void remove_directory(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && unlinkat(dirfd(dir), entry->d_name, 0) < 0 && errno == EISDIR)
			remove_flat(dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
	rmdir(path);
}

int cli_directory_end(struct cli_directory *dir, int status, const struct weft_error *err)
{
	int exit = CLI_OK;
	if (status == WEFT_EIO && dir->error != 0)
		exit = cli_fail("%s: %s", dir->path, strerror(dir->error));
	else if (status < 0)
		exit = cli_fail("%s: %s", dir->path, err->what);
	else if (rename(dir->temporary, dir->path) < 0)
		exit = cli_fail("%s: %s", dir->path, errno == ENOTEMPTY || errno == ENOTDIR ? "already exists" : strerror(errno));
	if (exit != CLI_OK)
		remove_directory(dir->temporary);
	free(dir->temporary);
	return exit;
}
