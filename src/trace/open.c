/* open.c: opens files, directories and standard input as sources.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/named.h"
#include "base/size.h"
#include "base/vec.h"
#include "trace/follow.h"
#include "trace/format.h"
#include "trace/image.h"
#include "trace/packed.h"
#include "trace/packet.h"

static int fail_errno(struct weft_error *err, const char *path, int error)
{
	const int status = error == ENOENT || error == ENOTDIR ? WEFT_ENOENT
			   : error == EACCES || error == EPERM ? WEFT_EACCES
			   : error == ENOMEM                   ? WEFT_ENOMEM
							       : WEFT_EIO;
	weft_error_set(err, status, "%s", strerror(error));
	weft_error_set_file(err, path);
	return status;
}

/* Returns whether the first bytes belong to a known format, so that it makes sense to read on. */
static bool is_known(const unsigned char *bytes, size_t size)
{
	struct weft_blob blob = {.name = (char *)"", .bytes = bytes, .size = size};
	struct weft_source source = {.name = (char *)"", .blobs = &blob, .blob_count = 1};
	return weft__source_is_tar(bytes, size) || weft__trace_probe(&source);
}

/* ---- Inputs without a known size ---- */

enum { PIECE = 1 << 16, MAX_SILENCE_MS = 60000 };

static uint64_t limit; /* most bytes that are read; 0 stands for half of the machine's memory */

void weft_source_limit(uint64_t bytes)
{
	limit = bytes;
}

static uint64_t get_max_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t half = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : (uint64_t)1 << 30;
	return limit ? limit : half;
}

/* Reads like read(), but from a file descriptor that may be non-blocking.  Waits until the writer of a FIFO closes it; if the
 * writer is silent for MAX_SILENCE_MS, returns -1 with ETIMEDOUT. */
static ssize_t read_some(int fd, void *to, size_t bytes)
{
	for (;;) {
		ssize_t n = read(fd, to, bytes);
		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			return n;
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		if (errno == EAGAIN && poll(&ready, 1, MAX_SILENCE_MS) == 0) {
			errno = ETIMEDOUT;
			return -1;
		}
	}
}

typedef WEFT_VEC(unsigned char) byte_vec;

/* Reads to the end.  Stops early if no format knows the first bytes, because the input may be endless. */
static int read_bytes_to_end(byte_vec *bytes, int fd, bool is_fifo, const char *path, struct weft_error *err)
{
	const uint64_t most = get_max_bytes();
	for (bool is_checked = false;;) {
		if (!weft_vec_reserve(bytes, PIECE))
			return fail_errno(err, path, ENOMEM);
		ssize_t n = read_some(fd, bytes->items + bytes->count, bytes->capacity - bytes->count);
		if (n < 0 && errno == ETIMEDOUT)
			return weft_error_set(
			    err, WEFT_EIO, "the writer of the pipe has sent nothing for %d s", MAX_SILENCE_MS / 1000);
		if (n < 0)
			return fail_errno(err, path, errno);
		if (n == 0 && bytes->count == 0 && is_fifo)
			return weft_error_set(err, WEFT_EFORMAT, "the FIFO has no writer");
		bytes->count += (size_t)n;
		if (!is_checked && bytes->count && (n == 0 || bytes->count >= 512)) {
			is_checked = true;
			if (!is_known(bytes->items, bytes->count) && !weft__packed_is(bytes->items, bytes->count))
				return weft_error_set(err, WEFT_EFORMAT, "%s", weft_status_string(WEFT_EFORMAT));
		}
		if (bytes->count > most)
			return weft_error_set(
			    err, WEFT_ETOOBIG, "the input is larger than the limit of %" PRIu64 " MB", most >> 20);
		if (n == 0)
			return WEFT_OK;
	}
}

static int read_to_end(struct weft_blob *out, int fd, const struct stat *st, const char *path, struct weft_error *err)
{
	byte_vec bytes = {0};
	int status = read_bytes_to_end(&bytes, fd, S_ISFIFO(st->st_mode) && fd != STDIN_FILENO, path, err);
	if (status < 0) {
		weft_error_set_file(err, path);
		weft_vec_free(&bytes);
	} else
		*out = (struct weft_blob){.bytes = bytes.items, .size = bytes.count, .owner = WEFT_BLOB_HEAP};
	return status;
}

