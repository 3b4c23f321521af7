/* program_name.h: the name and the path by which the user knows a program.
 *
 * The name of a process may be that of a thread: Node.js 24 calls its first thread "MainThread".  The path of its executable may
 * be that of another program: redis-server is a symbolic link to redis-check-rdb.  The kernel keeps the path with which a
 * program was started (AT_EXECFN); the program cannot change that path by accident.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_PROGRAM_NAME_H
#define WEFT_BASE_PROGRAM_NAME_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { WEFT_PROGRAM_NAME_BYTES = 16, WEFT_PROGRAM_PATH_BYTES = 4096 };

/* Returns the file name in the path with which a program was started; NULL if the path names no file: the kernel names a program
 * that was started by its descriptor /dev/fd/N. */
static inline const char *weft_started_file(const char *started_as)
{
	static const char by_descriptor[] = "/dev/fd/";
	const char *slash = started_as ? strrchr(started_as, '/') : NULL, *file = slash ? slash + 1 : started_as;
	return file && *file && strncmp(started_as, by_descriptor, sizeof by_descriptor - 1) != 0 ? file : NULL;
}

/* Replaces the name of a process, as in /proc/PID/comm, by the name under which the program was started, as long as the kernel
 * allows.  Without `started_as` the name stays. */
static inline void weft_program_name(char *name, size_t size, const char *started_as)
{
	const char *file = weft_started_file(started_as);
	const size_t capacity = size < WEFT_PROGRAM_NAME_BYTES ? size : WEFT_PROGRAM_NAME_BYTES;
	const size_t length = file ? strnlen(file, capacity - 1) : 0;
	if (!file)
		return;
	memcpy(name, file, length);
	name[length] = 0;
}

/* Replaces the path of an executable, as in the link /proc/PID/exe, by the path with which the program was started, if both are
 * the same file: `link` is the path of that link.  A relative path is looked up in the folder of the executable. */
static inline void weft_program_path(char *path, size_t size, const char *started_as, const char *link)
{
	const char *file = weft_started_file(started_as), *slash = strrchr(path, '/');
	char other[WEFT_PROGRAM_PATH_BYTES];
	struct stat executable, found;
	if (!file || !slash)
		return;
	const int length = started_as[0] == '/' ? snprintf(other, sizeof other, "%s", started_as)
						: snprintf(other, sizeof other, "%.*s/%s", (int)(slash - path), path, file);
	if (length < (int)sizeof other && (size_t)length < size && stat(link, &executable) == 0 && stat(other, &found) == 0 &&
	    executable.st_dev == found.st_dev && executable.st_ino == found.st_ino)
		memcpy(path, other, (size_t)length + 1);
}

#endif
