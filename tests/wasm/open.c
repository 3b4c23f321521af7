/* open.c: traces of files, for tests: the core of the page only knows memory.  The bytes stay until the program ends.
 * SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/trace.h"

int weft_trace_open(struct weft_trace **out, const char *path, struct weft_error *err)
{
	static unsigned char *bytes;
	static size_t size;
	static char name[4096];
	if (strcmp(path, name) == 0)
		return weft_trace_open_memory(out, bytes, size, path, err);
	struct stat st;
	int fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return weft_error_set(err, WEFT_ENOENT, "%s: not there", path);
	// tests let malloc() fail, and with it stdio
	bytes = aligned_alloc(16, ((size_t)st.st_size + 16) / 16 * 16);
	ssize_t got = 0;
	for (size = 0; bytes && (got = read(fd, bytes + size, (size_t)st.st_size - size)) > 0; size += (size_t)got)
		;
	close(fd);
	snprintf(name, sizeof name, "%s", path);
	return weft_trace_open_memory(out, bytes, size, path, err);
}