/* ---- Files ---- */

/* Reads `bytes` bytes at `offset`, or up to the end of the file; returns the number of bytes read, or -1. */
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

static bool reread_file(const struct weft_source *source, const struct weft_blob *blob, uint64_t offset, void *to, size_t bytes)
{
	const struct weft_named_rule rule = {.owner = WEFT_ANY_OWNER};
	int fd = source->is_dir ? weft_named_file(source->file, blob->name, &rule, NULL) : source->file;
	ssize_t got = fd < 0 ? -1 : read_at(fd, to, bytes, offset);
	if (source->is_dir && fd >= 0)
		close(fd);
	return got == (ssize_t)bytes;
}

/* Allocates zeroed memory for a blob.  A large blob is a mapping without reserved memory, so that holes of a sparse file take
 * no memory.  A trace that is read as a whole uses large pages, which the kernel clears in a third of the time; with a
 * position, each of a few new events would cost a large page. */
static bool allocate_blob(struct weft_blob *blob, size_t bytes, const struct weft_position *from)
{
	enum { LARGE = 2 << 20 };
	*blob = (struct weft_blob){.name = blob->name, .size = bytes, .owner = WEFT_BLOB_HEAP};
	if (bytes < 2 * LARGE) {
		blob->bytes = calloc(bytes ? bytes : 1, 1);
		return blob->bytes != NULL;
	}
	unsigned char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	uintptr_t begin = ((uintptr_t)memory + LARGE - 1) / LARGE * LARGE, end = ((uintptr_t)memory + bytes) / LARGE * LARGE;
	if (!from || !from->is_somewhere)
		madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	blob->bytes = memory;
	blob->mapped = bytes;
	return true;
}

typedef WEFT_VEC(struct weft_span) span_vec;

static bool add_span(span_vec *spans, size_t begin, size_t end)
{
	struct weft_span *last = spans->count ? &spans->items[spans->count - 1] : NULL;
	if (last && begin <= last->end) {
		last->end = end > last->end ? end : last->end;
		return true;
	}
	struct weft_span *fresh = weft_vec_push(spans);
	if (fresh)
		*fresh = (struct weft_span){begin, end};
	return fresh != NULL;
}

/* Reads the data of the file from `at` on, without holes (most of a young ring is a hole), into zeroed memory.  Reduces *size
 * if the file became smaller.  Returns 0 or an errno. */
static int read_data(int fd, unsigned char *to, size_t at, size_t *size, span_vec *spans)
{
	while (at < *size) {
		off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
		if (data < 0 && errno == ENXIO)
			break;
		/* A file system that does not report holes reports only data. */
		size_t begin = data < 0 ? at : (size_t)data, end = hole <= data || (uint64_t)hole > *size ? *size : (size_t)hole;
		if (begin >= *size)
			break;
		ssize_t got = read_at(fd, to + begin, end - begin, begin);
		if (got < 0)
			return errno;
		if ((size_t)got < end - begin)
			*size = end = begin + (size_t)got;
		if (!add_span(spans, begin, end))
			return ENOMEM;
		at = end;
	}
	return 0;
}

/* Returns the range that must be read of a directory's file with the first bytes `first`.  A packet with events or kernel data
 * is read from one page before its first new byte up to the end of its content. */
static struct weft_span wanted_span(const struct weft_position *from, const unsigned char *first, size_t there, size_t size)
{
	struct weft_packet packet;
	if (!from || there < WEFT_PACKET_HEADER || weft__packet_probe(first, there) != WEFT_PACKET_FINE ||
	    weft__packet_parse(&packet, first) != WEFT_PACKET_FINE || memcmp(packet.uuid, from->uuid, sizeof packet.uuid) != 0 ||
	    (packet.stream_class != WEFT_CLASS_EVENTS && packet.stream_class != WEFT_CLASS_KERNEL))
		return (struct weft_span){0, size};
	const struct weft_stream_position *reached = packet.stream_class == WEFT_CLASS_KERNEL
							 ? weft_position_of_kernel(from, packet.instance)
							 : weft_position_of_stream(from, packet.instance);
	if (reached && packet.sequence < reached->sequence)
		return (struct weft_span){0, 0};
	const size_t end = packet.content_bytes < size ? (size_t)packet.content_bytes : size;
	const size_t known = reached && packet.sequence == reached->sequence && reached->bytes <= end ? reached->bytes : 0;
	return (struct weft_span){known > WEFT_PACKET_PAGE ? (known / WEFT_PACKET_PAGE - 1) * WEFT_PACKET_PAGE : 0, end};
}

