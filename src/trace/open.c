/* open.c: sources of the file system, and standard input.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "trace/format.h"
#include "trace/image.h"

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

/* Reads what does not tell its size, to its end; with `look` only what a format knows, as it may not have an end. */
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

/* Reads at `offset` until `bytes` are there, or the file's end; returns how many, or -1. */
static ssize_t read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	size_t got = 0;
	while (got < bytes) {
		ssize_t n = pread(fd, (char *)to + got, bytes - got, (off_t)(offset + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static bool reread(const struct weft_source *source, const struct weft_blob *blob, uint64_t offset, void *to, size_t bytes)
{
	int fd = source->is_dir ? openat(source->file, blob->name, O_RDONLY | O_CLOEXEC) : source->file;
	ssize_t got = fd < 0 ? -1 : read_at(fd, to, bytes, offset);
	if (source->is_dir && fd >= 0)
		close(fd);
	return got == (ssize_t)bytes;
}

/* Zeros for what is read, to be freed; of large pages where it is much: the kernel then clears them in a third of the time. */
static unsigned char *allocate(size_t bytes)
{
	enum { LARGE = 2 << 20 };
	unsigned char *memory = calloc(bytes ? bytes : 1, 1);
	if (memory && bytes >= 2 * LARGE) {
		uintptr_t begin = ((uintptr_t)memory + LARGE - 1) / LARGE * LARGE,
			  end = ((uintptr_t)memory + bytes) / LARGE * LARGE;
		madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	}
	return memory;
}

/* Reads from the file's begin what is not a hole in it (most of a ring that is young) to zeros; `size` becomes smaller if the
 * file has become so. */
static bool read_data(int fd, unsigned char *to, size_t *size)
{
	size_t at = 0;
	while (at < *size) {
		off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
		if (data < 0 && errno == ENXIO)
			break;
		/* Where there are no holes to be asked for, all is data. */
		size_t begin = data < 0 ? at : (size_t)data, end = hole <= data || (size_t)hole > *size ? *size : (size_t)hole;
		if (begin >= *size)
			break;
		ssize_t got = read_at(fd, to + begin, end - begin, begin);
		if (got < 0)
			return false;
		if ((size_t)got < end - begin)
			*size = begin + (size_t)got;
		at = end;
	}
	return true;
}

/* Reads at most `size` bytes from the file's begin to `to`, where zeros are.  The first page by itself: what the header of a
 * packet that still grows says of its content is there when the rest is read. */
static int read_file(struct weft_blob *out, int fd, unsigned char *to, size_t size, const char *path, struct weft_error *err)
{
	unsigned char first[4096];
	size_t head_size = size < sizeof first ? size : sizeof first;
	ssize_t head = read_at(fd, first, head_size, 0);
	if (head == (ssize_t)head_size && head_size < size ? !read_data(fd, to, &size) : head < 0)
		return fail_errno(err, NULL, path, errno);
	memcpy(to, first, (size_t)head);
	out->bytes = to;
	out->size = head < (ssize_t)head_size ? (size_t)head : size;
	return WEFT_OK;
}

/* What a regular file has now, others to their end; fd stays open. */
static int load(struct weft_blob *out, int fd, const struct stat *st, const char *path, struct weft_error *err)
{
	if (!S_ISREG(st->st_mode))
		return slurp(out, fd, true, path, err);
	unsigned char *bytes = (uint64_t)st->st_size < SIZE_MAX ? allocate((size_t)st->st_size) : NULL;
	if (!bytes)
		return fail_errno(err, NULL, path, ENOMEM);
	struct weft_blob blob = {.name = out->name, .bytes = bytes, .owner = WEFT_BLOB_HEAP};
	int status = read_file(&blob, fd, bytes, (size_t)st->st_size, path, err);
	if (status < 0) {
		free(bytes);
		return status;
	}
	*out = blob;
	return WEFT_OK;
}

/* ---- Images ---- */

static size_t read_image(const struct weft_image *image, uint64_t offset, void *to, size_t bytes)
{
	ssize_t got = offset < image->bytes ? read_at(image->file, to, bytes, offset) : 0;
	return got < 0 ? 0 : (size_t)got;
}

/* Behind holes. */
static uint64_t next_data(const struct weft_image *image, uint64_t offset, uint64_t *end)
{
	off_t data = lseek(image->file, (off_t)offset, SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		return UINT64_MAX;
	off_t hole = data < 0 ? -1 : lseek(image->file, data, SEEK_HOLE);
	*end = hole <= data ? UINT64_MAX : (uint64_t)hole;
	return data < 0 ? offset : (uint64_t)data;
}

static int search_file(
    struct weft_source *out, int fd, const struct stat *st, const char *path, const char *uuid, struct weft_error *err)
{
	const struct weft_image image = {
	    .name = path, .bytes = (uint64_t)st->st_size, .read = read_image, .next_data = next_data, .file = fd};
	return weft__image_search(out, &image, uuid, err);
}

/* What no format knows by its first bytes is searched, not read whole: it may be larger than this machine's memory, and be
 * written to meanwhile.  Of small ones the size is not always true. */
static bool is_image(int fd, const struct stat *st)
{
	unsigned char first[512];
	ssize_t got = S_ISREG(st->st_mode) && st->st_size > 4096 ? read_at(fd, first, sizeof first, 0) : 0;
	return got > 0 && !is_known(first, (size_t)got);
}

int weft__source_open_image(struct weft_source *out, const char *path, const char *uuid, struct weft_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st = {0};
	int status;
	if (fd < 0 || fstat(fd, &st) < 0)
		status = fail_errno(err, NULL, path, errno);
	else if (!S_ISREG(st.st_mode))
		status = weft__trace_fail(err, WEFT_EFORMAT, NULL, &(struct weft_blob){.name = (char *)path}, WEFT_NO_OFFSET,
		    WEFT_NO_OFFSET, "not a file, so no image of a memory");
	else
		status = search_file(out, fd, &st, path, uuid, err);
	if (fd >= 0)
		close(fd);
	return status;
}

/* ---- Directories ---- */

/* Adds the regular files that are not among the blobs, which are sorted.  Returns 1 if there were any, 0, or an error. */
static int list_files(struct weft_source *source, DIR *dir, struct weft_error *err)
{
	WEFT_VEC(struct weft_blob) blobs = {source->blobs, source->blob_count, source->blob_count};
	int status = WEFT_OK;
	const struct dirent *entry;
	rewinddir(dir);
	while (status == WEFT_OK && (errno = 0, entry = readdir(dir))) {
		struct stat st;
		/* A hidden file is one that is being made. */
		if (entry->d_name[0] == '.' || weft_source_find(source, entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
			continue;
		struct weft_blob *blob = weft_vec_push(&blobs);
		char *name = blob ? strdup(entry->d_name) : NULL;
		if (name)
			*blob = (struct weft_blob){.name = name, .size = (size_t)st.st_size};
		else {
			blobs.count -= blob != NULL;
			status = fail_errno(err, NULL, source->name, ENOMEM);
		}
		source->blobs = blobs.items;
	}
	if (status == WEFT_OK && errno)
		status = fail_errno(err, NULL, source->name, errno);
	bool more = blobs.count > source->blob_count;
	source->blob_count = blobs.count;
	weft__source_sort(source);
	return status < 0 ? status : more;
}

/* Whether one of the files begins as a format wants it: nobody's films are read into memory. */
static bool is_known_directory(const struct weft_source *source, DIR *dir)
{
	for (size_t i = 0; i < source->blob_count; i++) {
		unsigned char head[512];
		struct weft_blob blob = {.name = source->blobs[i].name, .bytes = head};
		int fd = openat(dirfd(dir), blob.name, O_RDONLY | O_CLOEXEC);
		ssize_t got = fd < 0 ? 0 : read_at(fd, head, sizeof head, 0);
		if (fd >= 0)
			close(fd);
		blob.size = got < 0 ? 0 : (size_t)got;
		const struct weft_source one = {.name = source->name, .is_dir = true, .blobs = &blob, .blob_count = 1};
		if (weft__trace_probe(&one))
			return true;
	}
	return false;
}

/* Reads one of the directory's files to where blob->bytes are to be, if it still fits there, else into memory of its own. */
static int load_listed(struct weft_blob *blob, DIR *dir, const char *path, struct weft_error *err)
{
	unsigned char *room = (unsigned char *)blob->bytes;
	struct stat st;
	int status = WEFT_OK, fd = openat(dirfd(dir), blob->name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		blob->bytes = NULL; /* gone meanwhile */
	else if (fd < 0 || fstat(fd, &st) < 0)
		status = fail_errno(err, path, blob->name, errno);
	else if (room && (uint64_t)st.st_size <= blob->size)
		status = read_file(blob, fd, room, (size_t)st.st_size, blob->name, err);
	else
		status = load(blob, fd, &st, blob->name, err);
	if (fd >= 0)
		close(fd);
	return status;
}

/* The metadata first, so that what they call finished is; last what says what the other files mean, so that these hold nothing
 * that it does not explain. */
static int turn_of(const char *name)
{
	return strcmp(name, "metadata") == 0 ? 0 : strncmp(name, "definitions", 11) == 0 ? 2 : 1;
}

/* A program may be writing it meanwhile. */
static int load_directory(struct weft_source *source, DIR *dir, struct weft_error *err)
{
	int status = 1;
	source->is_dir = true;
	/* One look may miss a file that is just being given its name, and find one that is younger. */
	for (int looks = 0; looks < 16 && status == 1; looks++)
		status = list_files(source, dir, err);
	if (status >= 0 && !is_known_directory(source, dir))
		status = weft__trace_fail(err, WEFT_EFORMAT, source, NULL, WEFT_NO_OFFSET, WEFT_NO_OFFSET,
		    "the directory has no trace in a format that weft reads");
	size_t room = 0;
	for (size_t i = 0; i < source->blob_count; i++)
		room += (source->blobs[i].size + 63) & ~(size_t)63;
	unsigned char *bytes = status < 0 ? NULL : allocate(room);
	if (status >= 0 && !bytes)
		status = fail_errno(err, NULL, source->name, ENOMEM);
	source->archive = (struct weft_blob){.bytes = bytes, .size = room, .owner = WEFT_BLOB_HEAP};
	for (size_t i = 0, at = 0; i < source->blob_count; i++) {
		struct weft_blob *blob = &source->blobs[i];
		blob->bytes = bytes ? bytes + at : NULL;
		at += (blob->size + 63) & ~(size_t)63;
	}
	for (int turn = 0; turn < 3; turn++) {
		if (turn == 2 && status >= 0)
			status = list_files(source, dir, err);
		for (size_t i = 0; i < source->blob_count && status >= 0; i++)
			if (turn_of(source->blobs[i].name) == turn)
				status = load_listed(&source->blobs[i], dir, source->name, err);
	}
	size_t kept = 0;
	for (size_t i = 0; i < source->blob_count; i++) {
		if (source->blobs[i].bytes)
			source->blobs[kept++] = source->blobs[i];
		else
			weft__blob_release(&source->blobs[i]);
	}
	source->blob_count = kept;
	return status < 0 ? status : WEFT_OK;
}

int weft_source_open(struct weft_source *out, const char *path, struct weft_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	const char *name = is_stdin ? "standard input" : path;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(err, NULL, name, errno);
	struct stat st = {0};
	int status = WEFT_OK, named = 0;
	long pid;
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
			status = source.name ? load_directory(&source, dir, err) : fail_errno(err, NULL, name, ENOMEM);
			source.file = status < 0 ? -1 : fcntl(dirfd(dir), F_DUPFD_CLOEXEC, 0);
			source.reread = source.file < 0 ? NULL : reread;
			closedir(dir);
			if (status < 0)
				weft_source_close(&source);
			else
				*out = source;
			return status;
		}
	} else if (sscanf(name, "/proc/%ld/mem%n", &pid, &named) == 1 && named == (int)strlen(name)) {
		status = weft__source_open_process(out, pid, NULL, err);
	} else if (is_image(fd, &st)) {
		status = search_file(out, fd, &st, name, NULL, err);
	} else if ((status = load(&blob, fd, &st, name, err)) == WEFT_OK) {
		struct weft_source source = {0};
		status = weft__source_from_blob(&source, blob, name, err);
		if (status == WEFT_OK && S_ISREG(st.st_mode) && !source.is_dir) {
			source.file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
			source.reread = source.file < 0 ? NULL : reread;
		}
		if (status == WEFT_OK)
			*out = source;
	}
	if (!is_stdin)
		close(fd);
	return status;
}

int weft_trace_open_image(struct weft_trace **out, const char *path, const char *uuid, struct weft_error *err)
{
	struct weft_source source;
	int status = weft__source_open_image(&source, path, uuid, err);
	return status < 0 ? status : weft__trace_from_source(out, &source, err);
}

int weft_trace_open_process(struct weft_trace **out, long pid, const char *uuid, struct weft_error *err)
{
	struct weft_source source;
	int status = weft__source_open_process(&source, pid, uuid, err);
	return status < 0 ? status : weft__trace_from_source(out, &source, err);
}

int weft_trace_open(struct weft_trace **out, const char *path, struct weft_error *err)
{
	struct weft_source source;
	int status = weft_source_open(&source, path, err);
	return status < 0 ? status : weft__trace_from_source(out, &source, err);
}
