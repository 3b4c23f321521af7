/* open.c: sources of the file system, and standard input.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "trace/format.h"

/* `dir` is where `path` is, or NULL. */
static int fail_errno(struct weft_error *err, const char *dir, const char *path, int error)
{
	int status = error == ENOENT || error == ENOTDIR ? WEFT_ENOENT
		     : error == EACCES || error == EPERM ? WEFT_EACCES
		     : error == ENOMEM                   ? WEFT_ENOMEM
							 : WEFT_EIO;
	return weft__trace_fail(
	    err, status, NULL, &(struct weft_blob){.name = (char *)path}, WEFT_NO_OFFSET, WEFT_NO_OFFSET, "%s", strerror(error));
}

/* Whether reading on makes sense: by now its first bytes are known. */
static bool is_known(const unsigned char *bytes, size_t size)
{
	struct weft_blob blob = {.name = (char *)"", .bytes = bytes, .size = size};
	struct weft_source source = {.name = (char *)"", .blobs = &blob, .blob_count = 1};
	return weft__source_is_tar(bytes, size) || weft__trace_probe(&source);
}

/* Reads what cannot be mapped, to its end; with `look` only what a format knows, as it may not have an end. */
static int slurp(struct weft_blob *out, int fd, bool look, const char *path, struct weft_error *err)
{
	WEFT_VEC(unsigned char) bytes = {0};
	bool looked = !look;
	int status;
	for (;;) {
		if (!weft_vec_reserve(&bytes, 65536)) {
			status = fail_errno(err, NULL, path, ENOMEM);
			break;
		}
		ssize_t n = read(fd, bytes.items + bytes.count, bytes.capacity - bytes.count);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			status = fail_errno(err, NULL, path, errno);
			break;
		}
		bytes.count += (size_t)n;
		if (!looked && bytes.count && (n == 0 || bytes.count >= 512)) {
			looked = true;
			if (!is_known(bytes.items, bytes.count)) {
				status = weft__trace_fail(err, WEFT_EFORMAT, NULL, &(struct weft_blob){.name = (char *)path},
				    WEFT_NO_OFFSET, WEFT_NO_OFFSET, "%s", weft_status_string(WEFT_EFORMAT));
				break;
			}
		}
		if (n == 0) {
			*out = (struct weft_blob){.bytes = bytes.items, .size = bytes.count, .owner = WEFT_BLOB_HEAP};
			return WEFT_OK;
		}
	}
	weft_vec_free(&bytes);
	return status;
}

/* Maps a regular file, reads others; fd stays open. */
static int load(struct weft_blob *out, int fd, const struct stat *st, const char *path, struct weft_error *err)
{
	if (!S_ISREG(st->st_mode))
		return slurp(out, fd, true, path, err);
	if (st->st_size == 0) {
		*out = (struct weft_blob){.bytes = (const unsigned char *)"", .owner = WEFT_BLOB_BORROWED};
		return WEFT_OK;
	}
	if ((uint64_t)st->st_size > SIZE_MAX)
		return fail_errno(err, NULL, path, EFBIG);
	void *bytes = mmap(NULL, (size_t)st->st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return slurp(out, fd, false, path, err);
	*out = (struct weft_blob){.bytes = bytes, .size = (size_t)st->st_size, .owner = WEFT_BLOB_MAPPED};
	return WEFT_OK;
}

static int load_directory(struct weft_source *source, DIR *dir, const char *path, struct weft_error *err)
{
	WEFT_VEC(struct weft_blob) blobs = {0};
	int status = WEFT_OK;
	const struct dirent *entry;
	while (status == WEFT_OK && (errno = 0, entry = readdir(dir))) {
		struct stat st;
		if (fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
			continue;
		int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0)
			status = fail_errno(err, path, entry->d_name, errno);
		else {
			struct weft_blob *blob = weft_vec_push(&blobs);
			char *name = blob ? strdup(entry->d_name) : NULL;
			if (!name) {
				blobs.count -= blob != NULL;
				status = fail_errno(err, NULL, path, ENOMEM);
			} else if ((status = load(blob, fd, &st, entry->d_name, err)) < 0) {
				blobs.count--;
				free(name);
			} else
				blob->name = name;
		}
		if (fd >= 0)
			close(fd);
	}
	if (status == WEFT_OK && errno)
		status = fail_errno(err, NULL, path, errno);
	source->blobs = blobs.items;
	source->blob_count = blobs.count;
	source->is_dir = true;
	weft__source_sort(source);
	return status;
}

int weft_source_open(struct weft_source *out, const char *path, struct weft_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	const char *name = is_stdin ? "standard input" : path;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(err, NULL, name, errno);
	struct stat st;
	int status = WEFT_OK;
	struct weft_blob blob = {0};
	if (fstat(fd, &st) < 0)
		status = fail_errno(err, NULL, name, errno);
	else if (S_ISDIR(st.st_mode)) {
		/* A directory stream owns its descriptor, which standard input's owner still needs. */
		int own = is_stdin ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : fd;
		DIR *dir = own < 0 ? NULL : fdopendir(own);
		if (!dir)
			status = fail_errno(err, NULL, name, errno);
		else {
			struct weft_source source = {.name = strdup(name)};
			status = source.name ? load_directory(&source, dir, name, err) : fail_errno(err, NULL, name, ENOMEM);
			closedir(dir);
			if (status < 0)
				weft_source_close(&source);
			else
				*out = source;
			return status;
		}
	} else if ((status = load(&blob, fd, &st, name, err)) == WEFT_OK)
		status = weft__source_from_blob(out, blob, name, err);
	if (!is_stdin)
		close(fd);
	return status;
}

int weft_trace_open(struct weft_trace **out, const char *path, struct weft_error *err)
{
	struct weft_source source;
	int status = weft_source_open(&source, path, err);
	return status < 0 ? status : weft__trace_from_source(out, &source, err);
}