/* Returns whether anything must be read from the file. */
static bool is_wanted(const struct weft_position *from, int fd)
{
	unsigned char first[WEFT_PACKET_HEADER];
	const ssize_t there = from ? read_at(fd, first, sizeof first, 0) : 0;
	return there < (ssize_t)sizeof first || wanted_span(from, first, sizeof first, SIZE_MAX).end > 0;
}

/* Reads the needed range of a file's first `size` bytes into zeroed memory.  The first page is read separately and first, so
 * that the content that the header of a growing packet announces is complete when the rest is read. */
static int read_file(struct weft_blob *out, int fd, unsigned char *to, size_t size, const struct weft_position *from,
    const char *path, struct weft_error *err)
{
	unsigned char first[4096];
	size_t head_size = size < sizeof first ? size : sizeof first;
	ssize_t head = read_at(fd, first, head_size, 0);
	if (head < 0)
		return fail_errno(err, path, errno);
	span_vec spans = {0};
	bool has_more = (size_t)head == head_size && head_size < size;
	const struct weft_span wanted = wanted_span(from, first, (size_t)head, size);
	int error = add_span(&spans, 0, (size_t)head) ? 0 : ENOMEM;
	if (!error && has_more && wanted.end > head_size) {
		size_t there = wanted.end;
		error = read_data(fd, to, wanted.begin, &there, &spans);
		size = there < wanted.end ? there : size;
	}
	if (error) {
		weft_vec_free(&spans);
		return fail_errno(err, path, error);
	}
	memcpy(to, first, (size_t)head);
	out->bytes = to;
	out->size = has_more ? size : (size_t)head;
	out->data = spans.items;
	out->data_count = spans.count;
	return WEFT_OK;
}

/* Reads the present content of a regular file, or another file up to its end; fd stays open. */
static int load_file(struct weft_blob *out, int fd, const struct stat *st, const struct weft_position *from, const char *path,
    struct weft_error *err)
{
	if (!S_ISREG(st->st_mode))
		return read_to_end(out, fd, st, path, err);
	struct weft_blob blob = {.name = out->name};
	if ((uint64_t)st->st_size > SIZE_MAX || !allocate_blob(&blob, (size_t)st->st_size, from))
		return fail_errno(err, path, ENOMEM);
	int status = read_file(&blob, fd, (unsigned char *)(uintptr_t)blob.bytes, (size_t)st->st_size, from, path, err);
	blob.name = status < 0 ? NULL : blob.name;
	if (status < 0)
		weft__blob_release(&blob);
	else
		*out = blob;
	return status;
}

static int unpack_file(struct weft_blob *blob, const char *path, struct weft_error *err)
{
	const uint64_t most = get_max_bytes();
	const int status = weft__packed_unpack(blob, most, is_known);
	if (status == WEFT_ETOOBIG)
		weft_error_set(err, status,
		    "unpacked, it is larger than the limit of %" PRIu64
		    " MB, or than 64 times the file; use zcat or zstdcat FILE | weft ... -",
		    most >> 20);
	else if (status == WEFT_EDAMAGED)
		weft_error_set(
		    err, status, "damaged packed file; use zcat or zstdcat FILE | weft ... - to read the undamaged part");
	else if (status < 0)
		weft_error_set(err, status, "%s", strerror(ENOMEM));
	if (status < 0)
		weft_error_set_file(err, path);
	return status;
}

/* ---- Images ---- */

static size_t read_image(const struct weft_image *image, uint64_t offset, void *to, size_t bytes)
{
	ssize_t got = offset < image->bytes ? read_at(image->file, to, bytes, offset) : 0;
	return got < 0 ? 0 : (size_t)got;
}

/* Returns the next offset that is not in a hole. */
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

/* Returns whether a file is searched as an image of memory instead of being read whole, because no format knows its first
 * bytes.  An image may be larger than memory and may change meanwhile.  Small files are read whole, because the reported size
 * of a small file may be wrong. */
static bool is_image(int fd, const struct stat *st)
{
	unsigned char first[512];
	ssize_t got = S_ISREG(st->st_mode) && st->st_size > 4096 ? read_at(fd, first, sizeof first, 0) : 0;
	return got > 0 && !is_known(first, (size_t)got) && !weft__packed_is(first, (size_t)got);
}

int weft__source_open_image(struct weft_source *out, const char *path, const char *uuid, struct weft_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st = {0};
	int status;
	if (fd < 0 || fstat(fd, &st) < 0)
		status = fail_errno(err, path, errno);
	else if (!S_ISREG(st.st_mode))
		status = weft__trace_fail(err, WEFT_EFORMAT, NULL, &(struct weft_blob){.name = (char *)path},
		    "not a regular file, so not a memory image");
	else
		status = search_file(out, fd, &st, path, uuid, err);
	if (fd >= 0)
		close(fd);
	return status;
}

/* ---- Directories ---- */

/* Adds the regular files of a directory that are not yet among the sorted blobs.  Returns 1 if it added any file, 0 if not, or
 * an error. */
static int list_files(struct weft_source *source, DIR *dir, struct weft_error *err)
{
	WEFT_VEC(struct weft_blob) blobs = {source->blobs, source->blob_count, source->blob_count};
	int status = WEFT_OK;
	const struct dirent *entry;
	rewinddir(dir);
	while (status == WEFT_OK && (errno = 0, entry = readdir(dir))) {
		struct stat st;
		/* A hidden file is still being written. */
		if (entry->d_name[0] == '.' || weft_source_find(source, entry->d_name) ||
		    (source->from && weft_position_is_behind(source->from, entry->d_name)) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		struct weft_blob *blob = weft_vec_push(&blobs);
		char *name = blob ? strdup(entry->d_name) : NULL;
		if (name)
			*blob = (struct weft_blob){.name = name, .size = (size_t)st.st_size};
		else {
			blobs.count -= blob != NULL;
			status = fail_errno(err, source->name, ENOMEM);
		}
		source->blobs = blobs.items;
	}
	if (status == WEFT_OK && errno)
		status = fail_errno(err, source->name, errno);
	bool more = blobs.count > source->blob_count;
	source->blob_count = blobs.count;
	weft__source_sort(source);
	return status < 0 ? status : more;
}

/* Returns whether a format knows the first bytes of one of the files, so that weft does not read large files of other kinds. */
static bool is_known_directory(const struct weft_source *source, DIR *dir)
{
	for (size_t i = 0; i < source->blob_count; i++) {
		unsigned char head[512];
		struct weft_blob blob = {.name = source->blobs[i].name, .bytes = head};
		int fd = weft_named_file(dirfd(dir), blob.name, &(struct weft_named_rule){.owner = WEFT_ANY_OWNER}, NULL);
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

/* Reads one of the directory's files into the memory at blob->bytes or, if the file grew, into new memory. */
static int load_listed(
    struct weft_blob *blob, DIR *dir, const struct weft_position *from, const char *path, struct weft_error *err)
{
	unsigned char *space = (unsigned char *)blob->bytes;
	struct stat st;
	const struct weft_named_rule rule = {.owner = WEFT_ANY_OWNER};
	int status = WEFT_OK, fd = weft_named_file(dirfd(dir), blob->name, &rule, &st);
	if (fd < 0 && (errno == ENOENT || errno == EINVAL || errno == ELOOP || errno == ENXIO))
		/* the file was deleted meanwhile, or the name now belongs to something other than a regular file */
		blob->bytes = NULL;
	else if (fd < 0)
		status = fail_errno(err, blob->name, errno);
	else if (!is_wanted(from, fd))
		blob->bytes = NULL;
	else if (space && (uint64_t)st.st_size <= blob->size)
		status = read_file(blob, fd, space, (size_t)st.st_size, from, blob->name, err);
	else
		status = load_file(blob, fd, &st, from, blob->name, err);
	if (fd >= 0)
		close(fd);
	return status;
}

/* Returns in which phase of loading a file is read.  The metadata are read first, so that a trace that they call finished is
 * finished.  The definitions are read last, so that they explain everything in the other files. */
static int get_load_phase(const char *name)
{
	return strcmp(name, "metadata") == 0 ? 0 : strncmp(name, "definitions", 11) == 0 ? 2 : 1;
}

/* Allocates memory for all files in one piece; each file starts at a cache line. */
static bool allocate_archive(struct weft_source *source)
{
	enum { LINE = 64 };
	size_t space = 0;
	for (size_t i = 0; i < source->blob_count; i++) {
		const size_t size = source->blobs[i].size;
		if (!weft_size_add(&space, size) || !weft_size_add(&space, (LINE - size % LINE) % LINE))
			return false;
	}
	if (!allocate_blob(&source->archive, space, source->from))
		return false;
	size_t at = 0;
	for (size_t i = 0; i < source->blob_count; i++) {
		source->blobs[i].bytes = source->archive.bytes + at;
		at += source->blobs[i].size + (LINE - source->blobs[i].size % LINE) % LINE;
	}
	return true;
}

/* Removes blobs without content, such as files that were deleted before they were read. */
static void drop_absent(struct weft_source *source)
{
	size_t retained = 0;
	for (size_t i = 0; i < source->blob_count; i++) {
		if (source->blobs[i].bytes)
			source->blobs[retained++] = source->blobs[i];
		else
			weft__blob_release(&source->blobs[i]);
	}
	source->blob_count = retained;
}

/* Reads a directory to which a program may be writing. */
static int load_directory(struct weft_source *source, DIR *dir, struct weft_error *err)
{
	int status = 1;
	source->is_dir = true;
	/* One listing may miss a file that is just being renamed, but include a newer file. */
	for (int tries = 0; tries < 16 && status == 1; tries++)
		status = list_files(source, dir, err);
	if (status >= 0 && !is_known_directory(source, dir))
		status =
		    weft__trace_fail(err, WEFT_EFORMAT, source, NULL, "the directory has no trace in a format that weft reads");
	if (status >= 0 && !allocate_archive(source))
		status = weft__trace_fail(err, WEFT_ENOMEM, source, NULL, "not enough memory for the files of the directory");
	for (int phase = 0; phase < 3; phase++) {
		if (phase == 2 && status >= 0)
			status = list_files(source, dir, err);
		for (size_t i = 0; i < source->blob_count && status >= 0; i++)
			if (get_load_phase(source->blobs[i].name) == phase)
				status = load_listed(&source->blobs[i], dir, source->from, source->name, err);
	}
	drop_absent(source);
	return status < 0 ? status : WEFT_OK;
}

/* Adds the files that were created since the directory was read.  The directory is opened again, to get a separate directory
 * stream. */
static int reload_directory(struct weft_source *source, struct weft_error *err)
{
	DIR *dir = weft_named_list(source->file);
	if (!dir)
		return WEFT_OK; /* the directory was deleted, so nothing can be added */
	int status = list_files(source, dir, err);
	for (size_t i = 0; i < source->blob_count && status >= 0; i++) {
		struct weft_blob *blob = &source->blobs[i];
		if (!blob->bytes)
			status = load_listed(blob, dir, source->from, source->name, err);
	}
	closedir(dir);
	drop_absent(source);
	return status < 0 ? status : WEFT_OK;
}

int weft_source_open(struct weft_source *out, const char *path, struct weft_error *err)
{
	return weft__source_open_from(out, path, NULL, err);
}

/* Reads the directory with the file descriptor fd, which stays open. */
static int open_directory(
    struct weft_source *out, int fd, const char *name, const struct weft_position *from, struct weft_error *err)
{
	const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	int status = dir ? WEFT_OK : fail_errno(err, name, errno);
	struct weft_source source = {.name = strdup(name), .from = from};
	if (status == WEFT_OK && !source.name)
		status = fail_errno(err, name, ENOMEM);
	if (dir && status == WEFT_OK)
		status = load_directory(&source, dir, err);
	if (status == WEFT_OK) {
		source.file = fcntl(own, F_DUPFD_CLOEXEC, 0);
		source.reread = source.file < 0 ? NULL : reread_file;
		source.reload = source.file < 0 ? NULL : reload_directory;
		*out = source;
	} else {
		weft_source_close(&source);
	}
	if (dir)
		closedir(dir);
	else if (own >= 0)
		close(own);
	return status;
}

/* Reads a file, a pipe or a device as a whole; fd stays open. */
static int open_whole(struct weft_source *out, int fd, const struct stat *st, const char *name, struct weft_error *err)
{
	struct weft_blob blob = {0};
	struct weft_source source = {0};
	int status = load_file(&blob, fd, st, NULL, name, err);
	const bool is_packed = status == WEFT_OK && weft__packed_is(blob.bytes, blob.size);
	if (is_packed) {
		status = unpack_file(&blob, name, err);
		if (status < 0)
			weft__blob_release(&blob);
	}
	if (status == WEFT_OK)
		status = weft__source_from_blob(&source, blob, name, err);
	if (status == WEFT_OK && S_ISREG(st->st_mode) && !source.is_dir && !is_packed) {
		source.file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		source.reread = source.file < 0 ? NULL : reread_file;
	}
	if (status == WEFT_OK)
		*out = source;
	return status;
}

/* Returns the id of the process whose memory the path names, or 0. */
static long parse_memory_path(const char *path)
{
	long pid;
	int parsed = 0;
	return sscanf(path, "/proc/%ld/mem%n", &pid, &parsed) == 1 && parsed == (int)strlen(path) ? pid : 0;
}

int weft__source_open_from(struct weft_source *out, const char *path, const struct weft_position *from, struct weft_error *err)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	const char *name = is_stdin ? "standard input" : path;
	const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const long pid = parse_memory_path(name);
	struct stat st = {0};
	int status;
	if (fd < 0 || fstat(fd, &st) < 0)
		status = fail_errno(err, name, errno);
	else if (S_ISDIR(st.st_mode))
		status = open_directory(out, fd, name, from, err);
	else if (pid > 0)
		status = weft__source_open_process(out, pid, NULL, err);
	else if (is_image(fd, &st))
		status = search_file(out, fd, &st, name, NULL, err);
	else
		status = open_whole(out, fd, &st, name, err);
	if (fd >= 0 && !is_stdin)
		close(fd);
	return status;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Notes that the trace was being recorded at `wall_ns`.  OCaml's own files have no wall clock, but are of this boot of the
 * machine. */
static void note_living(struct weft_trace *trace, int64_t wall_ns)
{
	if (trace->format == &weft__format_ocaml && !trace->pair_wall_ns) {
		trace->pair_ns = clock_ns(CLOCK_MONOTONIC);
		trace->pair_wall_ns = wall_ns;
	}
	weft__trace_set_lived_until(trace, wall_ns);
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
	if (status == WEFT_OK)
		status = weft__trace_from_source(out, &source, err);
	if (status == WEFT_OK && (*out)->info.unfinished)
		weft__trace_set_lived_until(*out, clock_ns(CLOCK_REALTIME));
	return status;
}

int weft_trace_open(struct weft_trace **out, const char *path, struct weft_error *err)
{
	return weft_trace_open_from(out, path, NULL, NULL, err);
}

int weft_trace_open_from(struct weft_trace **out, const char *path, const struct weft_position *from,
    const struct weft_position *known, struct weft_error *err)
{
	struct weft_source source;
	int status = weft__source_open_from(&source, path, from, err);
	if (status == WEFT_OK)
		source.known = known;
	if (status == WEFT_OK)
		status = weft__trace_from_source(out, &source, err);
	/* Everything that was read is older than this time; only a recorder that is alive afterwards has certainly lived until
	 * then. */
	int64_t now_ns = clock_ns(CLOCK_REALTIME);
	if (status == WEFT_OK && (*out)->info.unfinished && !(*out)->info.has_died && weft_trace_is_recorded(path))
		note_living(*out, now_ns);
	return status;
}

int weft_trace_open_fd(struct weft_trace **out, int fd, const char *name, struct weft_error *err)
{
	struct weft_source source = {0};
	struct weft_blob blob = {0};
	struct stat st = {0};
	int status = read_to_end(&blob, fd, &st, name, err);
	if (status == WEFT_OK)
		status = weft__source_from_blob(&source, blob, name, err);
	return status < 0 ? status : weft__trace_from_source(out, &source, err);
}
